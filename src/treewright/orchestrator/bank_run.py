"""A bank run: a bank of goals through the scheduler; its results as a file, a table and a picture.

An interrupted run continues when the same bank is run again with the same settings, from the
attempts in the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.clock import now, seconds_between
from treewright.kernel.storage import atomic
from treewright.kernel.text.charts import Series, line_chart
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import Bank
from treewright.orchestrator.ledger.attempts import total
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import OnResult, Scheduler
from treewright.orchestrator.scheduling.dispatch import AttemptBackend
from treewright.orchestrator.scheduling.stop_signals import stop_on_signals
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess

SchedulerFactory = Callable[[OrchestratorConfig, Ledger, str], Scheduler]


class BankResults(msgspec.Struct, frozen=True, kw_only=True):
    """The document `bench/results/bank-*.json`; docs/orchestrator.md describes the fields."""

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
    """The results of a bank run, and whether a signal ended it."""

    results: BankResults
    interrupted: bool


async def run_bank(
    bank: Bank,
    config: OrchestratorConfig,
    ledger: Ledger,
    *,
    timeout: float,
    fresh: bool = False,
    on_result: OnResult | None = None,
    announce: Callable[[str], None] = lambda _: None,
    make_scheduler: SchedulerFactory | None = None,
    backend: AttemptBackend | None = None,
    lean: LeanAccess | None = None,
) -> BankRun:
    """Run until every goal has a result, the time is over, or a signal stops the run.

    Args:
        bank: The goals.
        config: The settings of the scheduler.
        ledger: Records every attempt.
        timeout: The most seconds for the whole run.
        fresh: Begin a new run, even if an interrupted one could continue.
        on_result: Called with each goal and its result.
        announce: Called with a line for each event.
        make_scheduler: Makes the scheduler; by default from the other arguments.
        backend: Where attempts run; by default in threads of this process.
        lean: The Lean processes, which the run closes; by default the scheduler starts its own.
    """
    started = time.monotonic()
    settings = msgspec.json.encode(config, order="sorted").decode()
    new = f"bank-{now():%Y%m%d-%H%M%S-%f}"
    run_id = ledger.open_run(new, "bank", bank.digest, settings, fresh=fresh)
    attempted = len(ledger.query("SELECT 1 FROM attempts WHERE run_id = ? LIMIT 1", [run_id]))
    make = make_scheduler or (
        lambda c, db, run: Scheduler(c, ledger=db, run_id=run, backend=backend, lean=lean)
    )
    async with contextlib.AsyncExitStack() as stack:
        if lean is not None:
            stack.push_async_callback(lean.close)
        scheduler = await stack.enter_async_context(make(config, ledger, run_id))
        for strategy, reason in scheduler.excluded.items():
            announce(f"without {strategy}: {reason}")
        scheduler.throttle.on_first_wait = announce
        with stop_on_signals(scheduler.shutdown) as interrupted:
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
    # After the scheduler is closed, the ledger also has the attempts that ended during the stop.
    document = _build_results(bank, config, ledger, scheduler, outcomes, timeout)
    elapsed = round(time.monotonic() - started, 3)
    return BankRun(msgspec.structs.replace(document, elapsed_seconds=elapsed), interrupted())


def _build_results(
    bank: Bank,
    config: OrchestratorConfig,
    ledger: Ledger,
    scheduler: Scheduler,
    outcomes: dict[str, Result],
    timeout: float,
) -> BankResults:
    solved = scheduler.proved
    processed = solved | outcomes.keys()
    found = ledger.counts.by_strategy("run_id = ?", [scheduler.run_id])
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


def publish_results(results: BankResults, ledger: Ledger, directory: Path) -> Path:
    """Write `bank-<timestamp>.json` and its picture; return the path of the document.

    A second document with the same timestamp gets a number.
    """
    atomic.make_directory(directory)
    data = msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n"
    path = directory / f"bank-{results.timestamp}.json"
    number = 1
    while not atomic.create_exclusive(path, data):
        number += 1
        path = directory / f"bank-{results.timestamp}-{number}.json"
    drawn = draw_curve(results, solved_times(ledger, results.run_id))
    atomic.write_bytes(path.with_suffix(".svg"), drawn.encode())
    return path


def format_table(results: BankResults) -> str:
    """Return the results as a table for the terminal."""
    lines = [
        f"{results.goals_solved} of {results.goals_total} goals proved, "
        f"{results.goals_processed} processed, {results.elapsed_seconds:.1f} s",
        "",
        f"{'strategy':<10} {'used':>6} {'proved':>7} {'cancelled':>10}",
    ]
    for name, counts in results.strategies.items():
        lines.append(
            f"{name:<10} {counts['used']:>6} {counts['succeeded']:>7} {counts['cancelled']:>10}"
        )
    lines += [f"{name:<10} left out: {reason}" for name, reason in results.excluded.items()]
    lines += [
        "",
        f"Lean's CPU time {results.cpu_seconds:.1f} s, of which {results.wasted_cpu_seconds:.1f} s "
        f"in cancelled attempts; held back {results.throttled_seconds:.1f} s for other work",
    ]
    if results.skipped_lines:
        number, reason = results.skipped_lines[0]
        more = f" (and {len(results.skipped_lines) - 1} more)" if results.skipped_lines[1:] else ""
        lines.append(f"line {number} of the bank was left out: {reason}{more}")
    return "\n".join(lines)


def solved_times(ledger: Ledger, run_id: str) -> list[float]:
    """Return the seconds from the start of the run to the proof of each goal, in order."""
    (run,) = ledger.query("SELECT started_at FROM runs WHERE run_id = ?", [run_id])
    rows = ledger.query(
        "SELECT MIN(timestamp) AS at FROM attempts WHERE run_id = ? AND success = 1 "
        "GROUP BY goal_id ORDER BY at",
        [run_id],
    )
    return [max(0.0, seconds_between(run["started_at"], row["at"]) or 0.0) for row in rows]


def draw_curve(results: BankResults, times: Sequence[float]) -> str:
    """Return an SVG picture of the number of proved goals over time."""
    title = f"{results.goals_solved} of {results.goals_total} goals proved (run {results.run_id})"
    points = [(0.0, 0.0), *((seconds, float(n)) for n, seconds in enumerate(times, start=1))]
    return line_chart(
        title,
        [Series("proved goals", points, steps=True)],
        "seconds",
        "goals proved",
        y_range=(0.0, max(results.goals_total, 1)),
        whole_x=False,
    )
