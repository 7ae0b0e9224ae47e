"""A sweep that runs from a checkout of the root, and sealed results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import CONFIG, SWEEP, ToyRepository, diff_of_line, idea, set_parameter
from tests.tree import answering
from tests.tree.runs import search
from tests.tree.test_cheats import new_file, only_idea
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.tree import config
from treewright.tree.guard import protected_files, seals
from treewright.tree.guard.protected_files import RootVersion
from treewright.tree.records import store
from treewright.tree.records.model import Evaluation
from treewright.tree.repository import worktrees

OWN = CONFIG.replace("timeout_seconds = 60", 'timeout_seconds = 60\ncheckout = "root"')


def evaluated(toy: ToyRepository, **shape: int) -> Evaluation:
    shape = {"ideas_per_node": 1, "max_depth": 1, "sweep_config_limit": 8, **shape}
    return store.load(search(toy.path, **shape)).evaluations["e000001"]


def fate(evaluation: Evaluation) -> str:
    assert evaluation.decision is not None
    return evaluation.decision.fate


@pytest.fixture
def own(toy: ToyRepository) -> ToyRepository:
    """A repository with a sweep that reads an unprotected file and the candidate's parameters."""
    toy.write("offset.awk", "20")
    script = SWEEP.replace("loss = 20", "loss = '\"$(cat offset.awk)\"'")
    script = script.replace("params.txt >", '"$TREEWRIGHT_CANDIDATE/params.txt" >')
    run_code = '[ ! -f "$TREEWRIGHT_CANDIDATE/x.sh" ] || . "$TREEWRIGHT_CANDIDATE/x.sh"\n'
    toy.write("sweep.sh", script + run_code)
    toy.write("treewright.toml", OWN)
    toy.commit("a sweep with a checkout of its own")
    return toy


def test_the_sweep_reads_files_of_the_root(own: ToyRepository) -> None:
    only_idea(own, idea("Start lower", "--- a/offset.awk\n+++ b/offset.awk\n@@ -1 +1 @@\n"
                        "-20\n\\ No newline at end of file\n+10\n"))  # fmt: skip
    evaluation = evaluated(own)
    assert evaluation.error is None
    assert fate(evaluation) == "gate_failed"
    assert evaluation.parent_relative is not None
    assert evaluation.parent_relative.primary_gain == 0.0


def test_the_sweep_measures_the_candidates_code(own: ToyRepository) -> None:
    only_idea(own, set_parameter("A", 2.0))
    assert fate(evaluated(own, confirm_configs=4)) == "promoted"
    assert not list(own.run_dir("run").glob("cand/*")), "no checkout is left behind"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("echo >> sweep.sh", "sweep.sh of the sweep's own checkout changed"),
        ("echo 10 > offset.awk", "offset.awk of the sweep's own checkout changed"),
        ("echo > csv.py", "csv.py was added to the sweep's own checkout"),
    ],
)
def test_code_that_writes_into_the_sweeps_checkout_is_rejected(
    own: ToyRepository, code: str, said: str
) -> None:
    patch = new_file("x.sh", code) + diff_of_line("params.txt", "A 1.0", "A 2.0", 1)
    only_idea(own, idea("Be bold", patch))
    evaluation = evaluated(own)
    assert evaluation.error is not None
    assert evaluation.error.code == "protected_path_changed"
    assert said in evaluation.error.message


def test_a_sweep_may_leave_results_logs_and_bytecode_in_its_checkout(
    own: ToyRepository, tmp_path: Path
) -> None:
    root = RootVersion(own.path, own.git("rev-parse", "HEAD").strip())
    place, package = tmp_path / "own", tmp_path / "package"
    worktrees.export(root.repo, root.commit, place)
    before = protected_files.take_snapshot(place)
    package.mkdir()
    (place / "__pycache__").mkdir()
    for name in ("results.csv", "log", "__pycache__/score.cpython-311.pyc"):
        (place / name).write_bytes(b"1")
    (place / "latest").symlink_to(package)
    os.utime(place / "offset.awk", (1, 1))
    assert protected_files.describe_changes(root, place, before) == ""
    (package / "__init__.py").write_bytes(b"")
    assert "latest was added" in protected_files.describe_changes(root, place, before)
    (place / "offset.awk").unlink()
    assert "offset.awk of" in protected_files.describe_changes(root, place, before)


def test_a_path_of_results_in_the_candidates_checkout_is_refused(toy: ToyRepository) -> None:
    toy.write("treewright.toml", OWN.replace("checkout =", 'results_csv = "r.csv"\ncheckout ='))
    with pytest.raises(UsageError, match="TREEWRIGHT_RESULTS_CSV"):
        config.load(toy.path / "treewright.toml")


