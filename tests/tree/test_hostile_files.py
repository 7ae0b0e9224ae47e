"""Pipes, links and very deep directories that candidates and agents leave where a file is
expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.toy import CONFIG, ToyRepository, idea
from tests.tree.runs import search
from tests.tree.test_cheats import new_file
from tests.tree.test_deciding import sweeping_the_code, three_ideas
from treewright.kernel.errors import UsageError
from treewright.kernel.procs import process
from treewright.kernel.storage import untrusted
from treewright.tree.agents import transcript
from treewright.tree.guard import shared_paths
from treewright.tree.ideas.idea_source import IdeaSourceError, read_ideas
from treewright.tree.records import store
from treewright.tree.report import write_report
from treewright.tree.validation import validate

SHAPE = {"ideas_per_node": 2, "beam_width": 1, "max_depth": 1, "sweep_config_limit": 8}
RESULTS = '"$TREEWRIGHT_RESULTS_CSV"'
DEEP = "p=$PWD/d; i=0; while [ $i -lt 1300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; cd"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"mkfifo {RESULTS}; exit 0", "a pipe"),
        (f"ln -s /dev/zero {RESULTS}; exit 0", "a symbolic link"),
        (f"truncate -s 6G {RESULTS}; exit 0", "larger than 256 MiB"),
        (f"mkdir {RESULTS}; exit 0", "a directory"),
        (f'mkfifo "$(dirname {RESULTS})/summary.json"; mkfifo {RESULTS}; exit 0', "a pipe"),
    ],
    ids=["pipe", "device", "sparse", "directory", "pipes everywhere"],
)
def test_results_are_read_only_from_a_plain_file(
    toy: ToyRepository, command: str, said: str
) -> None:
    sweeping_the_code(toy)
    three_ideas(toy, idea("Odd", new_file("x.sh", command)))
    run_dir = search(toy.path, **SHAPE)
    found = store.load(run_dir).evaluations
    error = found["e000001"].error
    assert error is not None
    assert error.code == "unreadable_results"
    assert said in error.message
    assert found["e000002"].status == "completed"
    assert validate(run_dir, toy.path) == []


OUT = "[sweep]\nresults_csv = 'out/results.csv'\n"


def committing(name: str, mode: str, content: str) -> str:
    """Return a patch that creates one file or link."""
    return (
        f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n"
        f"@@ -0,0 +1 @@\n+{content}\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [("120000", "through a link that leads outside"), ("100644", "no directory")],
    ids=["a link", "a file"],
)
def test_a_commit_cannot_choose_which_results_are_removed(
    toy: ToyRepository, tmp_path: Path, mode: str, said: str
) -> None:
    """No file behind a link is removed, and a file in the way does not pause the run."""
    precious = tmp_path / "precious"
    (precious / "results.csv").parent.mkdir()
    (precious / "results.csv").write_text("kept for years\n")
    command = "mkdir -p out && TREEWRIGHT_RESULTS_CSV=out/results.csv sh sweep.sh"
    config = CONFIG.replace('"sh sweep.sh"', f'"{command}"')
    toy.write("treewright.toml", config.replace("[sweep]\n", OUT))
    three_ideas(toy, idea("Elsewhere", committing("out", mode, str(precious))))
    run_dir = search(toy.path, **{**SHAPE, "ideas_per_node": 1})
    error = store.load(run_dir).evaluations["e000001"].error
    assert error is not None
    assert error.code == "unreadable_results"
    assert said in error.message
    assert (precious / "results.csv").read_text() == "kept for years\n"


@pytest.mark.parametrize("instead", ["mkfifo", "ln -s /dev/zero", "true"])
def test_idea_files_that_a_candidate_replaced_do_not_block_the_run(
    toy: ToyRepository, instead: str, caplog: pytest.LogCaptureFixture
) -> None:
    sweeping_the_code(toy)
    three_ideas(
        toy,
        idea(
            "Odd",
            new_file("x.sh", f'for i in ../../node_ideas/*/*.md; do rm "$i"; {instead} "$i"; done'),
        ),
    )
    run_dir = search(toy.path, **{**SHAPE, "max_depth": 2})
    manifest = store.load(run_dir)
    assert manifest.current_depth == 2
    assert "node_ideas/n0000/idea_000.md cannot be read any more" in caplog.text
    codes = {finding.code for finding in validate(run_dir, toy.path)}
    assert "idea_missing" in codes


def test_a_candidate_with_a_file_name_that_is_not_utf8_is_rejected(toy: ToyRepository) -> None:
    """File names are bytes; the records of a candidate are text."""
    coder = """sed -i 's/^A 1/A 2/' params.txt && touch "$(printf 'a\\377.sealed')" """
    backend = f"[agents.coder]\nbackend = 'command'\ncommand = ['sh', '-c', '''{coder}''']\n"
    protected = CONFIG.replace('["sweep.sh"', '["*.sealed", "sweep.sh"')
    toy.write("treewright.toml", f"{protected}\n{backend}")
    toy.commit("names of any bytes are protected")
    run_dir = search(toy.path, **{**SHAPE, "ideas_per_node": 1})
    error = store.load(run_dir).evaluations["e000001"].error
    assert error is not None
    assert error.code == "protected_path_changed"
    assert "a\\xff.sealed" in error.message
    assert validate(run_dir, toy.path) == []


def test_a_file_name_may_contain_a_carriage_return(toy: ToyRepository) -> None:
    """macOS makes such a file for the picture of a folder; it can be protected, and part of a
    change."""
    (toy.path / "kept").mkdir()
    (toy.path / "kept" / "Icon\r").write_text("a picture")
    coder = """sed -i 's/^A 1/A 2/' params.txt && touch "$(printf 'Icon\\r.')" """
    backend = f"[agents.coder]\nbackend = 'command'\ncommand = ['sh', '-c', '''{coder}''']\n"
    toy.write("treewright.toml", CONFIG.replace('["sweep.sh"', '["kept", "sweep.sh"') + backend)
    toy.commit("a picture")
    run_dir = search(toy.path, **{**SHAPE, "ideas_per_node": 1})
    evaluation = store.load(run_dir).evaluations["e000001"]
    assert (evaluation.status, evaluation.error) == ("completed", None)
    assert validate(run_dir, toy.path) == []


def test_an_idea_file_with_a_name_that_is_not_utf8_is_tried(toy: ToyRepository) -> None:
    first = min((toy.path / "ideas").iterdir())
    first.rename(first.with_name(os.fsdecode(b"00_\xff.md")))
    toy.commit("an idea with another name")
    run_dir = search(toy.path, **SHAPE)
    found = store.load(run_dir)
    assert found.evaluations["e000001"].status == "completed"
    assert "ideas/00_\\xff.md" in (run_dir / "events.jsonl").read_text().replace("\\\\", "\\")
    assert validate(run_dir, toy.path) == []


def test_a_repository_path_that_is_not_utf8_is_a_one_line_error(toy: ToyRepository) -> None:
    odd = toy.path.parent / os.fsdecode(b"o\xffdd")
    toy.path.rename(odd)
    with pytest.raises(
        UsageError, match=r"o\\xffdd has bytes in its path that are not UTF-8; rename"
    ):
        search(odd, **SHAPE)


def test_a_missing_directory_is_not_reported_as_a_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "idea.md"
    file.write_text("an idea")
    with pytest.raises(untrusted.NotPlain, match=r"^idea\.md: the directory .* cannot be read: No"):
        untrusted.read(file, 100, tmp_path / "gone")
    assert file not in [path.resolve() for path in Path("/proc/self/fd").glob("*")]  # closed


def test_a_pipe_in_place_of_the_next_log_does_not_block_the_run(toy: ToyRepository) -> None:
    """The tests run the candidate's code, which can find the paths of the logs."""
    toy.write("tests.sh", "[ ! -f x.sh ] || . ./x.sh\n")
    where = "../../eval/e000001/experiment"
    command = f"mkfifo {where}/sweep.log; ln -sf /dev/zero {where}/summary.json; exit 0"
    three_ideas(toy, idea("Odd", new_file("x.sh", command)))
    run_dir = search(toy.path, **SHAPE)
    assert store.load(run_dir).evaluations["e000001"].status == "completed"
    assert validate(run_dir, toy.path) == []


