"""What searches teach: kept by the ledger, given to the next run, the same when it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.orchestrator.fakes import FakeWorker, accept, refuse
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.attempt import AttemptRequest, LocalStrategies
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import current_meter
from treewright.orchestrator.workers.search import SearchWorker
from treewright.proving.learning import Lesson

LESSON = Lesson("eq", "rfl", 4, 2, 0.5, 0.8)


class Teaching(FakeWorker):
    """Leaves a lesson, as a search does, and remembers the lessons it is given."""

    def __init__(self, decide: bool = True) -> None:
        super().__init__(StrategyType.SEARCH, lambda _: decide)
        self.given: list[tuple[Lesson, ...]] = []

    async def run(self, goal: Goal, timeout: float) -> Result:
        meter = current_meter.get()
        assert meter is not None
        self.given.append(meter.given)
        meter.lessons.append(LESSON)
        return await super().run(goal, timeout)


def run_one(
    ledger: Ledger, worker: Teaching, goal: str, verify=accept, use: bool = True, run_id: str = ""
) -> None:
    async def go() -> None:
        scheduler = Scheduler(
            OrchestratorConfig(cpu_target=1000.0, lessons=use),
            ledger=ledger,
            workers=[worker],
            verify=verify,
            run_id=run_id,
        )
        async with scheduler:
            await scheduler.run_goal(Goal(goal, goal))

    asyncio.run(go())


def test_a_search_keeps_tries_the_next(tmp_path: Path) -> None:
    worker = Teaching()
    with Ledger(tmp_path / "ledger.db") as ledger:
        run_one(ledger, worker, "a = a")
        assert ledger.lessons() == (LESSON,)
        run_one(ledger, worker, "b = b")
        [now] = ledger.lessons()
        run_one(ledger, worker, "c = c", use=False)
    assert worker.given == [(), (LESSON,), ()]
    assert LESSON.tried < now.tried < 2 * LESSON.tried  # the older ones have faded a little


def test_what_is_refused_keeps_tries_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        run_one(ledger, Teaching(), "a = a", refuse)
        assert ledger.lessons() == ()
        run_one(ledger, Teaching(decide=False), "b = b")  # its solved subgoals teach
        assert ledger.lessons() == (LESSON,)


def test_a_run_that_goes_on_has_what_it_began_with(tmp_path: Path) -> None:
    worker = Teaching()
    with Ledger(tmp_path / "ledger.db") as ledger:
        run_one(ledger, worker, "a = a")
        ledger.open_run("mine", "bank", "subject", "{}")
        run_one(ledger, worker, "b = b", run_id="mine")
        assert ledger.lessons() != (LESSON,)
        run_one(ledger, worker, "c = c", run_id="mine")
    assert worker.given[1:] == [(LESSON,), (LESSON,)]


def test_two_that_begin_a_run_at_once_are_given_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger, Ledger(tmp_path / "ledger.db") as other:
        ledger.open_run("mine", "bank", "subject", "{}")

        def late() -> tuple[Lesson, ...]:
            assert other.lessons_of_run("mine") == ()  # the other one is first to write it down
            return (LESSON,)

        monkeypatch.setattr(ledger, "lessons", late)
        assert ledger.lessons_of_run("mine") == ()


@pytest.mark.xdist_group("lean-session")
def test_the_search_worker_learns_and_uses_it(home: LeanHome) -> None:
    given = (Lesson("eq", "rfl", 50, 50, 0.1, 5.0), Lesson("eq", "simp", 50, 1, 50.0, 20.0))

    async def go() -> tuple[Lesson, ...]:
        lean = LeanAccess(1, lambda: home)
        try:
            strategies = LocalStrategies({"search": SearchWorker(lean)}, asyncio.get_running_loop())
            request = AttemptRequest(Goal("two", "1 + 1 = 2"), "search", 60.0, given)
            tried = await asyncio.to_thread(strategies.attempt, request)
        finally:
            await lean.close()
        assert tried.result.success, tried.result
        assert tried.result.tactics == ("rfl",)
        return tried.lessons

    [lesson] = asyncio.run(go())
    assert (lesson.goal_class, lesson.shape, lesson.tried, lesson.helped) == ("eq", "rfl", 1, 1)
    assert 0.0 < lesson.prior < 1.0
