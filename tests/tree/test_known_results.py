"""Of several concurrent evaluations with the same code, one measures and the others wait."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from treewright.kernel.procs import cancellation as deadlines
from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.evaluating.known_results import KnownResults
from treewright.tree.guard.baselines import DecidingFiles


@pytest.fixture
def known(tmp_path: Path) -> KnownResults:
    found = KnownResults(DecidingFiles(tmp_path, tmp_path, "run", dry_run=True))
    found.wait_for_turn("tree", "e000001", Deadline(threading.Event()))
    return found


def waiting(known: KnownResults, deadline: Deadline) -> threading.Thread:
    thread = threading.Thread(
        target=known.wait_for_turn, args=("tree", "e000002", deadline), daemon=True
    )
    thread.start()
    return thread


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Noticed(Deadline):
    """A deadline that reports when a caller begins to wait."""

    def __init__(self, cancel: threading.Event, seconds: float) -> None:
        super().__init__(cancel, seconds)
        self.waits = threading.Event()

    @contextlib.contextmanager
    def paused(self) -> Iterator[threading.Event]:
        with super().paused() as cancel:
            self.waits.set()
            yield cancel


def test_a_time_limit_does_not_end_the_wait_for_another_evaluation(
    known: KnownResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for two evaluations that fail in turn takes longer than the limit of one
    evaluation."""
    clock = Clock()
    monkeypatch.setattr(deadlines, "time", clock)
    deadline = Noticed(threading.Event(), 60.0)
    thread = waiting(known, deadline)
    assert deadline.waits.wait(60)
    clock.now += 1000.0
    assert deadline.passed
    thread.join(0.5)
    assert thread.is_alive(), "two evaluations measure the same code at once"
    known.over("e000001")
    thread.join(60)
    assert not thread.is_alive()
    assert not deadline.passed, "what it waited for is not its own time"


def test_a_cancellation_ends_the_wait(known: KnownResults) -> None:
    cancel = threading.Event()
    thread = waiting(known, Deadline(cancel, 600.0))
    cancel.set()
    thread.join(60)
    assert not thread.is_alive()
