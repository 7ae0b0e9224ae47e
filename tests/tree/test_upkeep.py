"""manifest.json and the report while a search runs, and after it was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from tests.faults.running import Gate, Search, add_gate, finish
from tests.faults.running import search as run_search
from tests.llm.endpoints import Step, completion, stand_in
from tests.toy import ToyRepository, set_parameter
from tests.tree.making import finished, manifest, queued
from tests.waiting import until
from treewright.kernel.budget import Spending
from treewright.llm.usage import Usage
from treewright.tree.records import events as ev
from treewright.tree.records import layout, state, store, usage_log
from treewright.tree.validation import validate

FLAGS = ("--ideas-per-node", "2", "--max-depth", "2", "--sweep-config-limit", "8")


def on_disk(toy: ToyRepository) -> dict:
    return json.loads((toy.run_dir("run") / "manifest.json").read_text())


def test_the_manifest_exists_while_the_first_depth_runs(toy: ToyRepository, tmp_path) -> None:
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
        "import sys\nfrom treewright.tree.run.loop import WorkLoop\n"
        "def stop(self, stage): raise KeyboardInterrupt\nWorkLoop.run = stop\n"
        "from treewright.cli.main import main\nmain()"
    )
    interrupted = Search(toy, script=script)
    assert interrupted.end() == 130
    assert "unfinished" in summary.read_text()


def test_a_refreshed_manifest_equals_the_journal(toy: ToyRepository) -> None:
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


def test_spending_before_a_kill_is_counted(toy: ToyRepository, tmp_path) -> None:
    """An agent answers and reports its cost, and the search is killed in the sweep after it."""
    add_gate(toy)
    agent = toy.write(
        "agent.sh",
        "sed -i 's/^A 1.0/A 2.0/' params.txt\n"
        'echo \'{"type":"result","result":"done","total_cost_usd":0.25,'
        '"usage":{"input_tokens":1000,"output_tokens":50}}\'\n',
    )
    script = (
        "from treewright.tree.agents import presets\nimport msgspec, sys\n"
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
    spent, roles = on_disk(toy)["spent"], on_disk(toy)["roles"]
    assert (spent["cost_usd"], spent["prompt_tokens"]) == (0.5, 2000), "both attempts"
    assert roles["coder"]["prompt_tokens"] == 2000, "a cap of the role counts both as well"
    assert validate(toy.run_dir("run"), toy.path) == []


def test_the_cost_of_ideas_before_a_kill_is_counted(toy: ToyRepository) -> None:
    """The first reply is unreadable, and the search is killed while it waits for the second."""
    text = (toy.path / "treewright.toml").read_text().partition("[[ideas]]")[0]
    good = completion("## IDEA: Raise A\n\n" + set_parameter("A", 2.0).partition("\n\n")[2])
    never = Step(delay=600, body=good)
    flags = ("--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "8")
    with stand_in(Step(body=completion("no heading")), never, Step(body=good)) as endpoint:
        asked = f'base_url = "{endpoint.url}"\nmodel = "m"\nusd_per_million_prompt_tokens = 1e3\n'
        toy.write("treewright.toml", f'{text}[[ideas]]\nsource = "llm"\n[ideas.endpoint]\n{asked}')
        toy.commit("ideas from an endpoint")
        running = Search(toy, *flags, "--no-preflight")
        until(lambda: len(endpoint.requests) == 2, what="the second question")
        running.signal(signal.SIGKILL)
        running.child.communicate()
        assert finish(toy)["stop_reason"]
        first = endpoint.requests[0]["messages"][0]["content"]
    found = on_disk(toy)
    spent = found["spent"]
    assert (spent["prompt_tokens"], spent["completion_tokens"]) == (200, 20), "both searches"
    assert spent["cost_usd"] == 0.2
    assert "# Node n0000 at depth 0\n" in first, "as the manifest counts"
    assert found["nodes"]["n0000"]["depth"] == 0
    assert validate(toy.run_dir("run"), toy.path) == []


def test_negative_spending_in_a_journal_does_not_reduce_the_sum() -> None:
    run = manifest(spent=Spending(cost_usd=1.0))
    state.apply(run, queued(1))
    state.apply(run, ev.Started(eval_id="e000001", attempt=1))
    state.apply(
        run,
        ev.Requeued(eval_id="e000001", attempt=1, reason="x", usage=Usage(-5, -5, -6.0)),
    )
    assert (run.spent.cost_usd, run.spent.prompt_tokens) == (1.0, 0)


def test_impossible_usage_in_an_outcome_is_not_recorded() -> None:
    """The record of the evaluation and the sum over the run agree."""
    run = manifest()
    state.apply(run, queued(1))
    state.apply(run, ev.Started(eval_id="e000001", attempt=1))
    state.apply(run, finished(1, usage=Usage(-5, 10**15, -6.0)))
    assert run.evaluations["e000001"].usage == Usage()
    assert (run.spent.cost_usd, run.spent.completion_tokens) == (0.0, 0)


def test_a_damaged_usage_file_is_read_up_to_the_damage(tmp_path) -> None:
    usage_log.add(tmp_path, Usage(3, 4, 0.5))
    with (tmp_path / layout.USAGE).open("ab") as file:
        file.write(b'nonsense\n{"prompt_tokens":-9}\n{"cost_usd":1e400}\n\xff\n')
    usage_log.add(tmp_path, Usage(1, 1, 0.25))
    assert usage_log.total(tmp_path) == Usage(4, 5, 0.75)


def test_a_watchdog_that_cannot_start_leaves_no_child() -> None:
    """The machine had a process left for the command, but none for its watchdog."""
    script = """
import errno, os, pathlib, subprocess, sys, tempfile
from treewright.kernel.procs import process, proctree
from treewright.kernel.procs.watchdog import watchdog
def tell(line):
    raise OSError(errno.EAGAIN, "no more processes")
watchdog._send = tell
place = pathlib.Path(tempfile.mkdtemp())
try:
    process.run("sleep 600", cwd=place, log_path=place / "log", owner=f"unguarded-{os.getpid()}")
except OSError as error:
    assert error.errno == errno.EAGAIN
    print(len(proctree.marked(f"unguarded-{os.getpid()}:", prefix=True)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "0", done.stderr
