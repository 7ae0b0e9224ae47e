"""`Search.run`: callbacks, stopping, a limit of time; and its tasks as columns."""

from __future__ import annotations

import threading

import pytest

import treewright
from treewright.kernel.errors import UsageError
from treewright.search import evaluation_loop
from treewright.search.durable_search import Search
from treewright.search.tasks import Finished


def scored(task: treewright.Task) -> float:
    if task.number == 3:
        raise treewright.EvaluationFailed("three")
    return float(task.number)


def opened(**settings) -> Search:
    return treewright.open_search(policy="random", seed=1, **settings)


@pytest.mark.parametrize("workers", [1, 3])
def test_callbacks_hear_of_every_outcome_once_it_is_there(workers: int) -> None:
    heard: list[Finished] = []

    def hear(search: Search, finished: Finished) -> None:
        assert finished.node in search.nodes or finished.number in search.failures
        heard.append(finished)

    search = opened(budget=8).run(scored, workers=workers, callbacks=[hear])
    assert sorted(each.number for each in heard) == list(range(1, 9))
    assert {each.number: each.reason for each in heard if each.node is None} == search.failures


def test_a_callback_can_stop_the_run_and_another_goes_on() -> None:
    def stop(search: Search, finished: Finished) -> None:
        if finished.number >= 4:
            search.stop()

    search = opened(budget=20, lookahead=3)
    search.run(scored, workers=3, callbacks=[stop])
    assert 4 <= search.evaluations <= 6 + 1
    assert search.under_way == 0
    assert not search.is_over
    search.run(scored, workers=3)
    assert search.is_over
    whole = opened(budget=20, lookahead=3).run(scored, workers=3)
    assert search.columns() == whole.columns()


def test_an_exception_of_a_callback_stops_the_search_and_loses_nothing() -> None:
    def broken(search: Search, finished: Finished) -> None:
        raise RuntimeError("of the callback")

    search = opened(budget=5)
    with pytest.raises(RuntimeError, match="of the callback"):
        search.run(scored, callbacks=[broken])
    assert search.evaluations == 1
    search.run(scored)
    assert search.evaluations == 5


def test_after_the_timeout_no_task_is_begun_and_running_ones_are_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        now = 100.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(evaluation_loop, "time", clock)

    def slow(task: treewright.Task) -> float:
        if task.number == 2:
            clock.now += 11
        return 1.0

    search = opened(budget=9).run(slow, timeout=10)
    assert (search.evaluations, search.under_way) == (2, 0)
    assert search.run(scored, timeout=0).evaluations == 2
    assert search.run(slow, timeout=10).is_over


LONG = 60
"""A limit for waits that must end."""


def in_thread(search: Search, evaluate, **settings) -> threading.Thread:
    thread = threading.Thread(target=search.run, args=[evaluate], kwargs=settings, daemon=True)
    thread.start()
    return thread


def test_stop_reaches_a_run_that_another_one_outlived() -> None:
    search = opened(budget=50, lookahead=4)
    begun, may_end = threading.Event(), threading.Event()
    runs: list[threading.Thread] = []

    def second(task: treewright.Task) -> float:
        begun.set()
        assert may_end.wait(LONG)
        return 1.0

    def first(task: treewright.Task) -> float:
        runs.append(in_thread(search, second))
        assert begun.wait(LONG)
        raise RuntimeError("the first run ends")

    with pytest.raises(RuntimeError, match="the first run ends"):
        search.run(first)
    search.stop()
    may_end.set()
    runs[0].join(LONG)
    assert not runs[0].is_alive()
    assert search.evaluations == 1


def test_stop_and_timeout_reach_a_run_that_waits_for_others() -> None:
    search = opened(budget=9, lookahead=2)
    held = search.ask()
    assert held is not None
    has_evaluated = threading.Event()
    stopped = in_thread(search, scored, callbacks=[lambda *_: has_evaluated.set()])
    assert has_evaluated.wait(LONG)
    search.stop()  # its next choice needs the outcome of this task
    late = in_thread(search, scored, timeout=0.01)
    for thread in (stopped, late):
        thread.join(LONG)
        assert not thread.is_alive()
    assert (search.evaluations, search.under_way) == (1, 1)
    search.tell(held, 1.0)
    assert search.run(scored).is_over


def test_wrong_arguments_are_errors_of_one_line() -> None:
    search = opened(budget=1)
    with pytest.raises(UsageError, match=r"stop\(\) ends a run"):
        search.stop()
    with pytest.raises(UsageError, match="timeout is a number of seconds"):
        search.run(scored, timeout=-1)
    with pytest.raises(UsageError, match=r"write \[\.\.\.\] around it"):
        search.run(scored, callbacks=print)  # pyright: ignore[reportArgumentType]


def test_columns_are_every_task_with_its_outcome() -> None:
    search = opened(budget=4, lookahead=4)
    assert {len(column) for column in search.columns().values()} == {0}
    tasks = [search.ask() for _ in range(3)]
    assert all(tasks)
    search.tell(tasks[0], {"a": 1.0, "b": 3.0}, data=[7])
    search.fail(tasks[1], "no")
    found = search.columns()
    assert {len(column) for column in found.values()} == {3}
    assert found["state"] == ["complete", "failed", "under way"]
    assert found["score"] == [2.0, None, None]
    assert found["score[b]"] == [3.0, None, None]
    assert found["reason"] == [None, "no", None]
    assert found["data"] == [[7], None, None]
    assert found["parent"] == [0, 0, 0]
