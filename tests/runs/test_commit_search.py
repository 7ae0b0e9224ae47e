"""`treewright.search_commits`: the run of the command line, from Python."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click
import pytest

import treewright
from tests.decisions import decisions, events, repeated_evaluations
from tests.faults.running import RUN, Gate, add_gate, copy_of, finish, nothing_runs
from tests.signals import as_python_from_a_terminal
from tests.toy import ToyRepository
from treewright.cli.tree import tree
from treewright.kernel.errors import LockActive, UsageError
from treewright.runs import commit_search
from treewright.tree.run.creation import DEFAULT_SHAPE
from treewright.tree.run.parallelism import Parallelism

SHAPE: dict[str, Any] = {
    "ideas_per_node": 3, "beam_width": 2, "max_depth": 2, "sweep_config_limit": 6,
    "confirm_configs": 3,
}  # fmt: skip
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in SHAPE.items()]
CALL = """
import json, sys, treewright
repo, shape = sys.argv[1], json.loads(sys.argv[2])
try:
    run = treewright.search_commits(repo, run_id="run", preflight=False, **shape)
except KeyboardInterrupt:
    sys.exit(130)
print(run.stop_reason)
"""


def start(toy: ToyRepository, gate: Gate) -> subprocess.Popen[str]:
    """`search_commits` in another process, which stands at the gate."""
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, str(toy.path), json.dumps(SHAPE)],
        env=gate.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_python_from_a_terminal,
    )
    gate.wait()
    return process


def test_a_commit_search_grows_the_tree_of_the_command_line(
    toy: ToyRepository, tmp_path: Path
) -> None:
    other = copy_of(toy, tmp_path / "other")
    summary = finish(other, *FLAGS)
    seen: list[dict[str, Any]] = []
    run = treewright.search_commits(toy.path, run_id=RUN, on_event=seen.append, **SHAPE)
    assert isinstance(run, treewright.TreeRun)
    assert run.is_finished
    assert decisions(run.path) == decisions(other.run_dir(RUN))
    assert run.stop_reason == summary["stop_reason"]
    assert run.evaluations == treewright.load_run(run.path).evaluations
    recorded = [line["type"] for line in events(run.path)]
    assert [each["type"] for each in seen] == [kind for kind in recorded if kind != "lease"]
    again = treewright.search_commits(toy.path, run_id=RUN)
    assert decisions(again.path) == decisions(other.run_dir(RUN)), "a finished run stays as it is"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_or_ctrl_c_the_same_call_continues(
    toy: ToyRepository, tmp_path: Path, number: signal.Signals
) -> None:
    add_gate(toy)
    other = copy_of(toy, tmp_path / "other")
    gate = Gate(tmp_path / "gate")
    process = start(toy, gate)
    process.send_signal(number)
    out, err = process.communicate(timeout=200)
    assert process.returncode == (130 if number == signal.SIGINT else -number), err
    assert not out
    if number == signal.SIGINT:
        assert "Traceback" not in err
        assert nothing_runs(toy)
    run = treewright.search_commits(toy.path, run_id=RUN, **SHAPE)
    assert nothing_runs(toy)
    finish(other, *FLAGS, "--no-preflight")
    assert decisions(run.path) == decisions(other.run_dir(RUN))
    assert repeated_evaluations(run.path) == []


def test_a_commit_search_in_a_thread_is_cancelled_from_another(
    toy: ToyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_gate(toy)
    gate = Gate(tmp_path / "gate")
    monkeypatch.setenv("TOY_GATE", str(gate.path))
    handler, cancel, ends = signal.getsignal(signal.SIGINT), threading.Event(), []

    def call() -> None:
        try:
            treewright.search_commits(
                toy.path, run_id=RUN, workers=2, preflight=False, cancel=cancel, **SHAPE
            )
        except BaseException as error:
            ends.append(type(error))

    thread = threading.Thread(target=call)
    thread.start()
    gate.wait()
    assert signal.getsignal(signal.SIGINT) is handler
    cancel.set()
    thread.join(200)
    assert ends == [KeyboardInterrupt]
    assert nothing_runs(toy)
    gate.open()
    assert treewright.search_commits(toy.path, run_id=RUN).is_finished


def test_a_commit_search_runs_below_an_event_loop_one_depth_at_a_time(toy: ToyRepository) -> None:
    handler = signal.getsignal(signal.SIGINT)

    async def cell() -> treewright.TreeRun:
        return treewright.search_commits(toy.path, run_id=RUN, dry_run=True, until_done=False)

    run = asyncio.run(cell())
    assert (run.stop_reason, max(run.nodes["depth"])) == (None, 1)
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_policies_are_resumed_without_naming_them(toy: ToyRepository) -> None:
    given = {"policy": "mcts", "options": {"exploration": 0.5}, "budget": 4, "dry_run": True}
    run = treewright.search_commits(toy.path, run_id=RUN, max_depth=2, **given)
    assert run.summary["policy"] == "mcts"
    assert len(run.evaluations["eval_id"]) == 4
    again = treewright.search_commits(toy.path, run_id=RUN)
    assert (again.evaluations, again.summary) == (run.evaluations, run.summary)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"beam_width": 1.5}, "beam_width is 1.5; give"),
        ({"elites": -1}, "elites is -1; give a whole number of at least 0"),
        ({"max_hours": float("nan")}, "max_hours is nan; give a number above 0"),
        ({"order": "any"}, "order is 'any'; give 'fixed' or 'live'"),
        ({"policy": "mcts"}, "policy mcts needs budget: "),
        ({"policy": "no-such"}, "there is no policy 'no-such'"),
        ({"policy": "mcts", "budget": 5, "beam_width": 2}, "beam_width means nothing with policy"),
        ({"confirm_configs": 3}, "confirm_configs needs sweep_config_limit: "),
        ({"executor": "no-such"}, "no-such"),
        ({"run_id": "a/b"}, "a/b"),
        ({"config": "no-such.toml"}, "no-such.toml"),
    ],
)
def test_errors_name_the_argument(toy: ToyRepository, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(treewright.TreewrightError) as failed:
        treewright.search_commits(toy.path, **{"dry_run": True, **arguments})
    assert says in str(failed.value)
    assert "--" not in str(failed.value)


def test_a_run_keeps_its_settings_and_its_owner(toy: ToyRepository) -> None:
    run = treewright.search_commits(toy.path, run_id=RUN, dry_run=True, max_depth=1)
    with pytest.raises(UsageError, match=r"^max_depth is 2 here but 1 in .*extend=True.*argument"):
        treewright.search_commits(toy.path, run_id=RUN, max_depth=2)
    deeper = treewright.search_commits(toy.path, run_id=RUN, max_depth=2, extend=True)
    assert deeper.manifest.max_depth == 2
    errors: list[BaseException] = []

    def intrude(_: dict[str, Any]) -> None:
        try:
            treewright.search_commits(toy.path, run_id=RUN)
        except treewright.TreewrightError as error:
            errors.append(error)

    treewright.search_commits(toy.path, run_id=RUN, max_depth=3, extend=True, on_event=intrude)
    assert run.path == deeper.path
    assert {type(error) for error in errors} == {LockActive}
    assert "force=True" in str(errors[0])


def test_the_documented_defaults_are_those_of_the_command_line() -> None:
    documented = commit_search.search_commits.__doc__ or ""
    options = {option.name: option for option in tree.params if isinstance(option, click.Option)}
    for name in ("ideas_per_node", "beam_width", "max_depth", "confirm_configs", "elites"):
        default = getattr(DEFAULT_SHAPE, name)
        assert getattr(options[name], "_default_text", None) == str(default)
        entry = documented.split(f"        {name}: ")[1].split("\n        ")
        text = " ".join(line.strip() for line in entry[:4])
        assert f"Default: {default}." in text, name
    parameters = inspect.signature(commit_search.search_commits).parameters
    for name, flag, field in (
        ("workers", "max_parallel_evals", "max_evals"),
        ("executor", "parallel_backend", "backend"),
    ):
        assert parameters[name].default == options[flag].default
        assert parameters[name].default == getattr(Parallelism(), field)


def test_the_example_runs(toy: ToyRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOY_GATE", raising=False)
    result = doctest.testmod(commit_search, extraglobs={"repo": os.fspath(toy.path)})
    assert result.attempted > 0
    assert result.failed == 0
