"""`treewright init` in repositories that were set up for other programs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toy import ToyRepository, idea
from treewright.tree import config as configuration
from treewright.tree.records import store
from treewright.tree.starter.yaml_subset import UnreadableYaml, look_up, read_yaml
from treewright.tree.validation import validate

SHINKA_PROGRAM = """\
# EVOLVE-BLOCK-START
def run():
    width = 3.0
    return width
# EVOLVE-BLOCK-END
"""
SHINKA_EVALUATOR = """\
import argparse, importlib.util, json, os


def main(program_path, results_dir):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    width = program.run()
    correct = width <= 6
    metrics = {"combined_score": width, "public": {"width": width}, "private": {"secret": 1}}
    with open(os.path.join(results_dir, "metrics.json"), "w") as f:
        json.dump(metrics, f)
    with open(os.path.join(results_dir, "correct.json"), "w") as f:
        json.dump({"correct": correct, "error": None if correct else "too wide"}, f)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", default="initial.py")
    parser.add_argument("--results_dir", default="results")
    arguments = parser.parse_args()
    main(arguments.program_path, arguments.results_dir)
"""
SHINKA_RUNNER = '''\
search_task_sys_msg = """You widen things.

Be creative."""
job_config = LocalJobConfig(eval_program_path="evaluate.py", time="00:02:30")
'''
SHINKA_SETTINGS = "evo_config:\n  llm_models:\n    - large\n    - small\n  language: python\n"

PREPARE = """\
TIME_BUDGET = 1.0  # seconds of training


def evaluate(steps, rate):
    return 2.0 - rate - 0.001 * steps
"""
TRAIN = """\
import time

from prepare import TIME_BUDGET, evaluate

RATE = 0.5
started = time.monotonic()
steps = 0
while time.monotonic() - started < TIME_BUDGET:
    time.sleep(TIME_BUDGET / 10)
    steps += 1
print(f"step {steps}", end="\\r")
print("---")
print(f"val_bpb:          {evaluate(0, RATE):.6f}")
print(f"total_seconds:    {time.monotonic() - started:.1f}")
"""
PROGRAM = """\
Edit `train.py`, never `prepare.py`. Run `uv run train.py`. Get the lowest val_bpb:

    grep "^val_bpb:" run.log
"""

BENCHMARK = """\
import argparse, importlib.util, json

