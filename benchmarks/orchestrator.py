"""`python -m benchmarks.orchestrator [NAME...]`: the scheduler, the ledger, the portfolio.

throughput   10,000 goals through the scheduler with no-op workers, every attempt durable, against
             inserting the same rows one by one with the same durability
dedupe       the look-up of an attempt among 1,000,000 against that among 1,000
cancel       how long after the winner a loser is gone and its Lean can be used again
portfolio    the bundled bank: bandit and races against each strategy alone and a fixed order
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, Table, medians, render, seconds, take_turns
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.orchestrator.bank_run import run_bank
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import Bank, read_bank
from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.ledger.schema import open_ledger
from treewright.orchestrator.scheduler import Goal, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.factory import StubWorker
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.worker import Hole, LeanWorker

BANK = Path(__file__).parents[1] / "bench" / "bank.jsonl"
MICRO, SEARCH = StrategyType.MICRO, StrategyType.SEARCH


def goal_of(number: int) -> Goal:
    return Goal(id=str(number), text=f"∀ n : Nat, n + {number} = {number} + n")


def throughput(quick: bool) -> Table:
    count = 2_000 if quick else 10_000

    def scheduled() -> float:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(_scheduled(Path(directory) / "ledger.db", count))

    def inserted() -> float:
        with tempfile.TemporaryDirectory() as directory:
            return _inserted(Path(directory), count)

    taken = medians(take_turns({"scheduler": scheduled, "insert": inserted}, 2 if quick else 3))
    each = {name: 1000 * value / count for name, value in taken.items()}
    return Table(
        "throughput",
        f"{count} goals with no-op workers, every attempt on disk before the goal is done",
        [
            Row("raw insert of the same rows", each["insert"], "ms a row"),
            Row(
                "through the scheduler",
                each["scheduler"],
                "ms a goal",
                "raw insert",
                each["scheduler"] / each["insert"],
                1 / 0.3,
            ),
        ],
        "Raw insert: one transaction a row, WAL, synchronous=FULL, the same table and indexes.",
    )


async def _scheduled(path: Path, count: int) -> float:
    queue: asyncio.Queue[Goal] = asyncio.Queue()
    for number in range(count):
        queue.put_nowait(goal_of(number))
    with Ledger(path) as ledger:
        config = OrchestratorConfig(reuse=False)
        idle = Throttle(1.0, read_load=lambda: 0.0)
        async with Scheduler(
            config, ledger=ledger, workers=[StubWorker(MICRO)], throttle=idle
        ) as scheduler:
            started = time.perf_counter()
            results = await scheduler.process_queue(queue)
            taken = time.perf_counter() - started
        recorded = ledger.query("SELECT COUNT(*) FROM attempts")[0][0]
    assert len(results) == recorded == count
    return taken


def _inserted(directory: Path, count: int) -> float:
    """The rows that the scheduler wrote, copied one transaction at a time."""
    asyncio.run(_scheduled(directory / "source.db", count))
    source = open_ledger(directory / "source.db")
    rows = source.execute("SELECT * FROM attempts").fetchall()
    source.close()
    target = open_ledger(directory / "target.db")
    sql = f"INSERT INTO attempts VALUES ({', '.join('?' * len(rows[0]))})"

    def insert() -> None:
        for row in rows:
            target.execute(sql, row)  # autocommit: each is durable

    taken = seconds(insert)
    target.close()
    return taken


def dedupe(quick: bool) -> Table:
    large = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        ledgers = {n: _filled(Path(directory) / f"{n}.db", n) for n in (1_000, large)}
        generator = random.Random(1)

        def look_up(size: int) -> float:
            numbers = [generator.randrange(2 * size) for _ in range(500)]
            times = []
            for number in numbers:
                goal = goal_of(number)
                started = time.perf_counter()
                found = ledgers[size].check_duplicate(
                    goal, MICRO, toolchain="t", imports=("Init",), budget=8.0
                )
                times.append(time.perf_counter() - started)
                assert found == (number < size)
            return median(times)

        turns = {str(size): (lambda size=size: look_up(size)) for size in ledgers}
        taken = medians(take_turns(turns, 5))
        for ledger in ledgers.values():
            ledger.close()
    small, big = taken["1000"], taken[str(large)]
    return Table(
        "dedupe",
        "Has this goal been tried? (half of the look-ups find something)",
        [
            Row("among 1,000 attempts", 1e6 * small, "µs"),
            Row(f"among {large:,} attempts", 1e6 * big, "µs", "1,000", big / small, 2.0),
        ],
    )


def _filled(path: Path, count: int) -> Ledger:
    ledger = Ledger(path)
    hashes = (Ledger.hash_goal(goal_of(number)) for number in range(count))
    ledger.record(
        Attempt(
            key=str(number),
            run_id="r",
            goal_id=str(number),
            goal_hash=goal_hash,
            goal_text="",
            goal_class="",
            strategy=MICRO,
            status="failed",
            time_seconds=1.0,
            cpu_seconds=1.0,
            budget=8.0,
            toolchain="t",
            imports=("Init",),
        )
        for number, goal_hash in enumerate(hashes)
    )
    return ledger


class _Endless(LeanWorker):
    """A loser in the middle of a tactic that would not end."""

    strategy = SEARCH

    def __init__(self, lean: LeanAccess) -> None:
        super().__init__(lean)
        self.running = asyncio.Event()

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> None:
        self.running.set()
        text = "set_option maxHeartbeats 0 in\nrepeat (first | skip | rfl)"
        await session.run_tactic(hole.states[0], text, timeout=300)


def cancel(quick: bool) -> Table:
    rounds = 5 if quick else 20
    lean = LeanAccess(1)

    async def one() -> float:
        loser = _Endless(lean)
        task = asyncio.create_task(loser.run(goal_of(1), 300.0))
        await loser.running.wait()
        await asyncio.sleep(0.05)
        started = time.perf_counter()
        task.cancel()
        await asyncio.wait([task])
        async with lean.session() as session:
            await session.start("1 = 1")
        return time.perf_counter() - started

    async def all_rounds() -> list[float]:
        times = [await one() for _ in range(rounds)]
        await lean.close()
        return times

    times = asyncio.run(all_rounds())
    return Table(
        "cancel",
        "A loser that is cancelled: until its Lean process answers somebody else",
        [
            Row("median", 1000 * median(times), "ms", target=100.0),
            Row("worst", 1000 * max(times), "ms"),
        ],
    )


def portfolio(quick: bool) -> Table:
    """Each contestant has a ledger of its own and the same warm Lean processes."""
    bank = read_bank(BANK)
    if quick:
        goals = bank.goals[:: max(1, len(bank.goals) // 12)]
        bank = Bank(bank.path, bank.digest, goals, ())
    lean = LeanAccess(2)
    base = OrchestratorConfig(reuse=False, cpu_target=1000.0, profile=2)
    contestants: dict[str, Callable[[], tuple[int, float]]] = {}
    for strategy in (MICRO, SEARCH):
        config = _with(base, strategies=(strategy,))
        contestants[f"{strategy} alone"] = lambda config=config: _bank_run(bank, config, lean)
    contestants["fixed order"] = lambda: asyncio.run(_fixed_order(bank, lean))
    full = _with(base, strategies=(MICRO, SEARCH))
    contestants["portfolio"] = lambda: _bank_run(bank, full, lean)
    try:
        asyncio.run(_warm(lean))
        found = {name: run() for name, run in contestants.items()}
    finally:
        asyncio.run(lean.close())
    solved = {name: count for name, (count, _) in found.items()}
    taken = {name: value for name, (_, value) in found.items()}
    best = max(solved[f"{s} alone"] for s in (MICRO, SEARCH))
    rows = [
        Row(f"{name}: {solved[name]} of {len(bank.goals)} proved", taken[name], "s")
        for name in contestants
        if name != "portfolio"
    ]
    rows.append(
        Row(
            f"portfolio: {solved['portfolio']} of {len(bank.goals)} proved",
            taken["portfolio"],
            "s",
            "fixed order",
            taken["portfolio"] / taken["fixed order"],
            1.0,
        )
    )
    rows.append(
        Row(
            "goals of the best single strategy that the portfolio missed",
            float(max(0, best - solved["portfolio"])),
            "goals",
            target=0.0,
        )
    )
    return Table(
        "portfolio",
        "The bundled bank on two Lean processes",
        rows,
        "Fixed order: one goal after another, micro and then search, as a script would.",
    )


def _with(config: OrchestratorConfig, **changes) -> OrchestratorConfig:
    import msgspec

    return msgspec.structs.replace(config, **changes)


async def _warm(lean: LeanAccess) -> None:
    async with lean.session() as one, lean.session() as two:
        await one.start("1 = 1")
        await two.start("1 = 1")
    await lean.verify(goal_of(1), ["intro n", "omega"], 120.0)


def _bank_run(bank: Bank, config: OrchestratorConfig, lean: LeanAccess) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as directory, Ledger(Path(directory) / "l.db") as ledger:
        started = time.perf_counter()
        run = asyncio.run(
            run_bank(
                bank,
                config,
                ledger,
                timeout=100_000,
                make_scheduler=lambda c, db, name: Scheduler(c, ledger=db, run_id=name, lean=lean),
            )
        )
        return run.results.goals_solved, time.perf_counter() - started


async def _fixed_order(bank: Bank, lean: LeanAccess) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as directory, Ledger(Path(directory) / "l.db") as ledger:
        started = time.perf_counter()
        solved = 0
        config = OrchestratorConfig(reuse=False, strategies=(MICRO, SEARCH))
        async with Scheduler(config, ledger=ledger, lean=lean) as scheduler:
            for goal in bank.goals:
                for strategy in (MICRO, SEARCH):
                    result = await scheduler.try_strategy(goal, strategy)
                    if result.success:
                        solved += 1
                        break
        return solved, time.perf_counter() - started


BENCHMARKS = {"throughput": throughput, "dedupe": dedupe, "cancel": cancel, "portfolio": portfolio}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orchestrator", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    tables = []
    for name in options.names or BENCHMARKS:
        tables.append(BENCHMARKS[name](options.quick))
        print(render(tables[-1]), end="\n\n", flush=True)
    if options.json:
        document = {table.name: [row.as_json() for row in table.rows] for table in tables}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    missed = any(row.met is False for table in tables for row in table.rows)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
