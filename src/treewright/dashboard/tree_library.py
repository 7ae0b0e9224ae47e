"""Tree runs in memory: read once and updated; the least recently used ones are dropped.

The memory is limited by the bytes of the journals. Summaries are small and are kept, so that the
home page does not read a finished run twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from treewright.dashboard import liveness, run_files, tree_view
from treewright.dashboard.live_tree import NO_RECORD, LiveTree, Signature, signature
from treewright.dashboard.roots import RunRef
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout
from treewright.tree.records.model import Manifest

_MAX_BYTES = 256 << 20
_MAX_SUMMARIES = 5000
_TITLE_BYTES = 4096
_MAX_TITLE = 160


class TreeLibrary:
    """The tree runs that pages ask for."""

    def __init__(self, most_bytes: int = _MAX_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _CachedRun] = OrderedDict()
        self._summaries: OrderedDict[str, tuple[Signature, dict[str, Any]]] = OrderedDict()

    def summary(self, run: RunRef) -> dict[str, Any]:
        """Return the summary of a run, with its liveness."""
        found = signature(run.path / layout.EVENTS)
        with self._lock:
            known = self._summaries.get(run.key)
        if known is None or known[0] != found:
            cached = self._cached(run)
            with cached.live.lock:
                known = (found, _summary(cached.live.refresh()))
            with self._lock:
                self._summaries[run.key] = known
                while len(self._summaries) > _MAX_SUMMARIES:
                    self._summaries.popitem(last=False)
        return _with_liveness(run, known[1])

    def find_cached(self, run: RunRef, since: str | None) -> bytes | None:
        """Return the answer of `tree` if it is cached and current, else None."""
        with self._lock:
            cached = self._runs.get(run.key)
        if cached is None or not cached.live.is_current():
            return None
        return cached.documents.get((cached.live.version, since))

    def tree(self, run: RunRef, since: str | None) -> bytes:
        """Return the rows that changed since a version, as JSON."""
        cached = self._cached(run)
        with cached.live.lock:
            live = cached.live.refresh()
            key = (live.version, since)
            if key not in cached.documents:
                cached.forget_older(live.version)
                cached.documents[key] = msgspec.json.encode(self._rows(cached, since))
            answer = cached.documents[key]
        self._shrink()
        return answer

    @contextmanager
    def manifest(self, run: RunRef) -> Iterator[Manifest | None]:
        """Yield the current manifest; it does not change inside the `with` block."""
        cached = self._cached(run)
        with cached.live.lock:
            yield cached.live.refresh().manifest
        self._shrink()

    def held_bytes(self) -> int:
        with self._lock:
            return sum(cached.live.weight for cached in self._runs.values())

    def _rows(self, cached: _CachedRun, since: str | None) -> dict[str, Any]:
        live = cached.live
        if live.manifest is None:
            return {"version": live.version, "full": True, "nodes": [], "evals": []}
        for path in tree_view.list_titled_ideas(live.manifest):
            if path not in cached.titles:
                cached.titles[path] = _title(cached.run, path)
        return tree_view.tree(live, cached.titles, since)

    def _cached(self, run: RunRef) -> _CachedRun:
        with self._lock:
            cached = self._runs.get(run.key)
            if cached is None:
                cached = self._runs[run.key] = _CachedRun(run)
            self._runs.move_to_end(run.key)
        return cached

    def _shrink(self) -> None:
        with self._lock:
            held = sum(cached.live.weight for cached in self._runs.values())
            while held > self._most_bytes and len(self._runs) > 1:
                _, cached = self._runs.popitem(last=False)
                held -= cached.live.weight


class _CachedRun:
    """A run, with the documents made from its current version."""

    def __init__(self, run: RunRef) -> None:
        self.run = run
        self.live = LiveTree(run.path)
        self.titles: dict[str, str] = {}
        self.documents: dict[tuple[str, str | None], bytes] = {}

    def forget_older(self, version: str) -> None:
        most = 8
        if len(self.documents) >= most or any(key[0] != version for key in self.documents):
            self.documents = {}


def _summary(live: LiveTree) -> dict[str, Any]:
    if live.manifest is None:
        return {"problem": live.problem or NO_RECORD, "stop": None}
    found = tree_view.summary(live.manifest)
    return found | {"problem": live.problem, "stop": tree_view.describe_stop(live.manifest)}


def _with_liveness(run: RunRef, known: dict[str, Any]) -> dict[str, Any]:
    now = liveness.read(run.path / layout.LEASE, known["stop"])
    begins = known["problem"] == NO_RECORD and now.state == "running"
    if known["problem"] and not begins:
        now = liveness.Liveness("damaged", known["problem"])
    eta = None
    if "progress" in known:
        eta = tree_view.eta_seconds(known, now.state == "running")
    return {
        **known,
        "key": run.key,
        "kind": run.kind,
        "run_id": run.run_id,
        "liveness": now,
        "eta_seconds": eta,
    }


def _title(run: RunRef, path: str) -> str:
    read = run_files.read(run.path, path, _TITLE_BYTES)
    return idea_text.title(read[0])[:_MAX_TITLE] if read else ""
