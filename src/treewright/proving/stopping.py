"""Ending work that waits for Lean when somebody asks to stop: a long file takes minutes to read."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

_LOOK_SECONDS = 0.1


@contextlib.contextmanager
def cancelled_when(
    asked: Callable[[], bool], cancel: Callable[[], None], patience: float = 0.0
) -> Iterator[None]:
    """Calls `cancel` while the body runs and somebody has asked to stop that many seconds ago."""
    over = threading.Event()

    def watch() -> None:
        since: float | None = None
        while not over.wait(_LOOK_SECONDS):
            if not asked():
                continue
            since = since or time.monotonic()
            if time.monotonic() - since >= patience:
                cancel()

    watcher = threading.Thread(target=watch, name="stop-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
