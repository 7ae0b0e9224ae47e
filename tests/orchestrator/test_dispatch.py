"""Attempts on an executor: order, cancelling, lost workers, an executor that is lost itself."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.kernel.errors import TreewrightError
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.executors.protocol import Done, Worker, WorkerLost
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.scheduling.dispatch import AttemptBackend, open_backend
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.attempt import AttemptReport, AttemptRequest

MICRO, SEARCH = StrategyType.MICRO, StrategyType.SEARCH
ONE_BY_ONE = OrchestratorConfig(speculation=1, exploration=0.0, reuse=False)


class Scripted:
    """An executor with completions by the test: `answer(request)` for each request."""

    def __init__(self, answer: Callable[[AttemptRequest], Any], capacity: int = 8) -> None:
        self.capacity = capacity
        self.submitted: list[AttemptRequest] = []
        self.cancelled: list[AttemptRequest] = []
        self.closed = False
        self._answer = answer
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self, request: AttemptRequest) -> None:
        self.submitted.append(request)
        answer = self._answer(request)
        if answer is not None:
            self.put(request, answer)

    def put(self, request: AttemptRequest, answer: Any) -> None:
        outcome, error = (None, answer) if isinstance(answer, BaseException) else (answer, None)
        self.done.put(Done(request, outcome, error, Worker("far", 1)))

    def next_done(self, timeout: float | None = None) -> Any:
        try:
            done = self.done.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(done.error, TreewrightError):
            raise done.error
        return done

    def cancel(self, request: AttemptRequest) -> None:
        self.cancelled.append(request)
        failed = Result(False, request.strategy, error="cancelled")
        self.put(request, AttemptReport(failed, 2.0, 0.0, 1.5, cancelled=True))

    def close(self) -> None:
        self.closed = True


def tried(request: AttemptRequest, success: bool, cpu: float = 0.25) -> AttemptReport:
    result = Result(success, request.strategy, ("x",) if success else (), 0.1, error="no")
    return AttemptReport(result, 0.1, 0.0, cpu)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def process(
    ledger: Ledger, executor: Any, goals: list[Goal], config: OrchestratorConfig, **more: Any
) -> dict[str, Result]:
    async def main() -> dict[str, Result]:
        waiting: asyncio.Queue[Goal] = asyncio.Queue()
        for goal in goals:
            waiting.put_nowait(goal)
        async with Scheduler(
            config,
            ledger=ledger,
            workers=[FakeWorker(MICRO), FakeWorker(SEARCH)],
            verify=more.get("verify", accept),
            throttle=Throttle(1.0, read_load=lambda: 0.0),
            backend=AttemptBackend(lambda work: executor, is_remote=True),
        ) as scheduler:
            return await asyncio.wait_for(scheduler.process_queue(waiting), 120)

    return asyncio.run(main())


def rows(ledger: Ledger) -> list[tuple[Any, ...]]:
    sql = "SELECT goal_id, strategy, status, cpu_seconds FROM attempts ORDER BY id"
    return [tuple(row) for row in ledger.query(sql)]


def goals(count: int) -> list[Goal]:
    return [Goal(id=f"{i}", text=f"{i} = {i}") for i in range(count)]


def test_goals_go_out_in_order_and_no_more_than_fit(ledger: Ledger) -> None:
    under_way: list[AttemptRequest] = []
    most = 0

    def answer(request: AttemptRequest) -> None:
        nonlocal most
        under_way.append(request)
        most = max(most, len(under_way))
        if len(under_way) == 3:  # the newest first: completions come in any order
            while under_way:
                last = under_way.pop()
                executor.put(last, tried(last, True))

    executor = Scripted(answer, capacity=3)
    results = process(ledger, executor, goals(12), ONE_BY_ONE)
    assert all(result.success for result in results.values())
    assert most == 3
    assert [request.goal.id for request in executor.submitted] == [f"{i}" for i in range(12)]
    assert {request.budget for request in executor.submitted} == {8.0}
    assert executor.closed
    assert {row[1:] for row in rows(ledger)} == {("micro", "proved", 0.25)}
    (row, *_) = ledger.query("SELECT metadata FROM attempts")
    assert '"worker":"far"' in row["metadata"].replace(" ", "")


def test_a_workers_claim_is_no_proof(ledger: Ledger) -> None:
    from tests.orchestrator.fakes import refuse

    executor = Scripted(lambda request: tried(request, True))
    results = process(ledger, executor, goals(1), ONE_BY_ONE, verify=refuse)
    assert not results["0"].success
    assert [row[2] for row in rows(ledger)] == ["rejected", "rejected"]


def test_a_lost_worker_teaches_nothing_and_the_attempt_is_made_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treewright.orchestrator.scheduling.lanes.FIRST_DELAY_SECONDS", 0.001)
    outcomes: list[Any] = [WorkerLost("the worker was lost"), False, None]

    def answer(request: AttemptRequest) -> Any:
        found = outcomes.pop(0)
        return found if isinstance(found, WorkerLost) else tried(request, found is None)

    results = process(ledger, Scripted(answer), goals(1), ONE_BY_ONE)
    assert results["0"].success
    assert [row[1:3] for row in rows(ledger)] == [
        ("micro", "unavailable"),
        ("search", "failed"),
        ("micro", "proved"),
    ]
    arms = ledger.arms()
    assert (arms["", MICRO].trials, arms["", SEARCH].trials) == (1, 1)


def test_what_a_cancelled_attempt_used_comes_back(ledger: Ledger) -> None:
    executor = Scripted(lambda request: tried(request, True) if request.strategy is MICRO else None)
    config = OrchestratorConfig(speculation=2, reuse=False)
    process(ledger, executor, goals(1), config)
    assert [request.strategy for request in executor.cancelled] == [SEARCH]
    assert sorted(rows(ledger)) == [
        ("0", "micro", "proved", 0.25),
        ("0", "search", "cancelled", 1.5),
    ]


def test_when_the_executor_is_lost_the_run_ends_with_its_words(ledger: Ledger) -> None:
    executor = Scripted(lambda request: TreewrightError("the connection was lost"))
    with pytest.raises(TreewrightError, match="the connection was lost"):
        process(ledger, executor, goals(4), ONE_BY_ONE)
    assert [row for row in rows(ledger) if row[2] != "cancelled"] == []
    assert ledger.arms() == {}


def test_one_attempt_at_a_time_is_an_executor_too(ledger: Ledger) -> None:
    async def main() -> list[str]:
        async with Scheduler(
            ONE_BY_ONE,
            ledger=ledger,
            workers=[worker],
            verify=accept,
            throttle=Throttle(1.0, read_load=lambda: 0.0),
            backend=AttemptBackend(InlineExecutor),
        ) as scheduler:
            done = [scheduler.run_goal(goal) for goal in goals(5)]
            return [str(result.strategy) for result in await asyncio.gather(*done)]

    worker = FakeWorker(MICRO, lambda _: True)
    assert asyncio.run(main()) == ["micro"] * 5
    assert worker.asked == ["0", "1", "2", "3", "4"]


def test_how_many_attempts_an_executor_has_room_for() -> None:
    config = OrchestratorConfig(max_light=3, max_heavy=1, speculation=2, lean_sessions=2)
    for name, room in ((None, 8), ("threads", 8), ("inline", 1)):
        with open_backend(name, None, config) as backend:
            executor = backend.make(lambda request: tried(request, True))
            assert (executor.capacity, backend.is_remote) == (room, False)
            assert backend.lean_sessions(config) == 2
            executor.close()
    assert AttemptBackend(backend.make, is_remote=True).lean_sessions(config) == 1
