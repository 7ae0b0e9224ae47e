"""Executors by name, those of plug-ins too, and cancelling a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import treewright
from treewright.kernel.errors import UsageError
from treewright.kernel.executors import backends
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.executors.protocol import NotBegun, Stop, current_stop
from treewright.kernel.executors.threads import ThreadExecutor
from treewright.tree.run.parallelism import Parallelism

PLUG_IN = """
import contextlib
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.executors.backends import Backend

opened = []

@contextlib.contextmanager
def _open(place):
    opened.append(place.capacity)
    yield InlineExecutor

backend = Backend(_open)
elsewhere = Backend(_open, is_remote=True)
nothing = 7
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package as pip would leave it, with these entry points."""

    def install(entries: str) -> None:
        (tmp_path / "their_executor.py").write_text(PLUG_IN)
        info = tmp_path / "their_executor-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-executor\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[treewright.executors]\n{entries}\n")
        monkeypatch.syspath_prepend(tmp_path)
        backends.BACKENDS.refresh()

    yield install
    backends.BACKENDS.refresh()


def test_a_plug_in_is_chosen_by_its_name(install: Callable[[str], None], tmp_path: Path) -> None:
    install("mine = their_executor:backend\nfar = their_executor:elsewhere")
    assert backends.BACKENDS.get("mine") == backends.BACKENDS.get("mine")
    with treewright.open_search(tmp_path / "s", policy="random", budget=3) as search:
        search.run(lambda task: 1.0, workers=2, backend="mine")
    import their_executor  # pyright: ignore[reportMissingImports]

    assert their_executor.opened == [2]
    assert Parallelism(2, "mine").backend == "mine"
    assert Parallelism(2, "far", cluster_remote="origin").backend == "far"
    with pytest.raises(UsageError, match="or a plug-in's that takes them"):
        Parallelism(2, "far", cluster="there")


def test_an_unknown_executor_gives_one_line_with_the_known_ones(
    install: Callable[[str], None], tmp_path: Path
) -> None:
    install(
        "mine = their_executor:backend\nodd = their_executor:nothing\n"
        "old = gone:backend\nill = sick:backend"
    )
    there = "inline, threads, threadpool, dask, mine"
    line = f"there is no executor 'ray'; there are {there}"
    with pytest.raises(UsageError, match=line):
        backends.BACKENDS.get("ray")
    with pytest.raises(UsageError, match=line):
        Parallelism(1, "ray")
    with treewright.open_search(tmp_path / "s", policy="random", budget=3) as search:
        with pytest.raises(UsageError, match=line):
            search.run(lambda task: 1.0, backend="ray")
        with pytest.raises(UsageError, match="'threads' takes no cluster's address"):
            search.run(lambda task: 1.0, backend="threads", cluster="tcp://127.0.0.1:9")
    with pytest.raises(UsageError, match="their_executor:nothing: it is no Backend"):
        backends.BACKENDS.get("odd")
    with pytest.raises(
        UsageError,
        match="'old' cannot be used: gone:backend: ModuleNotFoundError",
    ):
        backends.BACKENDS.get("old")
    (tmp_path / "sick.py").write_text("raise RuntimeError('on a bad day')\n")
    with pytest.raises(UsageError, match="sick:backend: RuntimeError: on a bad day"):
        backends.BACKENDS.get("ill")


def test_a_plug_in_cannot_take_our_names(install: Callable[[str], None]) -> None:
    install("dask = their_executor:backend")
    with pytest.raises(UsageError, match="their_executor:backend calls its executor 'dask'"):
        backends.BACKENDS.get("inline")


def test_cancelling_reaches_the_request_that_runs_and_the_one_that_waits() -> None:
    running = threading.Event()

    def work(request: str) -> str:
        stop = current_stop()
        running.set()
        stop.wait()
        return f"{request} was told"

    executor = ThreadExecutor(work, 1)
    first, second = "first", "second"
    executor.submit(first)
    executor.submit(second)
    running.wait()
    executor.cancel(second)
    executor.cancel(first)
    executor.cancel("a stranger")
    done = [executor.next_done(), executor.next_done()]
    executor.close()
    assert done[0] is not None
    assert (done[0].request, done[0].outcome) == ("first", "first was told")
    assert done[1] is not None
    assert isinstance(done[1].error, NotBegun)


def test_inline_does_not_begin_a_cancelled_request() -> None:
    executor = InlineExecutor(lambda request: request)
    executor.submit("request")
    executor.cancel("request")
    done = executor.next_done()
    assert done is not None
    assert isinstance(done.error, NotBegun)


def test_threads_are_started_as_they_are_needed() -> None:
    executor = ThreadExecutor(lambda request: request, 50)
    for number in range(20):
        executor.submit(number)
        done = executor.next_done()
        assert done is not None
        assert done.outcome == number
    # Between "done" and idle there is a moment.
    assert 1 <= len(executor._threads) < 50
    executor.close()


def test_a_stop_calls_back_once_also_if_it_was_set_before() -> None:
    stop, called = Stop(), []
    stop.on_set(lambda: called.append("before"))
    stop.set()
    stop.set()
    stop.on_set(lambda: called.append("after"))
    assert called == ["before", "after"]
    assert not current_stop().is_set()
