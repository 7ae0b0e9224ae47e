"""The scheduler with strategies that need no Lean: races, verification, dedupe, resuming."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.orchestrator.fakes import FakeWorker, Raising, accept, refuse
from treewright.lean.session.errors import LeanError
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.worker import UNAVAILABLE, Availability

MICRO, SEARCH, SKETCH = StrategyType.MICRO, StrategyType.SEARCH, StrategyType.SKETCH
GOAL = Goal(id="g", text="1 = 1", estimated_difficulty=0.2)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def run(ledger: Ledger, workers, action: Callable, config=OrchestratorConfig(), **more):  # noqa: B008
    """Runs `action(scheduler)` with an unthrottled scheduler and closes it."""

    async def main():
        idle = Throttle(1.0, read_load=lambda: 0.0)
        more.setdefault("verify", accept)
        async with Scheduler(
            config, ledger=ledger, workers=workers, throttle=idle, **more
        ) as scheduler:
            return await asyncio.wait_for(action(scheduler), 120)

    return asyncio.run(main())


def queue_of(*goals: Goal) -> asyncio.Queue[Goal]:
    queue: asyncio.Queue[Goal] = asyncio.Queue()
    for goal in goals:
        queue.put_nowait(goal)
    return queue


def rows(ledger: Ledger) -> list[tuple[str, str, str]]:
    found = ledger.query("SELECT goal_id, strategy, status FROM attempts ORDER BY id")
    return [tuple(row) for row in found]


async def forever() -> None:
    await asyncio.Event().wait()


def test_the_first_verified_success_wins_and_the_losers_are_cancelled(ledger: Ledger) -> None:
    slow = FakeWorker(SEARCH, wait=forever)
    quick = FakeWorker(MICRO, lambda _: True)
    result = run(ledger, [slow, quick], lambda s: s.run_goal(GOAL))
    assert (result.success, result.strategy, result.tactics) == (True, MICRO, ("by_micro",))
    assert slow.cancelled == ["g"]
    assert sorted(rows(ledger)) == [("g", "micro", "proved"), ("g", "search", "cancelled")]
    assert set(ledger.arms()) == {("", MICRO)}, "the loser's statistics are as before"


def test_a_claim_that_the_replay_check_refuses_is_a_failure(ledger: Ledger) -> None:
    result = run(
        ledger, [FakeWorker(MICRO, lambda _: True)], lambda s: s.run_goal(GOAL), verify=refuse
    )
    assert not result.success
    assert "rests on magic" in str(result.error)
    assert rows(ledger) == [("g", "micro", "rejected")]
    assert ledger.arms()["", MICRO].successes == 0
    assert ledger.get_cached_tactics(GOAL) is None


def test_a_refused_claim_does_not_end_the_race(ledger: Ledger) -> None:
    async def only_search(goal, tactics, timeout):
        return await (accept if "by_search" in tactics else refuse)(goal, tactics, timeout)

    both = [FakeWorker(MICRO, lambda _: True), FakeWorker(SEARCH, lambda _: True)]
    result = run(ledger, both, lambda s: s.run_goal(GOAL), verify=only_search)
    assert result.success
    assert result.strategy is SEARCH


def test_an_exception_is_a_failed_result_and_the_others_go_on(ledger: Ledger) -> None:
    workers = [Raising(MICRO), FakeWorker(SEARCH, lambda _: True)]
    config = OrchestratorConfig(speculation=1, exploration=0.0)
    result = run(ledger, workers, lambda s: s.run_goal(GOAL), config)
    assert result.success
    assert rows(ledger) == [("g", "micro", "error"), ("g", "search", "proved")]
    (row,) = ledger.query("SELECT error FROM attempts WHERE strategy = 'micro'")
    assert row["error"] == "RuntimeError: boom"


def test_what_broke_says_nothing_and_is_tried_again(ledger: Ledger) -> None:
    """A check that is lost, takes too long or cannot be done, and a strategy that raises."""

    async def lost(goal, tactics, timeout):
        return Verdict("lost", "the process ended")

    async def too_long(goal, tactics, timeout):
        return Verdict("timeout", "120 s")

    async def raising(goal, tactics, timeout):
        raise LeanError("the Lean processes are being ended")

    ledger.update_tactic_cache(GOAL, tactics=["x"], success_rate=0.9, avg_time=1.0)
    worker = FakeWorker(MICRO, lambda _: True)
    for check in (lost, too_long, raising):
        result = run(ledger, [worker], lambda s: s.run_goal(GOAL), verify=check, run_id="r")
        assert not result.success
    run(ledger, [Raising(MICRO)], lambda s: s.run_goal(GOAL), verify=lost, run_id="r")
    assert worker.asked == ["g"] * 3
    assert rows(ledger) == [("g", "cache", "error"), ("g", "micro", "error")] * 4
    assert ledger.arms() == {}
    cached = ledger.get_cached_tactics(GOAL)
    assert cached is not None
    assert (cached["use_count"], cached["success_rate"]) == (0, 0.9)
    assert not ledger.check_duplicate(GOAL.text, MICRO)


def test_a_second_try_is_a_row_of_its_own(ledger: Ledger) -> None:
    """In the same process, and in one that goes on with the run."""
    outcomes = [False, True, True]
    worker = FakeWorker(MICRO, lambda _: outcomes.pop(0))

    async def twice(scheduler: Scheduler) -> None:
        await scheduler.try_strategy(GOAL, MICRO)
        await scheduler.try_strategy(GOAL, MICRO)

    run(ledger, [worker], twice, run_id="r")
    assert [status for _, _, status in rows(ledger)] == ["failed", "proved"]
    run(ledger, [worker], lambda s: s.try_strategy(GOAL, MICRO), run_id="r")
    assert [status for _, _, status in rows(ledger)] == ["failed", "proved", "proved"]


def test_processes_that_do_the_same_of_a_run_record_it_once(ledger: Ledger) -> None:
    async def beside(scheduler: Scheduler) -> None:
        async with Scheduler(
            ledger=ledger, workers=[FakeWorker(MICRO)], verify=accept, run_id="r"
        ) as other:
            await scheduler.try_strategy(GOAL, MICRO)
            await other.try_strategy(GOAL, MICRO)

    run(ledger, [FakeWorker(MICRO)], beside, run_id="r")
    assert rows(ledger) == [("g", "micro", "failed")]


def test_every_strategy_is_tried_before_a_goal_is_given_up(ledger: Ledger) -> None:
    workers = [FakeWorker(s) for s in (MICRO, SEARCH, SKETCH)]
    config = OrchestratorConfig(speculation=2)
    result = run(ledger, workers, lambda s: s.run_goal(GOAL), config)
    assert not result.success
    assert str(result.error).count("no") >= 3
    assert all(worker.asked == ["g"] for worker in workers)
    assert ledger.arms()["", SKETCH].trials == 1


def test_an_unavailable_strategy_is_left_out_and_said_so(ledger: Ledger) -> None:
    absent = FakeWorker(SEARCH, availability=Availability(False, "no model"))

    async def look(scheduler: Scheduler):
        await scheduler.run_goal(GOAL)
        return dict(scheduler.excluded)

    assert run(ledger, [FakeWorker(MICRO), absent], look) == {SEARCH: "no model"}
    assert absent.asked == []


def test_what_was_tried_is_not_tried_again_unless_there_is_more_time(ledger: Ledger) -> None:
    worker = FakeWorker(MICRO)
    for seconds, expected in ((8.0, 1), (8.0, 1), (5.0, 1), (16.0, 2)):
        config = OrchestratorConfig(timeouts={MICRO: seconds})
        run(ledger, [worker], lambda s: s.run_goal(GOAL), config)
        assert len(worker.asked) == expected


def test_without_reuse_a_run_measures_afresh(ledger: Ledger) -> None:
    worker = FakeWorker(MICRO, lambda _: True)
    config = OrchestratorConfig(reuse=False)
    for _ in range(2):
        run(ledger, [worker], lambda s: s.run_goal(GOAL), config)
    assert worker.asked == ["g", "g"]


def test_what_closed_an_equal_goal_is_tried_first(ledger: Ledger) -> None:
    worker = FakeWorker(MICRO, lambda _: True)
    first = Goal(id="a", text="∀ n : Nat, n = n")
    renamed = Goal(id="b", text="∀  m : Nat,  m = m")
    run(ledger, [worker], lambda s: s.run_goal(first))
    result = run(ledger, [worker], lambda s: s.run_goal(renamed))
    assert result.success
    assert result.strategy is StrategyType.CACHE
    assert worker.asked == ["a"]
    cached = ledger.get_cached_tactics(renamed)
    assert cached is not None
    assert cached["use_count"] == 1


def test_a_cache_entry_that_stopped_working_is_dropped_behind_the_strategies(
    ledger: Ledger,
) -> None:
    ledger.update_tactic_cache("1 = 1", tactics=["old"], success_rate=0.75, avg_time=1.0)

    async def not_old(goal, tactics, timeout):
        return await (refuse if tuple(tactics) == ("old",) else accept)(goal, tactics, timeout)

    worker = FakeWorker(MICRO, lambda _: True)
    result = run(ledger, [worker], lambda s: s.run_goal(GOAL), verify=not_old)
    assert result.success
    assert result.strategy is MICRO
    cached = ledger.get_cached_tactics("1 = 1")
    assert cached is not None
    assert cached["tactics"] == ["by_micro"]
    ledger.update_tactic_cache("2 = 2", tactics=["old"], success_rate=0.7, avg_time=1.0)
    run(ledger, [worker], lambda s: s.run_goal(Goal(id="h", text="2 = 2")), verify=not_old)
    assert ("h", "cache", "rejected") not in rows(ledger), "0.7 is not above 0.7"


def test_the_strategy_that_proved_a_goal_may_prove_it_again(ledger: Ledger) -> None:
    """Also in the run of that name, and when the cache has nothing (any more)."""
    worker = FakeWorker(MICRO, lambda _: True)
    for run_id in ("r", "r", "other"):
        assert run(ledger, [worker], lambda s: s.run_goal(GOAL), run_id=run_id).success
        with sqlite3.connect(ledger.path) as connection:
            connection.execute("DELETE FROM tactic_cache")
        connection.close()
    assert worker.asked == ["g", "g", "g"]


def test_slots_bound_what_runs_at_once(ledger: Ledger) -> None:
    active = {"light": 0, "heavy": 0}
    most = {"light": 0, "heavy": 0}

    class Counting(FakeWorker):
        async def run(self, goal: Goal, timeout: float) -> Result:
            lane = "heavy" if goal.heavy else "light"
            active[lane] += 1
            most[lane] = max(most[lane], active[lane])
            while most["light"] < 3:  # until the light lane is full
                await asyncio.sleep(0)
            active[lane] -= 1
            return Result(False, MICRO, error="no")

    goals = [
        Goal(id=f"{i}", text=f"{i} = 0", estimated_difficulty=0.6 if i % 2 else 0.59)
        for i in range(60)
    ]
    config = OrchestratorConfig(max_light=3, max_heavy=1, reuse=False)
    results = run(ledger, [Counting(MICRO)], lambda s: s.process_queue(queue_of(*goals)), config)
    assert len(results) == 60
    assert most == {"light": 3, "heavy": 1}


def test_a_goal_whose_lean_cannot_be_had_comes_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treewright.orchestrator.scheduling.lanes.FIRST_DELAY_SECONDS", 0.001)
    outcomes = [False, False, True]

    class Flaky(FakeWorker):
        async def run(self, goal: Goal, timeout: float) -> Result:
            if outcomes.pop(0):
                return Result(True, MICRO, ("x",))
            return Result(False, MICRO, error="no Lean", metadata={"kind": UNAVAILABLE})

    other = FakeWorker(SEARCH)
    results = run(ledger, [Flaky(MICRO), other], lambda s: s.process_queue(queue_of(GOAL)))
    assert results["g"].success
    assert other.asked == ["g"], "what was tried to its end is not tried again"
    statuses = [status for _, strategy, status in rows(ledger) if strategy == "micro"]
    assert statuses == ["unavailable", "unavailable", "proved"]


def test_shutdown_cancels_what_runs_and_a_later_run_of_that_name_goes_on(ledger: Ledger) -> None:
    goals = [Goal(id=f"{i}", text=f"{i} = {i}") for i in range(5)]
    worker = FakeWorker(MICRO, lambda _: True, wait=forever)

    async def stop(scheduler: Scheduler):
        task = asyncio.create_task(scheduler.process_queue(queue_of(*goals)))
        while len(worker.asked) < 5:
            await asyncio.sleep(0)
        scheduler.shutdown()
        return await task

    assert run(ledger, [worker], stop, run_id="r") == {}
    assert {status for _, _, status in rows(ledger)} == {"cancelled"}
    again = FakeWorker(MICRO, lambda _: True)
    results = run(ledger, [again], lambda s: s.process_queue(queue_of(*goals)), run_id="r")
    assert all(result.success for result in results.values())
    assert len(results) == 5


def test_the_throttle_is_asked_before_each_start(ledger: Ledger) -> None:
    class Counting(Throttle):
        pauses = 0

        async def pause(self) -> float:
            Counting.pauses += 1
            return 0.0

    async def main() -> None:
        async with Scheduler(
            OrchestratorConfig(),
            ledger=ledger,
            workers=[FakeWorker(MICRO)],
            verify=accept,
            throttle=Counting(0.5),
        ) as scheduler:
            await scheduler.process_queue(queue_of(*(Goal(id=f"{i}", text="p") for i in range(7))))

    asyncio.run(main())
    assert Counting.pauses == 7


def test_a_start_that_waits_delays_no_other_goal(ledger: Ledger) -> None:
    """On a busy machine every goal of a bank gets its turn, also while others wait."""
    waiting: list[asyncio.Event] = []

    async def sleep(seconds: float) -> None:
        assert seconds == 1.0
        waiting.append(asyncio.Event())
        if len(waiting) == 6:  # all goals wait at the same time
            for each in waiting:
                each.set()
        await waiting[-1].wait()

    async def main() -> dict[str, Result]:
        async with Scheduler(
            ledger=ledger,
            workers=[FakeWorker(MICRO)],
            verify=accept,
            throttle=Throttle(0.5, read_load=lambda: 50.0, sleep=sleep),
        ) as scheduler:
            goals = queue_of(*(Goal(id=f"{i}", text=f"{i} = 1") for i in range(6)))
            return await asyncio.wait_for(scheduler.process_queue(goals), 120)

    assert len(asyncio.run(main())) == 6


def test_what_was_proved_while_the_throttle_held_the_rest_back_counts(ledger: Ledger) -> None:
    class OnlyTheFirst(Throttle):
        started = 0

        async def pause(self) -> float:
            self.started += 1
            if self.started > 1:
                await forever()
            return 0.0

    seen: list[str] = []

    async def main() -> dict[str, Result]:
        async with Scheduler(
            OrchestratorConfig(),
            ledger=ledger,
            workers=[FakeWorker(MICRO, lambda _: True)],
            verify=accept,
            throttle=OnlyTheFirst(0.5),
        ) as scheduler:
            goals = queue_of(*(Goal(id=f"{i}", text=f"{i} = {i}") for i in range(3)))
            task = asyncio.create_task(
                scheduler.process_queue(goals, lambda goal, _: seen.append(goal.id))
            )
            while not any(status == "proved" for _, _, status in rows(ledger)):
                await asyncio.sleep(0.01)
            scheduler.shutdown()
            return await asyncio.wait_for(task, 60)

    results = asyncio.run(main())
    assert list(results) == seen == ["0"]
    assert results["0"].success


def test_statistics_are_kept_per_class_and_across_runs(ledger: Ledger) -> None:
    goals = [Goal(id=f"{i}", text=f"{i} = {i}", goal_class="nat") for i in range(4)]
    run(ledger, [FakeWorker(MICRO)], lambda s: s.process_queue(queue_of(*goals)))

    async def look(scheduler: Scheduler):
        return scheduler.bandit.arm(MICRO, "nat"), scheduler.bandit.arm(MICRO, "lists")

    nat, lists = run(ledger, [FakeWorker(MICRO)], look)
    assert (nat.trials, lists.trials) == (4, 0)


def test_goals_that_share_lean_do_not_race_for_it(ledger: Ledger) -> None:
    """One goal alone gets a race; of four on two sessions each tries one strategy at a time."""
    together: dict[str, int] = {}
    most: dict[str, int] = {}
    everybody = asyncio.Event()

    class Counting(FakeWorker):
        async def run(self, goal: Goal, timeout: float) -> Result:
            together[goal.id] = together.get(goal.id, 0) + 1
            most[goal.id] = max(most.get(goal.id, 0), together[goal.id])
            if sum(together.values()) >= expected and len(most) >= goals_in_all:
                everybody.set()
            await everybody.wait()
            together[goal.id] -= 1
            return Result(False, self.strategy, error="no")

    workers = [Counting(MICRO), Counting(SEARCH)]
    config = OrchestratorConfig(lean_sessions=2, speculation=3, reuse=False)
    expected, goals_in_all = 2, 1
    run(ledger, workers, lambda s: s.process_queue(queue_of(GOAL)), config)
    assert most == {"g": 2}
    most.clear()
    everybody = asyncio.Event()  # the other belongs to the loop that ended
    expected, goals_in_all = 4, 4
    goals = [Goal(id=f"{i}", text=f"{i} = 0") for i in range(4)]
    run(ledger, workers, lambda s: s.process_queue(queue_of(*goals)), config)
    assert sorted(most.values())[:3] == [1, 1, 1], "the first may have begun alone"
    assert len(ledger.query("SELECT 1 FROM attempts WHERE run_id != ''")) == 10