def test_a_seal_needs_the_key(tmp_path: Path) -> None:
    results, data, key = tmp_path / "r.csv", b"config_id,status\n0,ok\n", seals.new_key()
    good = seals.seal(data, key)
    results.write_bytes(good)
    seals.remove_seal(results, tmp_path, key)
    assert results.read_bytes() == data
    forged = [data, b"", good.replace(b"0,ok", b"1,ok"), seals.seal(data, seals.new_key())]
    forged += [good + b"1,ok\n", good[:-9] + b"\n", data + b"#seal \n", data + b"#seal \xff\n"]
    for content in forged:
        results.write_bytes(content)
        with pytest.raises(seals.Distrusted):
            seals.remove_seal(results, tmp_path, key)
        assert not results.exists()


def test_a_sweep_that_does_not_seal_is_refused_at_the_start(toy: ToyRepository) -> None:
    toy.write("treewright.toml", CONFIG.replace("[tests]", "sealed = true\n\n[tests]"))
    toy.commit("sealed, it says")
    with pytest.raises(TreewrightError, match="sealed = true"):
        search(toy.path, sweep_config_limit=8)


LATE = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        from pathlib import Path
        named = set()
        while True:
            for environ in Path("/proc").glob("[0-9]*/environ"):
                try:
                    for entry in environ.read_bytes().split(b"\\0"):
                        if entry.startswith(b"TREEWRIGHT_RESULTS_CSV=@HERE@/"):
                            named.add(entry.partition(b"=")[2])
                except OSError:
                    pass
            for name in named:
                if os.path.exists(name):
                    with open(name, "w") as file:
                        file.write("config_id,status,score\\n")
                        file.writelines(f"{i},ok,0\\n" for i in range(8))
    os._exit(0)
"""
PEEK = """\
import os
import subprocess
import sys
for name in ("mem", "environ", "fd/0"):
    try:
        open(f"/proc/{os.getppid()}/{name}", "r+b" if name == "mem" else "rb")
        print("can open", name, "of the judge")
    except PermissionError:
        print("cannot open", name)
"""


@pytest.mark.parametrize("extra", ["", 'isolation = "bubblewrap"\n'], ids=["open", "isolated"])
def test_the_sweep_template_works_end_to_end(tmp_path: Path, extra: str, request) -> None:
    if extra:
        request.getfixturevalue("bubblewrap")
    toy = answering.make(tmp_path / "r", extra)
    ideas = {
        "0 late": LATE.replace("@HERE@", str(tmp_path)) + answering.GUESS,
        "1 peek": PEEK + answering.GUESS,
        "2 better": answering.GUESS.replace(" + 1", ""),
    }
    before = answering.GUESS.splitlines()
    (toy.path / "ideas/00.md").unlink()
    for name, text in ideas.items():
        after = text.splitlines()
        change = [f"-{line}" for line in before] + [f"+{line}" for line in after]
        head = f"--- a/guess.py\n+++ b/guess.py\n@@ -1,{len(before)} +1,{len(after)} @@\n"
        toy.write(f"ideas/{name[0]}.md", idea(name, head + "\n".join(change) + "\n"))
    toy.commit("ideas")
    run_dir = search(toy.path, ideas_per_node=3, max_depth=1, sweep_config_limit=2)
    late, peek, better = store.load(run_dir).evaluations.values()
    assert (fate(late), late.error) == ("gate_failed", None)
    assert fate(better) == "promoted"
    assert fate(peek) == "gate_failed"
    said = (run_dir / "eval" / "e000002" / "experiment" / "sweep.log").read_text()
    if extra or os.geteuid() != 0:  # root can read every process, unless the candidate is isolated
        assert "cannot open mem" in said
        assert "cannot open environ" in said
        assert "of the judge" not in said


def test_the_scoring_process_never_imports_modules_of_the_candidate(tmp_path: Path) -> None:
    toy = answering.make(tmp_path / "r")
    for name in ("csv", "json", "hmac", "sitecustomize", "usercustomize"):
        toy.write(f"{name}.py", "raise SystemExit('the judge runs code of the candidate')\n")
    assert answering.swept(toy, 2)[1:] == ["0,ok,-1", "1,ok,-1"]


def test_the_template_makes_no_results_without_the_key(tmp_path: Path) -> None:
    toy = answering.make(tmp_path / "r")
    done = subprocess.run(
        [sys.executable, "-I", "treewright_sweep.py"],
        cwd=toy.path,
        env={"TREEWRIGHT_SEALED": "1", "TREEWRIGHT_RESULTS_CSV": str(tmp_path / "results.csv")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "there is no key on stdin, with which results are sealed\n",
    )
    assert not (tmp_path / "results.csv").exists()
