"""`treewright init` from an OpenEvolve task: from a directory to a better program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.toy import ToyRepository, idea
from tests.tree import answering
from treewright.cli.init import init
from treewright.tree import config as configuration
from treewright.tree.records import store
from treewright.tree.repository import blocks
from treewright.tree.starter import SWEEP, evolve_tasks, read_template, render_task, survey
from treewright.tree.validation import validate

CIRCLES = '''\
"""Puts 26 circles into the unit square."""
import math

# EVOLVE-BLOCK-START
def centres():
    """One in the middle, eight around it, seventeen around these."""
    inner, outer = 0.14, 0.44
    found = [(0.5, 0.5)]
    for count, radius in ((8, inner), (17, outer)):
        for i in range(count):
            angle = 2 * math.pi * i / count
            found.append((0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)))
    return found
# EVOLVE-BLOCK-END


def pack():
    """As large as the border and the nearest centre let them be."""
    points = centres()
    circles = []
    for x, y in points:
        nearest = min(math.dist((x, y), other) for other in points if other != (x, y))
        circles.append((x, y, min(x, y, 1 - x, 1 - y, nearest / 2)))
    return circles
'''
CIRCLE_EVALUATOR = """\
import importlib.util
import math


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    circles = program.pack()
    inside = all(r <= x <= 1 - r and r <= y <= 1 - r and r >= 0 for x, y, r in circles)
    apart = all(
        math.dist(a[:2], b[:2]) >= a[2] + b[2] - 1e-9
        for i, a in enumerate(circles) for b in circles[:i]
    )
    valid = len(circles) == 26 and inside and apart
    total = sum(r for _, _, r in circles) if valid else 0.0
    return {"sum_radii": total, "validity": float(valid), "combined_score": total / 2.635}
"""
MODULES = """\
# EVOLVE-BLOCK-START
def pipeline():
    return {"loader": 1, "scaler": 4, "model": 3, "format": 8}
# EVOLVE-BLOCK-END
"""
MODULE_EVALUATOR = """\
import json, subprocess, sys
RIGHT = {"loader": 2, "scaler": 2, "model": 3, "format": 4}


def evaluate(program_path):
    code = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['pipeline']()))"
    said = subprocess.run(
        [sys.executable, "-c", code, program_path], capture_output=True, check=True, text=True
    )
    chosen = json.loads(said.stdout)
    right = sum(chosen.get(name) == value for name, value in RIGHT.items())
    return {"modules_right": right / len(RIGHT)}
"""
SETTINGS = """\
max_iterations: 100
llm:
  primary_model: "a-model"  # the larger one
  api_base: "https://models.example/v1"
evaluator:
  timeout: 20
