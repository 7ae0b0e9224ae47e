"""Notify open pages that a run has changed, with one watcher for all pages.

The watcher compares file signatures, so it notices writers on this machine and on others. It runs
only while a page listens. Changes that a slow listener has not read are merged: the listener keeps
at most one entry for each run.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool

from treewright.cellview.experiment import layout as experiment_layout
from treewright.dashboard import run_files
from treewright.dashboard.live_run import read_liveness
from treewright.dashboard.roots import Roots, RunRef
from treewright.dashboard.run_files import signature
from treewright.kernel.storage.run_directory import LEASE_DIR
from treewright.proving import layout as proof_layout
from treewright.tree.records import layout as tree_layout

MAX_LISTENERS = 200
_SECONDS_BETWEEN_SCANS = 0.4
_PAUSE_FACTOR = 10
"""After a scan, the watcher waits at least ten times as long as the scan took."""
_HEARTBEAT_SECONDS = 15.0
_FILES = {
    "tree": (tree_layout.EVENTS,),
    "proof": (proof_layout.TRACE, proof_layout.RUN, proof_layout.RESULT),
    "experiment": (experiment_layout.PLAN, experiment_layout.RESULTS),
}

Signatures = dict[str, Any]


class Listener:
    """One open page. `only` is the key of the run that it shows; None means all runs."""

    def __init__(self, only: str | None) -> None:
        self.only = only
        self.changed: set[str] = set()
        self.wake = asyncio.Event()

    def notify(self, keys: set[str]) -> None:
        relevant = keys if self.only is None else keys & {self.only}
        if relevant:
            self.changed |= relevant
            self.wake.set()


class Changes:
    """The watcher and its listeners."""

    def __init__(self, roots: Roots, on_change: Callable[[], None] = lambda: None) -> None:
        """Watch the runs in `roots`. `on_change` is called before the listeners are notified."""
        self._roots = roots
        self._on_change = on_change
        self._listeners: set[Listener] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._known: Signatures = {}
        self._boot = secrets.token_hex(8)

    @property
    def full(self) -> bool:
        return len(self._listeners) >= MAX_LISTENERS

    async def stream(self, only: str | None) -> AsyncIterator[bytes]:
        """Yield server-sent events until the listener disconnects.

        The signatures are read before the first event, so a page that loads the run after the first
        event is notified of every later change.
        """
        listener = Listener(only)
        self._listeners.add(listener)
        try:
            for key, found in (
                await run_in_threadpool(read_signatures, self._roots, {only})
            ).items():
                self._known.setdefault(key, found)
            if self._watcher is None or self._watcher.done():
                self._watcher = asyncio.create_task(self._watch())
            yield b"retry: 1000\n\n" + _event("hello", {"boot": self._boot})
            while True:
                try:
                    await asyncio.wait_for(listener.wake.wait(), _HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield b": heartbeat\n\n"
                    continue
                listener.wake.clear()
                keys, listener.changed = sorted(listener.changed), set()
                yield _event("change", {"runs": keys})
        finally:
            self._listeners.discard(listener)

    async def _watch(self) -> None:
        while self._listeners:
            started = time.monotonic()
            wanted = {listener.only for listener in self._listeners}
            found = await run_in_threadpool(read_signatures, self._roots, wanted)
            taken = time.monotonic() - started
            gone = self._known.keys() - found.keys() if None in wanted else set()
            changed = {key for key, value in found.items() if self._known.get(key) != value}
            self._known.update(found)
            for key in gone:
                del self._known[key]
            if changed or gone:
                self._on_change()
            for listener in self._listeners:
                listener.notify(changed | gone)
            await asyncio.sleep(max(_SECONDS_BETWEEN_SCANS, _PAUSE_FACTOR * taken))
        self._known.clear()


def read_signatures(roots: Roots, wanted: set[str | None]) -> Signatures:
    """Return the signatures of the wanted runs by key; None in `wanted` means all runs."""
    if None in wanted:
        return {run.key: _signature(run) for run in roots.scan()}
    runs = (roots.find_key(key) for key in wanted if key is not None)
    return {run.key: _signature(run) for run in runs if run is not None}


def _signature(run: RunRef) -> Any:
    if run.kind == "bank":
        log = run.path.with_name(run.path.name + "-wal")
        return signature(run.path), signature(log)
    files = tuple(signature(run.path / name) for name in _FILES[run.kind])
    if run.kind == "experiment":
        # An experiment makes its runs one after the other, so only the last one changes.
        begun = run_files.list_directories(run.path, experiment_layout.CELLS)
        last = [f"{experiment_layout.CELLS}/{cell}/{experiment_layout.CELL}" for cell in begun[-1:]]
        files += (len(begun), *(signature(run.path / name) for name in last))
    return files, read_liveness(run.path / LEASE_DIR, None).state


def _event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
