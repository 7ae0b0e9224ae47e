"""Recording attempts from asyncio: durable before the caller goes on, many in one sync.

Attempts that end while a commit is under way share the next one, so the cost of syncing is
divided by the number of goals in work.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable

from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.store import Ledger

_MOST_AT_ONCE = 512
_Entry = tuple[Attempt, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class LedgerWriter:
    """One thread that writes; `close` waits until everything given to it is written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._entries: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._thread.start()

    async def record(self, attempt: Attempt) -> None:
        """Returns when the attempt is on disk. It gets there even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._entries.put((attempt, loop, written))
        await asyncio.shield(written)

    def close(self) -> None:
        self._entries.put(None)
        self._thread.join()

    def _write(self) -> None:
        open_ = True
        while open_:
            batch: list[_Entry] = []
            entry = self._entries.get()
            while entry is not None:
                batch.append(entry)
                if len(batch) == _MOST_AT_ONCE:
                    break
                try:
                    entry = self._entries.get_nowait()
                except queue.Empty:
                    break
            open_ = entry is not None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_Entry]) -> None:
        failure: Exception | None = None
        try:
            self._ledger.record([attempt for attempt, _, _ in batch])
        except Exception as error:
            failure = error
        by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for _, loop, written in batch:
            by_loop.setdefault(loop, []).append(written)
        for loop, futures in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle(futures, failure))


def _settle(futures: list[asyncio.Future[None]], failure: Exception | None) -> Callable[[], None]:
    def settle() -> None:
        for future in futures:
            if future.done():
                continue
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

    return settle
