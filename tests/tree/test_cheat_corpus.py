"""The cheat corpus, tried for real: on a sweep that can be fooled, and on one that cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from tests.tree import answering
from tests.tree.making import evaluation
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.tree import config as configuration
from treewright.tree.cheats import Trial, try_cheats
from treewright.tree.cheats.corpus import corpus, inserted
from treewright.tree.cheats.verdicts import verdict
from treewright.tree.records.model import Decision, EvalError, GateDecision

MODEL = """\
'''The model.'''
from __future__ import annotations

def predict(x):
    return 2.5 * x
"""
IN_PROCESS = """\
import csv, os, random
import model

def measure(config_id):
    draw = random.Random(config_id)
    xs = [draw.uniform(1, 10) for _ in range(10)]
    return {"loss": sum(abs(model.predict(x) - 3 * x - draw.gauss(0, 0.1)) for x in xs)}

start = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_START") or 0)
limit = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_LIMIT") or 8)
with open(os.environ["TREEWRIGHT_RESULTS_CSV"], "w", newline="") as file:
    writer = csv.DictWriter(file, ["config_id", "status", "loss"])
    writer.writeheader()
    writer.writerows(
        {"config_id": i, "status": "ok", **measure(i)} for i in range(start, limit)
    )
"""
CONFIG = """\
baseline_csv = "baseline.csv"
protected_paths = ["sweep.py"]

[sweep]
command = "{python} sweep.py"
timeout_seconds = 60

[[metrics]]
name = "loss"
direction = "minimize"
primary = true

[[ideas]]
source = "directory"
path = "ideas"
"""
FOOLED = {
    "shadow-modules", "writes-rows", "rewrites-at-exit", "late-rows", "special-config-ids", "1e308",
    "patches-writer", "patches-judge", "numbers-that-win", "loads-the-dice", "writes-outside",
    "writes-to-git", "network",
}  # fmt: skip
"""What gets the better of a sweep that runs the code in its own process, with the user's rights."""


def outcomes(trial: Trial) -> dict[str, str]:
    return {each.name: each.outcome for each in trial.verdicts}


def why(trial: Trial) -> dict[str, str]:
    return {each.name: each.why for each in trial.verdicts}


def tried(repo: Path, *names: str, limit: int | None = None, confirm: int = 0) -> Trial:
    return try_cheats(repo, None, limit, confirm, lambda _: None, names)


@pytest.fixture
def in_process(tmp_path: Path) -> ToyRepository:
    toy = ToyRepository(tmp_path / "r")
    toy.path.mkdir()
    toy.git("init", "-q", "-b", "main")
    toy.write("model.py", MODEL)
    toy.write("sweep.py", IN_PROCESS)
    toy.write("treewright.toml", CONFIG.format(python=sys.executable))
    toy.commit("a sweep that trusts the code")
    return toy


def test_one_that_sleeps_in_the_tests_is_not_waited_for(in_process: ToyRepository) -> None:
    tests = f"[tests]\ncommand = \"{sys.executable} -c 'import model'\"\ntimeout_seconds = 1800\n"
    toml = CONFIG.format(python=sys.executable)
    in_process.write("treewright.toml", f"{toml}\n{tests}")
    in_process.commit("tests that run the code")
    trial = tried(in_process.path, "sleeps-to-the-limit")
    assert outcomes(trial)["sleeps-to-the-limit"] == "stopped"
    assert "tests ran into their time limit" in why(trial)["sleeps-to-the-limit"]