parser = argparse.ArgumentParser()
parser.add_argument("--agent", required=True)
spec = importlib.util.spec_from_file_location("agent", parser.parse_args().agent)
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)
print(json.dumps({"score": agent.solve() / 10, "tasks": {"0": {"score": 99}}}, indent=2))
"""
GATE = "import sys, runpy\nsys.exit(runpy.run_path(sys.argv[2])['solve']() > 9)\n"
AGENT = "def solve():\n    effort = 4\n    return effort\n"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., ToyRepository]:
    def go(files: dict[str, str]) -> ToyRepository:
        toy = ToyRepository(tmp_path / "r")
        toy.path.mkdir()
        toy.git("init", "-q", "-b", "main")
        for name, text in files.items():
            toy.write(name, text)
        toy.commit("a task")
        return toy

    return go


def started(toy: ToyRepository, treewright, *flags: str) -> configuration.Config:
    done = treewright("init", *flags, cwd=toy.path)
    assert done.returncode == 0, done.stderr
    toy.commit("to be searched")
    return configuration.load(toy.path / "treewright.toml")


def searched(toy: ToyRepository, treewright, *flags: str) -> store.Manifest:
    done = treewright(
        "tree", "--tree-run-id", "run", "--make-baseline", "--max-depth", "1", *flags, cwd=toy.path
    )
    assert done.returncode == 0, done.stderr
    assert validate(toy.run_dir("run"), toy.path) == []
    return store.load(toy.run_dir("run"))


def replace_ideas(toy: ToyRepository, path: str, *edits: tuple[str, str]) -> None:
    """Let the search try these edits of a file instead of `mutate`."""
    text = (toy.path / "treewright.toml").read_text()
    start, end = text.index("[[ideas]]"), text.index("# Who implements")
    directory = '[[ideas]]\nsource = "directory"\npath = "ideas"\n\n'
    toy.write("treewright.toml", text[:start] + directory + text[end:])
    before = (toy.path / path).read_text()
    for number, (old, new) in enumerate(edits):
        toy.write(path, before.replace(old, new))
        toy.write(f"ideas/{number}.md", idea(f"Idea {number}", toy.git("diff", "--", path)))
    toy.write(path, before)
    toy.commit("ideas")


@pytest.mark.parametrize("inside", ["", "tasks/wide/"])
def test_a_shinka_repository_is_recognised(make, treewright, inside: str) -> None:
    toy = make(
        {
            f"{inside}initial.py": SHINKA_PROGRAM,
            f"{inside}evaluate.py": SHINKA_EVALUATOR,
            f"{inside}run_evo.py": SHINKA_RUNNER,
            f"{inside}shinka.yaml": SHINKA_SETTINGS,
        }
    )
    config = started(toy, treewright)
    assert config.editable_blocks == [f"{inside}initial.py"]
    assert {f"{inside}evaluate.py", f"{inside}shinka.yaml"} <= set(config.protected_paths)
    assert config.task == "\nYou widen things.\n\nBe creative.\n"[1:]
    assert config.sweep.timeout_seconds == 210
    assert '"large" = 1, "small" = 1' in (toy.path / "treewright.toml").read_text()
    replace_ideas(toy, f"{inside}initial.py", ("3.0", "5.0"), ("3.0", "50.0"))
    manifest = searched(toy, treewright, "--ideas-per-node", "2")
    first, second = manifest.evaluations.values()
    assert first.decision is not None
    assert second.decision is not None
    assert first.decision.fate == "promoted"
    assert "constraint_violated" in second.decision.gate.reasons


def test_an_autoresearch_repository_is_recognised(make, treewright) -> None:
    toy = make({"prepare.py": PREPARE, "train.py": TRAIN, "program.md": PROGRAM})
    config = started(toy, treewright)
    assert {"prepare.py", "program.md"} <= set(config.protected_paths)
    assert "train.py" not in config.protected_paths
    assert set(config.readable_paths) == {"prepare.py", "program.md"}
    (source,) = config.ideas
    assert isinstance(source, configuration.MutateIdeas)
    assert source.files == ["train.py"]
    assert (config.primary.name, config.primary.direction) == ("val_bpb", "minimize")
    assert config.primary.repeats == 3
    assert "Lower val_bpb" in config.task
    (clock,) = (metric for metric in config.metrics if metric.constraint)
    assert (clock.name, clock.max) == ("seconds", 2.5)


def test_a_training_run_that_extends_its_own_clock_is_rejected(make, treewright) -> None:
    toy = make({"prepare.py": PREPARE, "train.py": TRAIN, "program.md": PROGRAM})
    config = started(toy, treewright)
    text = (toy.path / "treewright.toml").read_text()
    assert config.primary.repeats == 3
    # One sweep is enough here, and a busy machine needs more time than the layout allows.
    text = text.replace("repeats = 3", "deterministic = true").replace("max = 2.5", "max = 12")
    toy.write("treewright.toml", text)
    longer = ("RATE = 0.5", "RATE = 0.7\nTIME_BUDGET = 14.0")
    replace_ideas(toy, "train.py", ("RATE = 0.5", "RATE = 0.6"), longer)
    manifest = searched(toy, treewright, "--ideas-per-node", "2")
    first, second = manifest.evaluations.values()
    assert first.decision is not None
    assert second.decision is not None
    assert first.decision.fate == "promoted"
    assert "constraint_violated" in second.decision.gate.reasons


def test_an_evo_repository_is_recognised(make, treewright) -> None:
    python = shlex.quote(sys.executable)
    settings = {
        "target": "agent/agent.py",
        "benchmark": f"{python} benchmark.py --agent {{target}}",
        "gate": f"{python} {{worktree}}/gate.py --agent {{target}}",
        "metric": "max",
    }
    toy = make(
        {
            "agent/agent.py": AGENT,
            "benchmark.py": BENCHMARK,
            "gate.py": GATE,
            ".gitignore": ".evo/\n",
        }
    )
    toy.write(".evo/meta.json", '{"active": "run_0000"}')
    toy.write(".evo/run_0000/config.json", json.dumps(settings))
    config = started(toy, treewright)
    assert {"benchmark.py", "gate.py"} <= set(config.protected_paths)
    assert config.tests is not None
    assert "agent/agent.py" in config.tests.command
    manifest = searched(toy, treewright, "--ideas-per-node", "2")
    fates = {e.error.code if e.error else e.decision.fate for e in manifest.evaluations.values()}
    assert fates == {"promoted", "gate_failed"}
    best = max(
        float((toy.run_dir("run") / n.baseline_results_csv_path).read_text().split(",")[-1])
        for n in manifest.nodes.values()
    )
    assert best == 0.8


def test_a_command_that_prints_a_number_becomes_the_sweep(make, treewright) -> None:
    toy = make(
        {
            "model.py": "DEPTH = 4\nTIME_BUDGET_SECONDS = 40\n",
            "measure.py": "import model\nprint('loss: 99')\nprint('loss:', 10 - model.DEPTH)\n",
            "test_model.py": "def test_model():\n    pass\n",
        }
    )
    command = f"{shlex.quote(sys.executable)} measure.py"
    config = started(toy, treewright, "--metric-command", command, "--pattern", r"loss: *(\d+)")
    assert {"measure.py", "test_model.py", "treewright_sweep.py"} <= set(config.protected_paths)
    (source,) = config.ideas
    assert isinstance(source, configuration.MutateIdeas)
    assert source.files == ["model.py"]
    assert (config.primary.name, config.primary.direction) == ("loss", "minimize")
    (clock,) = (metric for metric in config.metrics if metric.constraint)
    assert clock.max == 61
    text = (toy.path / "treewright.toml").read_text()
    replace_ideas(toy, "model.py", ("DEPTH = 4", "DEPTH = 8"), ("DEPTH = 4", "DEPTH = ''"))
    assert "[tests]" in text
    manifest = searched(toy, treewright, "--ideas-per-node", "2")
    first, second = manifest.evaluations.values()
    assert first.decision is not None
    assert first.decision.fate == "promoted"
    assert second.decision is not None
    assert second.decision.gate.reasons == ["incomplete_rows"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--metric-command", "true"], "give --metric-command and --pattern together"),
        (["--pattern", "x"], "give --metric-command and --pattern together"),
        (["--metric-command", "true", "--pattern", "("], "is not a regular expression"),
        (["--direction", "minimize"], "--direction goes with --metric-command"),
        (
            ["--metric-command", "true", "--pattern", "x", "--sweep-template"],
            "--metric-command does not go with --sweep-template",
        ),
        (["--from", "shinka", "."], "no evaluate.py in . that writes metrics.json"),
        (["--from", "autoresearch", "."], "no train.py in ."),
        (["--from", "evo", "."], "no .evo/config.json with `target` and `benchmark`"),
    ],
)
def test_unsupported_settings_are_reported(make, treewright, flags: list[str], said: str) -> None:
    toy = make({"a.txt": ""})
    done = treewright("init", *flags, cwd=toy.path)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert said in done.stderr
    assert not (toy.path / "treewright.toml").exists()


def test_a_script_that_writes_no_results_is_not_the_sweep(make, treewright) -> None:
    toy = make({"model.py": "RATE = 0.1\n", "benchmark.py": "import model\nprint(model.RATE)\n"})
    done = treewright("init", cwd=toy.path)
    assert "benchmark.py is not taken as the sweep: it writes no results" in done.stdout
    config = configuration.load(toy.path / "treewright.toml")
    assert "treewright_sweep.py" in config.sweep.command
    assert "benchmark.py" in config.protected_paths


@pytest.mark.parametrize(
    "files",
    [
        {"sweep.py": "from harness import sweep\nsweep()\n"},
        {"sweep.sh": "python3 harness.py\n"},
    ],
)
def test_a_module_of_the_sweep_may_write_the_results(
    make, treewright, files: dict[str, str]
) -> None:
    harness = 'def sweep():\n    print("config_id,status,loss")\n'
    toy = make({**files, "harness.py": harness, "model.py": "RATE = 0.1\n"})
    (script,) = files
    assert started(toy, treewright).sweep.command.endswith(script)


def test_init_mentions_a_time_budget_of_the_users_sweep(make, treewright) -> None:
    toy = make({"train.py": "MAX_MINUTES = 2\n", "sweep.sh": 'echo > "$TREEWRIGHT_RESULTS_CSV"\n'})
    started(toy, treewright)
    text = (toy.path / "treewright.toml").read_text()
    assert "# train.py has a time budget of 120 s, which a candidate can extend." in text
    assert "# max = 174" in text


def test_yaml_settings_are_read() -> None:
    text = """\
# a comment
a: 1            # one
b:
  - name: "x: y"
    weight: 0.5
  - z
c: [1, 'two', "th, ree"]
d: {e: 1, f: off}
text: |
  first

    indented # no comment
folded: >-
  one
  two
quoted: "goes
  on"
empty:
last: ${VAR}
"""
    assert read_yaml(text) == {
        "a": 1,
        "b": [{"name": "x: y", "weight": 0.5}, "z"],
        "c": [1, "two", "th, ree"],
        "d": {"e": 1, "f": "off"},
        "text": "first\n\n  indented # no comment",
        "folded": "one two",
        "quoted": "goes on",
        "empty": None,
        "last": "${VAR}",
    }
    assert look_up(read_yaml(text), "b", "name") is None
    assert read_yaml("") == {}
    for broken in ("a:\n  b\nc\n", 'a: "open\n', "a: [1,\n"):
        with pytest.raises(UnreadableYaml):
            read_yaml(broken)
