"""The benchmark runner: a bank of goals through the scheduler, and its results.

A run that was interrupted goes on where it stopped when the same bank is run again with the
same settings: what its attempts found is in the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from treewright.kernel.clock import now
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import Bank
from treewright.orchestrator.ledger.counting import total
from treewright.orchestrator.ledger.store import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.scheduling.dispatch import Attempting
from treewright.orchestrator.scheduling.stopping import stopping_on_signals
from treewright.orchestrator.scheduling.working_off import Observer
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess

SchedulerFactory = Callable[[OrchestratorConfig, Ledger, str], Scheduler]


class BankResults(msgspec.Struct, frozen=True, kw_only=True):
    """What `bench/results/bank-*.json` holds; docs/orchestrator.md describes the fields."""

    timestamp: str
    goals_total: int
    goals_processed: int
    goals_solved: int
    strategies: dict[str, dict[str, int]]
    config: dict[str, Any]
    run_id: str
    bank: str
    finished: bool
    elapsed_seconds: float
    solved: list[str]
    excluded: dict[str, str]
    skipped_lines: list[tuple[int, str]]
    cpu_seconds: float
    wasted_cpu_seconds: float
    throttled_seconds: float


@dataclass(frozen=True, slots=True)
class BankRun:
    results: BankResults
    interrupted: bool


async def run_bank(
    bank: Bank,
    config: OrchestratorConfig,
    ledger: Ledger,
    *,
    timeout: float,
    fresh: bool = False,
    on_result: Observer | None = None,
    announce: Callable[[str], None] = lambda _: None,
    make_scheduler: SchedulerFactory | None = None,
    attempting: Attempting | None = None,
    lean: LeanAccess | None = None,
) -> BankRun:
    """Runs until every goal has a result, the time is over, or a signal says stop."""
    started = time.monotonic()
    run_id = _open_run(bank, config, ledger, fresh)
    attempted = len(ledger.query("SELECT 1 FROM attempts WHERE run_id = ? LIMIT 1", [run_id]))
    make = make_scheduler or (
        lambda c, db, run: Scheduler(c, ledger=db, run_id=run, attempting=attempting, lean=lean)
    )
    async with contextlib.AsyncExitStack() as stack:
        if lean is not None:
            stack.push_async_callback(lean.close)
        scheduler = await stack.enter_async_context(make(config, ledger, run_id))
        for strategy, reason in scheduler.excluded.items():
            announce(f"without {strategy}: {reason}")
        scheduler.throttle.on_first_wait = announce
        with stopping_on_signals(scheduler.shutdown) as interrupted:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(timeout, scheduler.shutdown)
            if attempted:
                await scheduler.recheck({goal.id: goal for goal in bank.goals}, announce)
                solved = f"{len(scheduler.proved)} of {len(bank.goals)} goals are solved"
                announce(f"continuing run {run_id}: {solved}")
            queue: asyncio.Queue[Goal] = asyncio.Queue()
            for goal in bank.goals:
                if goal.id not in scheduler.proved:
                    queue.put_nowait(goal)
            outcomes = await scheduler.process_queue(queue, on_result)
            timer.cancel()
        if not interrupted():
            ledger.finish_run(run_id)
    # When the scheduler is closed everything is in the ledger, also what ended as it was stopped.
    document = _results(bank, config, ledger, scheduler, outcomes, timeout)
    elapsed = round(time.monotonic() - started, 3)
    return BankRun(msgspec.structs.replace(document, elapsed_seconds=elapsed), interrupted())


def _open_run(bank: Bank, config: OrchestratorConfig, ledger: Ledger, fresh: bool) -> str:
    new = f"bank-{now():%Y%m%d-%H%M%S-%f}"
    settings = msgspec.json.encode(config, order="sorted").decode()
    return ledger.open_run(new, "bank", bank.digest, settings, fresh=fresh)


def _results(
    bank: Bank,
    config: OrchestratorConfig,
    ledger: Ledger,
    scheduler: Scheduler,
    outcomes: dict[str, Result],
    timeout: float,
) -> BankResults:
    solved = scheduler.proved
    processed = solved | outcomes.keys()
    found = ledger.counting.by_strategy("run_id = ?", [scheduler.run_id])
    strategies = {
        name: {
            "used": sums["trials"],
            "succeeded": sums["successes"],
            "cancelled": sums["cancelled"],
        }
        for name, sums in found.items()
    }
    portfolio = (*scheduler.workers, StrategyType.CACHE)
    return BankResults(
        timestamp=f"{now():%Y%m%d-%H%M%S}",
        goals_total=len(bank.goals),
        goals_processed=len(processed),
        goals_solved=len(solved),
        strategies=strategies,
        config={
            "timeout": timeout,
            "max_heavy": config.max_heavy,
            "max_light": config.max_light,
            "cpu_target": config.cpu_target,
            "cpu_alpha": config.cpu_alpha,
            "profile": config.profile,
            "speculation": config.speculation,
            "lean_sessions": config.lean_sessions,
            "exploration": config.exploration,
            "reuse": config.reuse,
            "lessons": config.lessons,
            "timeouts": {s: config.timeout(s) for s in strategies if s in portfolio},
        },
        run_id=scheduler.run_id,
        bank=str(bank.path),
        finished=len(processed) == len(bank.goals),
        elapsed_seconds=0.0,
        solved=[goal.id for goal in bank.goals if goal.id in solved],
        excluded={str(s): reason for s, reason in scheduler.excluded.items()},
        skipped_lines=[(problem.line, problem.reason) for problem in bank.problems],
        cpu_seconds=round(total(found, "cpu_seconds"), 3),
        wasted_cpu_seconds=round(total(found, "wasted_cpu_seconds"), 3),
        throttled_seconds=round(scheduler.throttle.slept_seconds, 3),
    )