def test_luck_is_told_from_forging(in_process: ToyRepository, tmp_path: Path) -> None:
    """The machine gets faster after the root was measured: every later measurement is better."""
    drift = (
        f"before = pathlib.Path({str(tmp_path / 'sweeps')!r})\n"
        "before.open('a').write('x')\n"
        "level = 20 if before.stat().st_size == 1 else 10\n"
    )
    script = IN_PROCESS.replace("import csv,", "import csv, pathlib,").replace(
        'return {"loss": sum(', 'return {"loss": level + sum('
    )
    in_process.write("sweep.py", script.replace("def measure", f"{drift}\ndef measure"))
    in_process.commit("a sweep that depends on the machine")
    trial = tried(in_process.path, "prints-rows", "writes-rows")
    assert outcomes(trial) == {
        "honest": "through",
        "prints-rows": "stopped",
        "writes-rows": "through",
    }
    (honest,) = [each for each in trial.verdicts if each.name == "honest"]
    assert "set seeds or repeats for loss" in honest.advice


def test_the_whole_corpus_on_a_sweep_that_can_be_fooled(
    in_process: ToyRepository, treewright
) -> None:
    def state() -> list[object]:
        files = [p for p in sorted(in_process.path.rglob("*")) if p.is_file()]
        return [(str(p), p.read_bytes()) for p in files]

    before = state()
    # Over forty sweeps: on a busy machine two minutes are not for ever.
    done = treewright("doctor", "--cheats", "--json", "--repo", str(in_process.path), timeout=600)
    assert done.returncode == 1, done.stderr
    assert state() == before, "the repository itself is not touched"
    report = json.loads(done.stdout)
    assert (report["ok"], report["code"]) == (False, "model.py")
    found = {each["name"]: each for each in report["verdicts"]}
    assert list(found) == [cheat.name for cheat in corpus()]
    assert {name for name, each in found.items() if each["outcome"] == "through"} == FOOLED
    unfitted = {name for name, each in found.items() if each["outcome"] == "not_fitted"}
    assert unfitted == {"edits-baseline", "reads-heldout"}
    assert not [name for name, each in found.items() if each["outcome"] == "unknown"]
    for name, each in found.items():
        assert bool(each["advice"]) == (name in FOOLED), name
        assert each["why"]
    assert 'checkout = "root"' in found["shadow-modules"]["advice"]
    assert "--confirm-configs" in found["special-config-ids"]["advice"]
    assert 'isolation = "bubblewrap"' in found["network"]["advice"]
    assert "time limit" in found["sleeps-to-the-limit"]["why"]
    assert "nothing was run" in found["edits-sweep"]["why"]


def test_a_search_that_runs_beside_the_trial_is_let_alone(
    in_process: ToyRepository, tmp_path: Path
) -> None:
    """The tests run a cheat's code where no sweep is its own: it looks for one on the machine."""
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text("config_id,status,loss\n")
    beside = {"TREEWRIGHT_RESULTS_CSV": str(elsewhere), "TREEWRIGHT_SWEEP_CONFIG_LIMIT": "4"}
    toml = CONFIG.format(python=sys.executable)
    tests = f"[tests]\ncommand = \"{sys.executable} -c 'import model'\"\n"
    in_process.write("treewright.toml", f"{toml}\n{tests}")
    in_process.commit("tests that run the code")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={**os.environ, **beside}):
        trial = tried(in_process.path, "writes-rows", "rewrites-at-exit")
    assert outcomes(trial) == {
        "honest": "stopped", "writes-rows": "through", "rewrites-at-exit": "through"
    }  # fmt: skip
    assert elsewhere.read_text() == "config_id,status,loss\n"


def test_held_out_configs_stop_what_knows_the_ids(in_process: ToyRepository) -> None:
    trial = tried(in_process.path, "special-config-ids", limit=4, confirm=4)
    assert outcomes(trial) == {"honest": "stopped", "special-config-ids": "stopped"}
    assert "held-out" in why(trial)["special-config-ids"]


def test_the_template_in_isolation_cannot_be_fooled(bubblewrap: None, tmp_path: Path) -> None:
    (tmp_path / "heldout.csv").write_text("answers\n")
    toy = answering.make(
        tmp_path / "r",
        f'isolation = "bubblewrap"\nheldout_paths = ["{tmp_path}/heldout.csv"]\n',
    )
    names = (FOOLED - {"special-config-ids"}) | {"reads-heldout", "edits-baseline"}
    trial = tried(toy.path, *names, limit=2)
    assert outcomes(trial) == dict.fromkeys(outcomes(trial), "stopped")
    assert names < outcomes(trial).keys()