@pytest.mark.parametrize("place", ["worktree", "experiment"])
def test_very_deep_directories_of_a_candidate_are_removed(toy: ToyRepository, place: str) -> None:
    sweeping_the_code(toy)
    start = "" if place == "worktree" else f"cd $(dirname {RESULTS}); "
    three_ideas(toy, idea("Dig", new_file("x.sh", f"{start}{DEEP}; exit 1")))
    run_dir = search(toy.path, **SHAPE)
    manifest = store.load(run_dir)
    assert manifest.stop_reason is not None
    assert not (run_dir / "cand").exists() or not list((run_dir / "cand").iterdir())
    assert not (run_dir / "eval" / "e000001" / "experiment" / "d").exists()
    assert validate(run_dir, toy.path) == []


def test_directories_without_permissions_are_removed(tmp_path: Path) -> None:
    locked = tmp_path / "a" / "b"
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0)
    (tmp_path / "a").chmod(0o555)
    untrusted.remove_tree(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    untrusted.remove_tree(tmp_path / "never was")


def test_remove_named_finds_a_name_in_every_directory(tmp_path: Path) -> None:
    for name, mode in {"read only": 0o555, "locked/in": 0, "-rf": 0o755}.items():
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / ".git" / "config").touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / ".git").touch()
    assert untrusted.remove_named(".git", tmp_path)
    assert [path.parent for path in tmp_path.rglob(".git")] == [tmp_path]