"""


def task(
    path: Path, program: str, evaluator: str, directory: str = "", **files: str
) -> ToyRepository:
    path.mkdir()
    toy = ToyRepository(path)
    toy.git("init", "-q", "-b", "main")
    base = f"{directory}/" if directory else ""
    toy.write(f"{base}initial_program.py", program)
    toy.write(f"{base}evaluator.py", evaluator)
    toy.write(f"{base}config.yaml", SETTINGS)
    for name, text in files.items():
        toy.write(f"{base}{name}.txt", text)
    toy.commit("a task")
    return toy


def started(toy: ToyRepository, treewright, directory: str = "") -> configuration.Config:
    done = treewright("init", "--from", "openevolve", str(toy.path / directory))
    assert done.returncode == 0, done.stderr
    toy.commit("to be searched")
    return configuration.load(toy.path / "treewright.toml")


def search(toy: ToyRepository, treewright, *flags: str):
    return treewright(
        "tree", "--tree-run-id", "run", "--make-baseline", *flags, "--repo", str(toy.path)
    )


def best(toy: ToyRepository) -> float:
    manifest = store.load(toy.run_dir("run"))
    rows = [
        (toy.run_dir("run") / node.baseline_results_csv_path).read_text().splitlines()[1]
        for node in manifest.nodes.values()
    ]
    assert all(row.split(",")[:2] == ["0", "ok"] for row in rows)
    return max(float(row.split(",")[2]) for row in rows)


def test_circle_packing_is_promoted_by_its_single_metric(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", CIRCLES, CIRCLE_EVALUATOR, "examples/circle packing")
    config = started(toy, treewright, "examples/circle packing")
    assert config.editable_blocks == ["examples/circle packing/initial_program.py"]
    assert config.sweep.timeout_seconds == 80
    assert config.primary.deterministic, "it was measured, and is the same every time"
    assert set(config.protected_paths) == {
        "examples/circle packing/config.yaml",
        "examples/circle packing/evaluator.py",
        "examples/circle packing/treewright_sweep.py",
    }
    done = search(toy, treewright, "--ideas-per-node", "9", "--max-depth", "1")
    assert done.returncode == 0, done.stderr
    manifest = store.load(toy.run_dir("run"))
    root = manifest.nodes["n0000"].baseline_results_csv_path
    before = float((toy.run_dir("run") / root).read_text().splitlines()[1].split(",")[2])
    assert 0.2 < before < best(toy) < 1.0
    assert validate(toy.run_dir("run"), toy.path) == []
    fates = {e.error.code for e in manifest.evaluations.values() if e.error}
    assert "outside_block_changed" not in fates, "nothing outside of the block is proposed"


def test_the_modules_of_k_modules_are_found_in_turn(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", MODULES, MODULE_EVALUATOR)
    started(toy, treewright)
    done = search(toy, treewright, "--ideas-per-node", "8", "--max-depth", "3", "--until-done")
    assert done.returncode == 0, done.stderr
    assert best(toy) == 1.0
    assert json.loads(done.stdout)["stop_reason"] == "max_depth_reached"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("initial_program.py", "# EVOLVE-BLOCK-END\n+", "import os"), "outside_block_changed"),
        (("evaluator.py", "", ""), "protected_path_changed"),
    ],
)
def test_only_the_block_may_change(
    tmp_path: Path, treewright, change: tuple[str, str, str], code: str
) -> None:
    toy = task(tmp_path / "r", MODULES, MODULE_EVALUATOR)
    started(toy, treewright)
    text = (toy.path / "treewright.toml").read_text()
    start, end = text.index("[[ideas]]"), text.index("# Who implements")
    directory = '[[ideas]]\nsource = "directory"\npath = "ideas"\n\n'
    toy.write("treewright.toml", text[:start] + directory + text[end:])
    target = toy.path / change[0]
    before = target.read_text()
    target.write_text(before + "import os\n")
    toy.write("ideas/00.md", idea("Reach out", toy.git("diff", "--", change[0])))
    target.write_text(before)
    toy.write("extra.py", "")
    toy.git("add", "--intent-to-add", "extra.py")
    toy.write("ideas/01.md", idea("Add a file", toy.git("diff", "--", "extra.py")))
    (toy.path / "extra.py").unlink()
    toy.commit("ideas")
    done = search(toy, treewright, "--max-depth", "1")
    assert done.returncode == 0, done.stderr
    manifest = store.load(toy.run_dir("run"))
    codes = [e.error.code for e in manifest.evaluations.values() if e.error]
    assert codes == [code, "outside_block_changed"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"initial_program.py": MODULES}, "no evaluator.py with `def evaluate(program_path)`"),
        (
            {"evaluator.py": MODULE_EVALUATOR, "initial_program.py": "x = 1\n"},
            "has lines with EVOLVE-BLOCK-START and EVOLVE-BLOCK-END",
        ),
        (
            {"evaluator.py": MODULE_EVALUATOR, "a.py": MODULES, "b.py": MODULES},
            "a.py and b.py in",
        ),
    ],
)
def test_missing_files_are_named(
    tmp_path: Path, treewright, files: dict[str, str], said: str
) -> None:
    toy = ToyRepository(tmp_path)
    toy.git("init", "-q")
    for name, text in files.items():
        toy.write(name, text)
    done = treewright("init", "--from", "openevolve", str(tmp_path))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert said in done.stderr
    assert not (tmp_path / "treewright.toml").exists()


def test_a_directory_without_from_and_a_repo_with_it_are_errors(tmp_path: Path, treewright) -> None:
    assert "goes with --from" in treewright("init", str(tmp_path)).stderr
    done = treewright("init", "--from", "openevolve", "--repo", str(tmp_path), str(tmp_path))
    assert "--repo does not go with --from" in done.stderr


def sweep(
    path: Path, evaluator: str, program: str = MODULES, settings: str = ""
) -> subprocess.CompletedProcess[str]:
    path.mkdir()
    (path / "initial_program.py").write_text(program)
    (path / "evaluator.py").write_text(evaluator)
    (path / "json.py").write_text("raise SystemExit('not the standard library')\n")
    (path / "config.yaml").write_text(f"evaluator:\n  timeout: 5\n{settings}")
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    script = path / SWEEP
    script.write_text(evolve_tasks.find_openevolve(path, path).sweep)
    return subprocess.run(
        [sys.executable, "-I", script.name], cwd=path, capture_output=True, text=True, timeout=60,
        check=False, env={"TREEWRIGHT_RESULTS_CSV": str(path / "out.csv"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "row"),
    [
        ("return {'combined_score': 2, 'error': 'beware'}", "0,failed,"),
        ("return {'combined_score': 2, 'status': 'crashed'}", "0,failed,"),
        ("return {'combined_score': 2, 'status': 'ok'}", "0,ok,2"),
        ("return {'score': 0} if program_path else {'combined_score': 1}", "0,failed,"),
        ("return {'a': 1.0, 'b': 3, 'ok': True, 'note': 'text'}", "0,ok,2.0"),
        ("return {'combined_score': float('nan')}", "0,failed,"),
        ("return {'combined_score': '3'}", "0,failed,"),
        ("return {'a': 1.0, 'b': float('inf')}", "0,failed,"),
        ("return 3", "0,failed,"),
        ("raise ValueError('no')", "0,failed,"),
        ("import os; os._exit(0)", "0,failed,"),
        ("print('noise'); return {'combined_score': 1}", "0,ok,1"),
        ("import random; return {'combined_score': random.Random(0).randrange(1, 2)}", "0,ok,1"),
    ],
)
def test_the_sweep_validates_data_from_the_pipe(tmp_path: Path, body: str, row: str) -> None:
    done = sweep(tmp_path / "r", f"def evaluate(program_path):\n    {body}\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r/out.csv").read_text().splitlines() == [
        "config_id,status,combined_score",
        row,
    ]
    if "beware" in body:
        assert "the evaluator says: beware" in done.stderr


def test_a_score_of_zero_after_a_traceback_is_a_failure(tmp_path: Path) -> None:
    body = (
        "    try:\n        raise ValueError('no judge is\\nset up')\n"
        "    except ValueError:\n        traceback.print_exc()\n"
        "        return {'done': 0, 'eval_time': 0.5, 'combined_score': 0.0}\n"
    )
    evaluator = f"import traceback\n\n\ndef evaluate(program_path):\n{body}"
    done = sweep(tmp_path / "r", evaluator)
    assert (tmp_path / "r/out.csv").read_text().splitlines()[1] == "0,failed,"
    said = "config 0: the evaluator says: a score of 0, after ValueError: no judge is"
    assert done.stderr.splitlines()[-1] == said
    printed = evaluator.replace("0.0}", "0.5}")
    sweep(tmp_path / "s", printed)
    assert (tmp_path / "s/out.csv").read_text().splitlines()[1] == "0,ok,0.5"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import a_package_that_is_missing", "ModuleNotFoundError: No module named 'a_package"),
        ("raise SystemExit('the data are\\nmissing')", "config 0: the data are missing"),
        ("import sys; sys.exit()", "config 0: SystemExit:"),
        ("import sys; sys.stdout.buffer.write(b'x'); 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_the_last_line_of_the_log_says_why_there_is_no_answer(
    tmp_path: Path, body: str, said: str
) -> None:
    done = sweep(tmp_path / "r", f"def evaluate(program_path):\n    {body}\n")
    assert (tmp_path / "r/out.csv").read_text().splitlines()[1] == "0,failed,"
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "draw",
    [
        "np.random.default_rng(42).random()",
        "np.random.default_rng(seed=42).random()",
        "np.random.RandomState(seed=42).random()",
        "np.random.default_rng(np.random.SeedSequence(entropy=42)).random()",
        "(np.random.seed(seed=42), np.random.random())[1]",
        "(random.seed(a=42), random.random())[1]",
        "random.Random(42).random()",
    ],
)
def test_a_fixed_seed_is_another_one_in_every_config(tmp_path: Path, draw: str) -> None:
    evaluator = (
        "import random\nimport numpy as np\n\n\ndef evaluate(program_path):\n"
        f"    return {{'combined_score': {draw}}}\n"
    )
    scores = []
    for name in ("r", "s"):
        path = tmp_path / name
        sweep(path, evaluator)
        script = path / SWEEP
        text = script.read_text().replace("A_SEED = False", "A_SEED = True", 1)
        script.write_text(text.replace("ALL_CONFIGS = 1\n", "ALL_CONFIGS = 2\n", 1))
        environment = {"TREEWRIGHT_RESULTS_CSV": str(path / "out.csv"), "TREEWRIGHT_SEED": "1"}
        subprocess.run([sys.executable, "-I", SWEEP], cwd=path, check=True, env=environment)
        scores.append((path / "out.csv").read_text().splitlines()[1:])
    assert scores[0] == scores[1], "a config is the same every time"
    assert scores[0][0].startswith("0,ok,")
    assert scores[0][0][2:] != scores[0][1][2:], "two configs are two draws"


def test_features_do_not_count_and_a_mean_is_warned_of(tmp_path: Path, treewright) -> None:
    evaluator = "def evaluate(path):\n    return {'a': 1.0, 'lag': 3.0, 'length': 90, 'ok': True}\n"
    toy = task(tmp_path / "r", MODULES, evaluator)
    toy.write("config.yaml", 'database:\n  feature_dimensions: ["length"]\n')
    toy.commit("features")
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert "so the score is the mean of a, lag, as in OpenEvolve" in done.stderr + done.stdout
    assert "# Warning: the evaluator returns no" in (toy.path / "treewright.toml").read_text()
    assert "Measured combined_score: 2 with" in done.stderr + done.stdout


CHOICES = """\
# elsewhere: ["not", "in the block"]
elsewhere = "not"
# EVOLVE-BLOCK-START
# format: ["csv", "json", 3]
# absent: ["a", "b"]
# broken: [oh]
def pipeline():
    return {"format": "csv", "version": "2"}
