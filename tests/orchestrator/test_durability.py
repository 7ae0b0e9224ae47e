"""`kill -9` of a bank run at random moments: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.orchestrator import stub_bank
from tests.waiting import gone, until
from treewright.cli.portfolio import make_config
from treewright.orchestrator.bank_run import run_bank
from treewright.orchestrator.goals.bank import read_bank
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.workers.lean_access import LeanAccess

ROOT = Path(__file__).parents[2]
GOALS = 400
KILLS = 20


def count(path: Path, condition: str = "1") -> int:
    """Rows of `attempts`, seen from outside; 0 before there is such a table."""
    if not path.exists():
        return 0
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=60)
    try:
        return connection.execute(f"SELECT COUNT(*) FROM attempts WHERE {condition}").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_twenty_kills_and_then_completion(tmp_path: Path) -> None:
    """An attempt of the victims ends when it gets a token, so none can finish its run."""
    bank, path = tmp_path / "bank.jsonl", tmp_path / "ledger.db"
    bank.write_text("".join(f'{{"id": "{i}", "text": "{i} = {i}"}}\n' for i in range(GOALS)))
    generator = random.Random(20)
    for _ in range(KILLS):
        before = count(path)
        tokens = generator.randrange(1, 20)
        with program.start_module(
            "tests.orchestrator.stub_bank",
            [str(bank), str(path)],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name[:6] != "PYTHON"},
            stdin=subprocess.PIPE,
        ) as victim:
            assert victim.stdin is not None
            victim.stdin.write(b"." * tokens)
            victim.stdin.flush()
            enough = before + generator.randrange(0, tokens + 1)
            until(lambda: count(path) >= enough, 120, "attempts")  # noqa: B023
            victim.kill()
        assert victim.returncode == -signal.SIGKILL
    results = stub_bank.run(bank, path)

    solvable = [str(i) for i in range(GOALS) if stub_bank.solvable(i)]
    assert results.solved == solvable
    assert results.goals_processed == GOALS
    assert results.finished
    with Ledger(path) as ledger:
        assert len(ledger.query("SELECT DISTINCT run_id FROM attempts")) == 1
        twice = ledger.query(
            "SELECT goal_id, strategy FROM attempts WHERE status != 'cancelled' "
            "GROUP BY goal_id, strategy HAVING COUNT(*) > 1"
        )
        assert twice == []
        # Each goal has its proof, or a failure of every strategy; the bandit counted each once.
        for number in range(GOALS):
            rows = ledger.query(
                "SELECT strategy, success FROM attempts WHERE goal_id = ?", [str(number)]
            )
            assert any(row["success"] for row in rows) == stub_bank.solvable(number)
            assert stub_bank.solvable(number) or len(rows) == 2
        trials = sum(arm.trials for (group, _), arm in ledger.arms().items() if group == "")
        assert trials == count(path, "status != 'cancelled'")


def children(parent: int) -> list[int]:
    """Processes that a process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    found.append(int(entry.name))
    return found


REAL_GOALS = [
    "∀ n : Nat, n + 0 = n",
    "∀ p q : Prop, p ∧ q → q ∧ p",
    "∀ a b : Nat, a + b = b + a",
    "∀ a b c : Nat, a < b → b < c → a < c",
    "1 = 2",
    "∀ xs : List Nat, xs ++ [] = xs",
]


@pytest.mark.xdist_group("orchestrator-lean")
def test_a_real_bank_run_that_is_killed_leaves_no_process_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lean_access: LeanAccess
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "text": g}) + "\n" for i, g in enumerate(REAL_GOALS))
    )
    ledger = tmp_path / ".treewright" / "ledger.db"
    command = [sys.executable, "-m", "treewright", "bank", "bank.jsonl", "--cpu-target", "1000"]
    command += ["--strategy", "micro", "--timeout", "900", "--lean-sessions", "1"]
    command += ["--strategy-timeout", "micro=300"]  # the machine may be busy
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        until(lambda: count(ledger) > 0, 300, "an attempt")
        started = children(run.pid)
        assert started or run.poll() is not None
        run.kill()
        # On a busy machine the signal may come when all is done.
        assert run.wait(120) in (-signal.SIGKILL, 0)
    until(lambda: all(gone(pid) for pid in started), 60, "Lean to end")
    tried = "status NOT IN ('cancelled', 'unavailable')"
    unfinished = count(ledger, tried) < len(REAL_GOALS)

    announced: list[str] = []
    with Ledger(ledger) as opened:
        results = asyncio.run(
            run_bank(
                read_bank(Path("bank.jsonl")),
                make_config(
                    reuse=False,
                    profile=None,
                    strategies=("micro",),
                    timeouts=("micro=300",),
                    cpu_target=1000.0,
                    lean_sessions=1,
                ),
                opened,
                timeout=900,
                announce=announced.append,
                make_scheduler=lambda config, ledger, run_id: Scheduler(
                    config, ledger=ledger, run_id=run_id, lean=lean_access
                ),
            )
        ).results
    assert not unfinished or any("continuing run" in text for text in announced)
    assert results.solved == ["0", "1", "2", "3", "5"]
    assert results.strategies["micro"]["used"] == len(REAL_GOALS)
