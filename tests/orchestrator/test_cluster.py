"""Bank runs on a real dask cluster: real workers, real Lean, one ledger."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.test_durability import children
from tests.parallel.cluster import Cluster, Isolation, cluster
from tests.waiting import gone, until
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.executors import dask
from treewright.orchestrator.background import Background, Proved
from treewright.orchestrator.bank_run import BankResults, run_bank
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import read_bank
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Scheduler, StrategyType
from treewright.orchestrator.scheduling.dispatch import AttemptBackend, open_backend
from treewright.orchestrator.workers.lean_access import LeanAccess

MICRO = StrategyType.MICRO
CONFIG = OrchestratorConfig(
    cpu_target=1000.0, lean_sessions=1, strategies=(MICRO,), timeouts={MICRO: 300.0}, reuse=False
)
GOALS = {
    "a": "∀ a b c d e : Fin 4, a + b + c + d + e = e + d + c + b + a",
    "b": "(List.range 200).foldl (· + ·) 0 = 19901",
    "c": "∀ p q r s t u : Prop, (p ∧ q) ∧ (r ∧ s) ∧ (t ∧ u) → ((u ∧ t) ∧ (s ∧ r)) ∧ (q ∧ p)",
}
"""Each takes Lean many hundredths of a second, in which the system counts, also when it is warm."""
TRIALS = """
SELECT goal_id, goal_hash, strategy, status, tactics, budget, toolchain, error
FROM attempts WHERE status != 'unavailable' ORDER BY goal_id
"""


def run(
    directory: Path, name: str, lean: LeanAccess, backend: AttemptBackend | None
) -> tuple[BankResults, list[tuple[Any, ...]], list[dict[str, Any]], int]:
    """Return the results, the trials, the attempts' metadata, and the bandit's trials."""
    bank = directory / "bank.jsonl"
    bank.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in GOALS.items()))
    with Ledger(directory / name) as ledger:
        done = asyncio.run(
            run_bank(
                read_bank(bank),
                CONFIG,
                ledger,
                timeout=900,
                make_scheduler=lambda config, db, run_id: Scheduler(
                    config, ledger=db, run_id=run_id, lean=lean, backend=backend
                ),
            )
        )
        trials = [tuple(row) for row in ledger.query(TRIALS)]
        rows = ledger.query("SELECT status, cpu_seconds, metadata FROM attempts ORDER BY id")
        found = [
            {"status": r["status"], "cpu": r["cpu_seconds"], **json.loads(r["metadata"])}
            for r in rows
        ]
        return done.results, trials, found, ledger.arms()["", MICRO].trials


def work_through(project: Path, backend: AttemptBackend) -> list[tuple[str, str]]:
    """What `bg --once` proves of a project there."""

    async def main(ledger: Ledger) -> list[Proved]:
        background = Background(project, ledger, CONFIG, backend=backend)
        await background.run(once=True)
        return background.proved

    with Ledger(project / "ledger.db") as ledger:
        return [(one.declaration, one.strategy) for one in asyncio.run(main(ledger))]


def leans(worker: int) -> list[int]:
    """The Lean processes that a worker started."""
    found = []
    for pid in children(worker):
        with contextlib.suppress(OSError):  # ended meanwhile
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            found += [pid] if b"node" in command.split(b"\0")[0] else []
    return found


def _kill_and_replace(machines: Cluster, killed: list[int]) -> None:
    """In the middle of an attempt: when the worker has started its Lean."""
    first = machines.workers["w1"].pid
    until(lambda: bool(leans(first)), 300, "the first worker's Lean")
    killed.extend(leans(first))
    machines.end("w1")
    machines.start_worker("w2", HOME=os.environ["HOME"])


@pytest.mark.xdist_group("orchestrator-lean")
def test_a_bank_on_a_cluster_is_as_here_and_a_killed_worker_teaches_nothing(
    tmp_path: Path, shared_lean: LeanAccess
) -> None:
    killed: list[int] = []
    project = tmp_path / "project"
    project.mkdir()
    (project / "A.lean").write_text("theorem a (n : Nat) : n + 0 = n := by sorry\n")
    with cluster(0, Isolation(tmp_path)) as machines:
        machines.start_worker("w1", HOME=os.environ["HOME"])
        machines.wait_for_workers()
        with open_backend(None, machines.address, CONFIG) as backend:
            assert backend.is_remote
            killer = threading.Thread(target=_kill_and_replace, args=(machines, killed))
            killer.start()
            results, trials, attempts, learned = run(tmp_path, "far.db", shared_lean, backend)
            killer.join()
            second = machines.workers["w2"].pid
            proved = work_through(project, backend)
            warm = leans(second)
            opened = [str(path.readlink()) for path in Path(f"/proc/{second}/fd").iterdir()]
        machines.end("w2", signal.SIGTERM)
        until(lambda: all(gone(pid) for pid in [*killed, *warm]), 60, "Lean to end")
    assert results.solved == ["a", "c"]
    assert "unavailable" in [attempt["status"] for attempt in attempts]
    done = [attempt for attempt in attempts if attempt["status"] != "unavailable"]
    assert {attempt["worker"].rpartition(":")[2] for attempt in done} == {str(second)}
    assert len(warm) == 1, "one Lean served every goal"
    assert all(attempt["cpu"] > 0 for attempt in done), "CPU time comes back"
    assert results.cpu_seconds > 0
    assert not [name for name in opened if "far.db" in name]
    assert learned == 3, "the lost attempt was not counted"

    assert proved == [("a", "micro")]

    here, same, _, learned_here = run(tmp_path, "here.db", shared_lean, None)
    assert (here.solved, learned_here) == (results.solved, learned)
    assert trials == same


def test_stubs_on_a_local_cluster_by_the_command(
    treewright: Callable[..., Any], tmp_path: Path
) -> None:
    bank = tmp_path / "bank.jsonl"
    bank.write_text("".join(f'{{"id": "{i}", "text": "{i} = {i}"}}\n' for i in range(3)))
    flags = ("--profile", "0", "--strategy", "micro", "--lean-sessions", "1", "--timeout", "300")
    done = treewright("bank", "bank.jsonl", "--parallel-backend", "dask", *flags, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["goals_processed"] == 3
    assert document["strategies"]["micro"]["used"] == 3
    assert "Traceback" not in done.stderr


def test_where_attempts_cannot_run_is_said_in_one_line(
    treewright: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, cluster_, line in (
        ("ray", None, "there is no executor 'ray'; there are inline, threads"),
        ("threadpool", "tcp://127.0.0.1:9", "'threadpool' takes no cluster's address; dask does"),
    ):
        with pytest.raises(UsageError, match=line), open_backend(name, cluster_, CONFIG):
            pass
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 1)
    nobody = open_backend(None, "tcp://127.0.0.1:9", CONFIG)
    with pytest.raises(TreewrightError, match="no dask scheduler answers"), nobody:
        pass
    done = treewright("bg", "--parallel-backend", "ray")
    assert done.returncode == 2
    assert "no executor 'ray'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