# EVOLVE-BLOCK-END
"""


def test_options_are_read_from_comments_in_the_block(tmp_path: Path, treewright) -> None:
    evaluator = CIRCLE_EVALUATOR.partition("def evaluate")[0] + (
        "def evaluate(program_path):\n    text = open(program_path).read()\n"
        "    return {'combined_score': float('\"json\"' in text.partition('return')[2])}\n"
    )
    toy = task(tmp_path / "r", CHOICES, evaluator)
    config = started(toy, treewright)
    (source,) = config.ideas
    assert isinstance(source, configuration.MutateIdeas)
    assert source.options == {"format": ["csv", "json", 3]}
    done = search(toy, treewright, "--max-depth", "1")
    assert best(toy) == 1.0, done.stderr


def test_a_program_without_numbers_asks_a_model(tmp_path: Path, treewright) -> None:
    bare = 'SIZE = 3\n# EVOLVE-BLOCK-START\ndef pipeline():\n    return "a"\n# EVOLVE-BLOCK-END\n'
    toy = task(tmp_path / "r", bare, "def evaluate(path):\n    return {'combined_score': 1.0}\n")
    (source,) = started(toy, treewright).ideas
    assert isinstance(source, configuration.LlmIdeas)


def test_what_the_sweep_said_of_a_missing_row_is_shown(tmp_path: Path, treewright) -> None:
    evaluator = CASCADE.replace('program.pipeline()["format"]', 'program.pipeline()["loader"]')
    toy = task(tmp_path / "r", MODULES.replace('"loader": 1', '"loader": 8'), evaluator)
    started(toy, treewright)
    done = search(toy, treewright, "--ideas-per-node", "8", "--max-depth", "1")
    said = "config 0: evaluate_stage1 gave 0.4: below its threshold 0.5"
    assert f"the sweep said: {said}" in done.stderr
    report = (toy.run_dir("run") / "TREE_SUMMARY.md").read_text()
    assert "; the sweep said: config 0: evaluate" in report


def test_evolve_blocks_are_recognised() -> None:
    text = "a\n# EVOLVE-BLOCK-START\nb\n# EVOLVE-BLOCK-END\nc\n"
    assert blocks.outside(text) == "a\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\nc\n"
    (span,) = blocks.spans(text.encode())
    assert text.encode()[slice(*span)] == b"b\n"
    smuggled = text.replace("b\n", "b\n# EVOLVE-BLOCK-END\nx\n# EVOLVE-BLOCK-START\n")
    assert blocks.outside(smuggled) != blocks.outside(text)
    assert not blocks.has_block("# EVOLVE-BLOCK-END\n# EVOLVE-BLOCK-START\n")


@pytest.mark.parametrize(("ending", "outside"), [("\n", []), ("\r\n", ["a.py"])])
def test_line_endings_outside_the_block_do_not_affect_the_block(
    toy: ToyRepository, ending: str, outside: list[str]
) -> None:
    text = "a\n# EVOLVE-BLOCK-START\nb\n# EVOLVE-BLOCK-END\nc\n"
    toy.write("a.py", text)
    toy.commit("a block")
    (toy.path / "a.py").write_bytes(
        text.replace("b\n", "d\n").replace("c\n", f"c{ending}").encode()
    )
    toy.git("add", "a.py")
    assert blocks.changed_outside(toy.path, ["a.py"], ["a.py"]) == outside


def test_the_template_keeps_answers_out_of_reach(tmp_path: Path, treewright) -> None:
    toy = ToyRepository(tmp_path / "r")
    toy.path.mkdir()
    toy.git("init", "-q")
    toy.write("guess.py", "def double(x):\n    return 2 * x\n")
    toy.commit("code")
    done = treewright("init", "--sweep-template", "--repo", str(toy.path))
    assert done.returncode == 0, done.stderr
    config = configuration.load(toy.path / "treewright.toml")
    assert config.sweep.command.endswith(" -I treewright_sweep.py")
    assert "treewright_sweep.py" in config.protected_paths
    assert (config.sweep.checkout, config.sweep.sealed) == ("root", True)
    script = (toy.path / "treewright_sweep.py").read_text()
    assert script == read_template("sweep")
    toy.write("treewright_sweep.py", answering.filled_in())
    toy.write("guess.py", answering.GUESS)
    assert answering.swept(toy, 3)[1:] == ["0,ok,-1", "1,ok,-1", "2,ok,-1"]
    cheat = "import os, sys\nsys.modules['__main__'].judge = lambda *_: {'score': 9e9}\n"
    toy.write("guess.py", cheat + "def double(x):\n    print('0,ok,9e9')\n    return x\n")
    assert answering.swept(toy, 2)[1:] == ["0,ok,0", "1,ok,-1"]


def test_files_that_the_sweep_reads_are_protected(tmp_path: Path) -> None:
    toy = ToyRepository(tmp_path / "r")
    toy.path.mkdir()
    toy.git("init", "-q")
    toy.write("tools/sweep.py", "import model\nopen('cases.json'); open('tools/answers.csv')\n")
    toy.write("cases.json", "[]")
    toy.write("tools/answers.csv", "1\n")
    toy.write("notes.txt", "not read\n")
    toy.write("model.py", "RATE = 0.1\n")
    found = survey(toy.path)
    assert {"cases.json", "tools/answers.csv", "tools/sweep.py"} <= set(found.protected)
    assert "notes.txt" not in found.protected
    assert found.tunable == ["model.py"]


@pytest.mark.parametrize("inside", ["", "task/"])
def test_a_plain_init_recognises_a_task(tmp_path: Path, inside: str) -> None:
    repo = tmp_path / "r"
    (repo / inside).mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    (repo / inside / "initial_program.py").write_text(CIRCLES)
    (repo / inside / "evaluator.py").write_text(CIRCLE_EVALUATOR)
    said = CliRunner().invoke(init, ["--repo", str(repo)])
    assert said.exit_code == 0, said.output
    assert f"{inside}initial_program.py is a task of OpenEvolve" in said.output
    assert (repo / inside / SWEEP).exists()
    config = configuration.load(repo / "treewright.toml")
    assert config.editable_blocks == [f"{inside}initial_program.py"]
    again = CliRunner().invoke(init, ["--repo", str(repo), "--force"])
    assert "is a task of OpenEvolve" in again.output, "the sweep that init wrote is no obstacle"
    (repo / "treewright.toml").unlink()
    (repo / inside / SWEEP).unlink()
    writes = CIRCLE_EVALUATOR + '# writes to os.environ["TREEWRIGHT_RESULTS_CSV"]\n'
    (repo / inside / "evaluator.py").write_text(writes)
    said = CliRunner().invoke(init, ["--repo", str(repo)])
    assert "OpenEvolve" not in said.output


def test_several_tasks_are_listed_and_none_is_chosen(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "initial_program.py").write_text(CIRCLES)
        (tmp_path / name / "evaluator.py").write_text(CIRCLE_EVALUATOR)
    said = CliRunner().invoke(init, ["--repo", str(tmp_path)])
    assert said.exit_code == 0, said.output
    for name in ("a", "b"):
        assert f"treewright init --force --from openevolve {name}" in said.output


CASCADE = """\
import importlib.util


