"""manifest.json and the report while a search runs, and after it was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.faults.running import Gate, Search, add_gate, finish
from tests.faults.running import search as run_search
from tests.toy import ToyRepository
from tests.tree.making import manifest, queued
from treewright.kernel.budget import Spending
from treewright.tree.agents import chat_wire
from treewright.tree.config import EndpointConfig
from treewright.tree.records import events as ev
from treewright.tree.records import state, store, usage_log
from treewright.tree.records.model import Usage
from treewright.tree.validation import validate

FLAGS = ("--ideas-per-node", "2", "--max-depth", "2", "--sweep-config-limit", "8")


def on_disk(toy: ToyRepository) -> dict:
    return json.loads((toy.run_dir("run") / "manifest.json").read_text())


def test_the_manifest_is_there_while_the_first_depth_runs(toy: ToyRepository, tmp_path) -> None:
    add_gate(toy)
    gate = Gate(tmp_path / "gate")
    running = Search(toy, *FLAGS, "--no-preflight", env=gate.environment)
    gate.wait()
    assert len(on_disk(toy)["evaluations"]) == 2
    running.signal(signal.SIGKILL)
    running.child.communicate()
    before = on_disk(toy)
    assert {e["status"] for e in before["evaluations"].values()} == {"pending"}
    run_search(toy, "--report-only")
    after = on_disk(toy)
    assert "running" in {e["status"] for e in after["evaluations"].values()}
    assert (toy.run_dir("run") / "TREE_SUMMARY.md").exists()
    gate.open()
    finish(toy)
    assert validate(toy.run_dir("run"), toy.path) == []


def test_an_interrupted_search_leaves_a_report(toy: ToyRepository, tmp_path) -> None:
    run_search(toy, *FLAGS)
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text())
    summary = toy.run_dir("run") / "TREE_SUMMARY.md"
    assert "depth 1" in summary.read_text()
    summary.unlink()
    script = (
        "import sys\nfrom treewright.tree.running.coordinator import Coordinator\n"
        "def stop(self): raise KeyboardInterrupt\nCoordinator._evaluate = stop\n"
        "from treewright.cli.main import main\nmain()"
    )
    interrupted = Search(toy, script=script)
    assert interrupted.end() == 130
    assert "unfinished" in summary.read_text()


def test_a_refreshed_manifest_is_what_the_journal_says(toy: ToyRepository) -> None:
    run_search(toy, *FLAGS)
    run_dir = toy.run_dir("run")
    before = (run_dir / "manifest.json").read_bytes()
    (run_dir / "manifest.json").unlink()
    store.refresh(run_dir)
    again = json.loads((run_dir / "manifest.json").read_bytes())
    expected = json.loads(before)
    for document in (again, expected):
        del document["snapshot"]
    assert again == expected
    assert validate(run_dir, toy.path) == []
    finish(toy)


def test_what_was_spent_before_a_kill_is_counted(toy: ToyRepository, tmp_path) -> None:
    """An agent answers, says what it cost, and the search dies in the sweep after it."""
    add_gate(toy)
    agent = toy.write(
        "agent.sh",
        "sed -i 's/^A 1.0/A 2.0/' params.txt\n"
        'echo \'{"type":"result","result":"done","total_cost_usd":0.25,'
        '"usage":{"input_tokens":1000,"output_tokens":50}}\'\n',
    )
    script = (
        "from treewright.tree.agents import presets, cli_output\nimport msgspec, sys\n"
        "p = presets.PRESETS['claude']\nimport dataclasses\n"
        f"presets.PRESETS['claude'] = dataclasses.replace(p, editing=('sh', {str(agent)!r}))\n"
        "from treewright.cli.main import main\nmain()"
    )
    config = (toy.path / "treewright.toml").read_text()
    toy.write(
        "treewright.toml", config + '\n[agents.coder]\nbackend = "command"\npreset = "claude"\n'
    )
    toy.commit("an agent that reports its cost")
    gate = Gate(tmp_path / "gate")
    flags = ("--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "8")
    running = Search(toy, *flags, "--no-preflight", script=script, env=gate.environment)
    gate.wait()
    running.signal(signal.SIGKILL)
    running.child.communicate()
    gate.open()
    done = Search(toy, script=script)
    assert done.end() == 0, done.err
    spent = on_disk(toy)["spent"]
    assert (spent["cost_usd"], spent["prompt_tokens"]) == (0.5, 2000), "both attempts"
    assert validate(toy.run_dir("run"), toy.path) == []


@pytest.mark.parametrize("counts", [(-6_000_000, 5), (10**15, 5)])
def test_usage_that_cannot_be_true_is_not_believed(counts: tuple[int, int]) -> None:
    endpoint = EndpointConfig(base_url="http://h/v1", model="m", usd_per_million_prompt_tokens=1.0)
    usage = chat_wire.priced(endpoint, chat_wire.Counts(*counts))
    assert usage == Usage(0, 5, 0.0)


def test_negative_spending_in_a_journal_takes_nothing_back() -> None:
    run = manifest(spent=Spending(cost_usd=1.0))
    state.apply(run, queued(1))
    state.apply(run, ev.Started(eval_id="e000001", attempt=1))
    state.apply(
        run,
        ev.Requeued(eval_id="e000001", attempt=1, reason="x", usage=Usage(-5, -5, -6.0)),
    )
    assert (run.spent.cost_usd, run.spent.prompt_tokens) == (1.0, 0)


def test_a_usage_file_that_was_tampered_with_is_read_as_far_as_it_goes(tmp_path) -> None:
    usage_log.add(tmp_path, Usage(3, 4, 0.5))
    with (tmp_path / usage_log.NAME).open("ab") as file:
        file.write(b'nonsense\n{"prompt_tokens":-9}\n{"cost_usd":1e400}\n\xff\n')
    usage_log.add(tmp_path, Usage(1, 1, 0.25))
    assert usage_log.total(tmp_path) == Usage(4, 5, 0.75)


def test_a_watchdog_that_cannot_start_leaves_no_child() -> None:
    """The machine had a process left for the command, and none for its watchdog."""
    script = """
import errno, os, pathlib, subprocess, sys, tempfile
from treewright.kernel import process, proctree
from treewright.kernel.watchdog import watchdog
def tell(line):
    raise OSError(errno.EAGAIN, "no more processes")
watchdog._tell = tell
place = pathlib.Path(tempfile.mkdtemp())
try:
    process.run("sleep 600", cwd=place, log_path=place / "log", owner="unguarded-test")
except OSError as error:
    assert error.errno == errno.EAGAIN
    print(len(proctree.marked("unguarded-test:", prefix=True)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "0", done.stderr
