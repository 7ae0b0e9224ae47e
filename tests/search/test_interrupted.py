"""Ctrl-C wherever it comes: the search goes on, in the same process or in the next."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import treewright
from tests.search.landscape import shape, walk
from tests.signals import interruptible
from treewright.kernel.errors import UsageError
from treewright.kernel.storage import journal
from treewright.search.durable_search import Search

SETTINGS = {"policy": "mcts", "seed": 6, "budget": 6, "lookahead": 2}


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    with interruptible():
        yield


def test_interrupted_at_every_write_it_goes_on(tmp_path: Path, monkeypatch) -> None:
    """Inside the write, where a quick search spends its time; as people do in notebooks."""
    with treewright.open_search(**SETTINGS) as whole:
        whole.run(walk)
    write = journal.write_all
    for at in range(1, 16):
        writes = 0

        def interrupted(fd: int, data: bytes, at: int = at) -> None:
            nonlocal writes
            writes += 1
            write(fd, data)
            if writes == at:
                os.kill(os.getpid(), signal.SIGINT)

        with treewright.open_search(tmp_path / str(at), **SETTINGS) as search:
            monkeypatch.setattr(journal, "write_all", interrupted)
            with contextlib.suppress(KeyboardInterrupt):
                search.run(walk)
            monkeypatch.setattr(journal, "write_all", write)
            search.run(walk)
            assert shape(search) == shape(whole), at
        with treewright.open_search(tmp_path / str(at)) as search:
            assert shape(search) == shape(whole), at
        assert treewright.validate_search(tmp_path / str(at)) == [], at


def test_a_run_does_not_end_before_the_search() -> None:
    """A task that another caller asked for and never told must not block the loop for ever."""
    search = treewright.open_search(budget=4)
    task = search.ask()
    with pytest.raises(UsageError, match="release what was asked"):
        search.run(walk)
    assert task is not None
    search.release(task)
    search.run(walk)
    assert search.evaluations == 4


def test_two_threads_run_one_search_to_its_end() -> None:
    search = treewright.open_search(policy="mcts", seed=1, budget=40)
    ended: list[bool] = []

    def work(search: Search) -> None:
        ended.append(search.run(walk).is_over)

    threads = [threading.Thread(target=work, args=(search,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [True, True]