def size(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program.pipeline()["format"]


def evaluate_stage1(program_path):
    return {"combined_score": size(program_path) / 10, "quick": 1.0}


def evaluate_stage2(program_path):
    print("stage 2 ran")
    return {"combined_score": size(program_path) / 5}


def evaluate(program_path):
    raise SystemExit("a cascade does not call it")
"""


@pytest.mark.parametrize(
    ("size", "row", "is_noisy"),
    [
        (8, "0,ok,1.6", False),
        (6, "0,failed,", False),
        (7, "0,ok,1.4", False),
        (6, "0,ok,1.2", True),
    ],
    ids=["root", "worse", "threshold", "worse-by-chance"],
)
def test_a_cascade_stops_bad_candidates_at_an_early_stage(
    tmp_path: Path, size: int, row: str, is_noisy: bool
) -> None:
    root, code = tmp_path / "root", tmp_path / "code"
    settings = "  cascade_thresholds: [0.65, 0.9]\n"
    sweep(root, CASCADE, settings=settings)
    if is_noisy:  # as `init` writes it for a task that depends on random numbers
        text = (root / SWEEP).read_text()
        fixed, seeded = (f"EVERY_CONFIG_IS_A_SEED = {value}" for value in (False, True))
        assert fixed in text
        (root / SWEEP).write_text(text.replace(fixed, seeded))
    code.mkdir()
    (code / "initial_program.py").write_text(MODULES.replace('"format": 8', f'"format": {size}'))
    done = subprocess.run(
        [sys.executable, "-I", SWEEP], cwd=root, capture_output=True, text=True, timeout=60,
        check=False, env={
            "TREEWRIGHT_RESULTS_CSV": str(root / "out.csv"), "PATH": "/usr/bin:/bin",
            "TREEWRIGHT_CANDIDATE": str(code),
        },
    )  # fmt: skip
    assert (root / "out.csv").read_text().splitlines()[1] == row
    assert ("stage 2 ran" in done.stderr) == (row != "0,failed,")
    if row == "0,failed,":
        assert "evaluate_stage1 gave 0.6: below its threshold 0.65" in done.stderr


def test_a_root_below_a_threshold_sets_the_threshold(tmp_path: Path) -> None:
    settings = "  cascade_thresholds: [1.3]\n"
    done = sweep(tmp_path / "r", CASCADE, settings=settings)
    assert (tmp_path / "r/out.csv").read_text().splitlines()[1] == "0,ok,1.6", done.stderr


def test_without_a_cascade_only_evaluate_is_called(tmp_path: Path) -> None:
    whole = CASCADE.replace('raise SystemExit("a cascade does not call it")', "return {'s': 2.5}")
    sweep(tmp_path / "r", whole, settings="  cascade_evaluation: false\n")
    assert (tmp_path / "r/out.csv").read_text().splitlines()[1] == "0,ok,2.5"


CONFIG_YAML = """\
random_seed: 42
llm:
  models:
    - name: "small/model"   # cheap
      weight: 0.8
    - name: large
      weight: 0.2
  api_base: "https://models.example/v1"
  api_key: ${MODEL_KEY}
prompt:
  include_artifacts: false
  system_message: |
    Pack the circles.

    Use "sum of radii" as the \\ measure.
evaluator:
  timeout: 20
  cascade_evaluation: false
"""


def test_settings_are_carried_over(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", CIRCLES, CIRCLE_EVALUATOR)
    toy.write("config.yaml", CONFIG_YAML)
    config = started(toy, treewright)
    assert config.seed == 42
    assert config.task.strip() == 'Pack the circles.\n\nUse "sum of radii" as the \\ measure.'
    assert "ARTIFACT_CHARS = 0\n" in (toy.path / SWEEP).read_text()
    path = toy.path / "treewright.toml"
    text = path.read_text()
    start = text.index("# [[ideas]]")
    mutate = text.index("# Single edits")
    path.write_text(text[:mutate] + text[start:].replace("# ", ""))
    models = configuration.load(path)
    (source,) = models.ideas
    assert isinstance(source, configuration.LlmIdeas)
    assert source.model_weights == {"small/model": 0.8, "large": 0.2}
    assert source.endpoint.model == "small/model"
    assert source.endpoint.base_url == "https://models.example/v1"
    assert source.endpoint.api_key_env == "MODEL_KEY"
    assert isinstance(models.agents.coder, configuration.OpenaiBackend)


@pytest.mark.parametrize("name", ["initial_program.r", "initial_program.rs"])
def test_a_program_in_another_language_uses_model_ideas(
    tmp_path: Path, treewright, name: str
) -> None:
    toy = task(tmp_path / "r", CIRCLES, CIRCLE_EVALUATOR)
    toy.git("mv", "initial_program.py", name)
    config = started(toy, treewright)
    assert config.editable_blocks == [name]
    (source,) = config.ideas
    assert isinstance(source, configuration.LlmIdeas)
    assert source.endpoint.model == "a-model"
    assert not isinstance(config.agents.coder, configuration.PatchBackend)
    assert "path = " not in (toy.path / "treewright.toml").read_text()


def test_an_unreadable_setting_is_named(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", CIRCLES, CIRCLE_EVALUATOR)
    toy.write("config.yaml", "llm:\n  what is this\n")
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert done.returncode == 2
    assert "config.yaml cannot be read at line 2: 'what is this'" in done.stderr


def test_the_configuration_states_its_limits_and_offers_isolation(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text(CIRCLES)
    (tmp_path / "evaluator.py").write_text(CIRCLE_EVALUATOR)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    text = render_task(evolve_tasks.find_openevolve(tmp_path, tmp_path))
    assert "imports the program runs in one process with it" in text
    assert "docs/sweep-contract.md" in text
    limits = text.replace("# min =", "min =").replace("# max =", "max =")
    path = tmp_path / "treewright.toml"
    path.write_text(limits)
    (metric,) = configuration.load(path).metrics
    assert (metric.min, metric.max) == (0.0, 1.0)
