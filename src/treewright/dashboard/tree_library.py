"""Tree runs held in memory: read once, kept up to date, the least used forgotten.

What it costs is bounded in bytes of journal. Summaries are small and stay, so that the
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

_MOST_BYTES = 256 << 20
_MOST_SUMMARIES = 5000
_TITLE_BYTES = 4096
_LONGEST_TITLE = 160


class TreeLibrary:
    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Shelf] = OrderedDict()
        self._summaries: OrderedDict[str, tuple[Signature, dict[str, Any]]] = OrderedDict()

    def summary(self, run: RunRef) -> dict[str, Any]:
        """For a line of the home page: the run in numbers, and whether somebody works on it."""
        found = signature(run.path / layout.EVENTS)
        with self._lock:
            known = self._summaries.get(run.key)
        if known is None or known[0] != found:
            shelf = self._shelf(run)
            with shelf.live.lock:
                known = (found, _summary(shelf.live.refresh()))
            with self._lock:
                self._summaries[run.key] = known
                while len(self._summaries) > _MOST_SUMMARIES:
                    self._summaries.popitem(last=False)
        return _with_liveness(run, known[1])

    def is_ready(self, run: RunRef, since: str | None) -> bytes | None:
        """The answer that `tree` would give, if nothing needs to be read or made for it."""
        with self._lock:
            shelf = self._runs.get(run.key)
        if shelf is None or not shelf.live.is_current():
            return None
        return shelf.made.get((shelf.live.version, since))

    def tree(self, run: RunRef, since: str | None) -> bytes:
        """JSON of the rows that changed since a version."""
        shelf = self._shelf(run)
        with shelf.live.lock:
            live = shelf.live.refresh()
            key = (live.version, since)
            if key not in shelf.made:
                shelf.forget_older(live.version)
                shelf.made[key] = msgspec.json.encode(self._rows(shelf, since))
            answer = shelf.made[key]
        self._shrink()
        return answer

    @contextmanager
    def manifest(self, run: RunRef) -> Iterator[Manifest | None]:
        """The present state; it does not change while it is looked at."""
        shelf = self._shelf(run)
        with shelf.live.lock:
            yield shelf.live.refresh().manifest
        self._shrink()

    def held_bytes(self) -> int:
        with self._lock:
            return sum(shelf.live.weight for shelf in self._runs.values())

    def _rows(self, shelf: _Shelf, since: str | None) -> dict[str, Any]:
        live = shelf.live
        if live.manifest is None:
            return {"version": live.version, "full": True, "nodes": [], "evals": []}
        for path in tree_view.wanted_titles(live.manifest):
            if path not in shelf.titles:
                shelf.titles[path] = _title(shelf.run, path)
        return tree_view.tree(live, shelf.titles, since)

    def _shelf(self, run: RunRef) -> _Shelf:
        with self._lock:
            shelf = self._runs.get(run.key)
            if shelf is None:
                shelf = self._runs[run.key] = _Shelf(run)
            self._runs.move_to_end(run.key)
        return shelf

    def _shrink(self) -> None:
        with self._lock:
            held = sum(shelf.live.weight for shelf in self._runs.values())
            while held > self._most_bytes and len(self._runs) > 1:
                _, shelf = self._runs.popitem(last=False)
                held -= shelf.live.weight


class _Shelf:
    """A run with what was made of its present version."""

    def __init__(self, run: RunRef) -> None:
        self.run = run
        self.live = LiveTree(run.path)
        self.titles: dict[str, str] = {}
        self.made: dict[tuple[str, str | None], bytes] = {}

    def forget_older(self, version: str) -> None:
        most = 8
        if len(self.made) >= most or any(key[0] != version for key in self.made):
            self.made = {}


def _summary(live: LiveTree) -> dict[str, Any]:
    if live.manifest is None:
        return {"problem": live.problem or NO_RECORD, "stop": None}
    found = tree_view.summary(live.manifest)
    return found | {"problem": live.problem, "stop": tree_view.stop_words(live.manifest)}


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
    return idea_text.title(read[0])[:_LONGEST_TITLE] if read else ""