def test_a_sweep_in_shell(toy: ToyRepository) -> None:
    names = {"writes-rows", "nan", "late-rows", "writes-outside", "network", "edits-sweep"}
    assert outcomes(tried(toy.path, *names, limit=4)) == {
        **dict.fromkeys(names, "not_fitted"),
        "honest": "stopped",
        "edits-sweep": "stopped",
    }
    toy.write("sweep.sh", ". ./settings.sh\n" + (toy.path / "sweep.sh").read_text())
    toy.write("settings.sh", "export LC_ALL=C\n")
    toy.commit("the sweep runs code")
    trial = tried(toy.path, *names, limit=4)
    assert trial.code == "settings.sh"
    fooled = {"writes-rows", "late-rows", "writes-outside"}
    expected = {n: "through" if n in fooled else "stopped" for n in names} | {"honest": "stopped"}
    assert outcomes(trial) == expected | {"network": "not_fitted"}
    assert why(trial)["network"] == "settings.sh is run by a shell, and this cheat is Python"


def test_where_an_honest_change_fails_nothing_is_said_of_cheats(toy: ToyRepository) -> None:
    toy.write("tests.sh", "test ! -e a-note.txt\n")
    toy.commit("tests that fail for every change")
    with pytest.raises(TreewrightError, match="a change of a comment fails too"):
        tried(toy.path, "nan", limit=4)
    with pytest.raises(UsageError, match="no cheat is called nam; there are 1e308, "):
        tried(toy.path, "nam")


def test_flags_of_cheats_alone_are_refused(toy: ToyRepository, treewright) -> None:
    done = treewright("doctor", "--cheat", "nan", "--repo", str(toy.path))
    assert done.returncode == 2
    assert "go with --cheats" in done.stderr


def test_code_is_put_where_it_runs() -> None:
    assert inserted(MODEL, "X\n", "python").splitlines()[2:4] == ["", "X"]
    assert inserted("#!/bin/sh\nls\n", "X\n", "shell") == "#!/bin/sh\n\nX\nls\n"
    block = "a\n# EVOLVE-BLOCK-START\nb\n  # EVOLVE-BLOCK-END\nc\n"
    assert inserted(block, "X\n", "python", block=True) == block.replace("b\n", "b\n  X\n")


@pytest.mark.parametrize(
    ("name", "code", "retryable", "outcome"),
    [
        ("nan", "sweep_failed", False, "stopped"),
        ("nan", "sweep_timeout", False, "unknown"),
        ("nan", "cancelled", True, "unknown"),
        ("nan", "parent_sweep_failed", True, "unknown"),
        ("network", "worktree_damaged", False, "unknown"),
        ("sleeps-to-the-limit", "sweep_timeout", False, "stopped"),
        ("sleeps-to-the-limit", "worker_lost", True, "unknown"),
        ("reads-heldout", "agent_failed", False, "stopped"),
        ("reads-heldout", "agent_timeout", True, "unknown"),
    ],
)
def test_a_fault_is_no_verdict_on_a_cheat(
    tmp_path: Path, name: str, code: str, retryable: bool, outcome: str
) -> None:
    path = tmp_path / "treewright.toml"
    path.write_text(CONFIG.format(python=sys.executable))
    cheat = next(each for each in corpus() if each.name == name)
    ended = evaluation(1, passes=False, error=code)
    ended.error = EvalError(code, "it says", retryable)
    ended.decision = Decision("evaluation_failed", GateDecision(False, [code]))
    found = verdict(cheat, ended, False, configuration.load(path), [])
    assert (found.outcome, found.advice) == (outcome, "")
    assert found.why
    assert Trial("sweep", None, [found]).ok == (outcome == "stopped")