def test_removing_a_link_keeps_its_target(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    untrusted.remove_tree(tmp_path / "link")
    assert (tmp_path / "kept" / "file").exists()
    assert not (tmp_path / "link").is_symlink()


def test_a_link_in_the_path_may_not_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.csv").write_text("x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    with pytest.raises(untrusted.NotPlain, match="leads outside"):
        untrusted.read(tmp_path / "in" / "link" / "results.csv", 10, tmp_path / "in")


def test_a_pipe_in_place_of_an_agents_log_does_not_block_the_run(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    process.run(f"rm {log}; mkfifo {log}", cwd=tmp_path, log_path=log)
    assert transcript.scrub(log) == ""
    assert "not a plain file" in log.read_text()
    os.mkfifo(tmp_path / "next.log")
    transcript.write(tmp_path / "next.log", "said")
    assert (tmp_path / "next.log").read_text() == "said"


def test_an_oversized_idea_file_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "huge.md").touch()
    os.truncate(tmp_path / "huge.md", 6 << 30)
    with pytest.raises(IdeaSourceError, match="larger than 16 MiB"):
        read_ideas(tmp_path, origin="ideas")
    (tmp_path / "huge.md").unlink()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "device.md").symlink_to("/dev/zero")
    assert read_ideas(tmp_path, origin="ideas") == []


RUN = "../.."
"""Where the run's directory is, from a candidate's worktree."""


@pytest.mark.parametrize(
    "command",
    [
        f"mkfifo {RUN}/eval/e000002; mkfifo {RUN}/cand/e000002",
        f'ln -s "$PWD/.." {RUN}/eval/e000002',
        f"cp {RESULTS} r; rm -rf {RUN}/eval; touch {RUN}/eval",
        f"rm -rf {RUN}/wt; mkfifo {RUN}/wt",
        f"mkdir -p {RUN}/report; rm -r {RUN}/report; mkfifo {RUN}/report",
        f"rm {RUN}/manifest.json; mkdir -p {RUN}/manifest.json/in {RUN}/TREE_SUMMARY.md/in",
        f"rm {RUN}/manifest.json; mkfifo {RUN}/manifest.json",
    ],
)
def test_files_in_place_of_directories_do_not_fail_the_next_candidate(
    toy: ToyRepository, command: str
) -> None:
    """The next candidate is evaluated, and the run can be continued."""
    sweeping_the_code(toy)
    three_ideas(toy, idea("Odd", new_file("x.sh", command)))
    run_dir = search(toy.path, **SHAPE)
    found = store.load(run_dir)
    assert found.evaluations["e000002"].status == "completed"
    assert found.stop_reason is not None
    assert not (run_dir / "eval" / "e000002").is_symlink()
    write_report(run_dir, found)
    assert store.load(search(toy.path)).stop_reason == found.stop_reason  # opened again


@pytest.mark.parametrize(
    "name", ["cand", "eval", "wt", "artifacts", "node_ideas", "lease", "steering", "."]
)
def test_a_locked_directory_of_the_run_is_unlocked(tmp_path: Path, name: str) -> None:
    place = tmp_path / "run" / name
    place.mkdir(parents=True)
    place.chmod(0o500)
    shared_paths.restore(tmp_path / "run")
    assert place.stat().st_mode & 0o777 == 0o700


def test_locked_records_can_be_opened(toy: ToyRepository) -> None:
    run_dir = search(toy.path, **SHAPE)
    locked = ("events.jsonl", "manifest.json", "lease")
    for name in locked:
        (run_dir / name).chmod(0)
    search(toy.path)
    assert all((run_dir / name).stat().st_mode & 0o600 == 0o600 for name in locked)
