"""Tree runs in memory: each journal is read once, and then only its new lines."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard import run_files, tree_view
from treewright.dashboard.live_run import Liveness, LiveRun, RunCache, read_liveness
from treewright.dashboard.roots import RunRef, parse_number
from treewright.dashboard.run_files import Signature, signature
from treewright.kernel.errors import StorageError
from treewright.kernel.storage import journal
from treewright.kernel.text import jsontext
from treewright.tree.ideas import idea_text
from treewright.tree.records import events as ev
from treewright.tree.records import layout, state
from treewright.tree.records.model import FORMAT_VERSION, Manifest

_MAX_BYTES = 256 << 20
_MAX_SUMMARIES = 5000
_TITLE_BYTES = 4096
_MAX_TITLE = 160
NO_RECORD = "the run has no first record"
"""The problem of a run with a baseline or preflight in progress."""
_decoder = jsontext.decoder(ev.Event)


class LiveTree(LiveRun):
    """One tree run. The manifest follows from its journal.

    For every node and evaluation, the object keeps the journal offset of its last change, so that a
    page can ask for later changes only.
    """

    def __init__(self, run_dir: Path) -> None:
        super().__init__(run_dir, layout.EVENTS)
        self.manifest: Manifest | None = None
        self._touched: dict[str, int] = {}

    @property
    def version(self) -> str:
        """Return the version of the state; it changes with every record."""
        return f"{self.generation}.{self.weight}"

    def touched_since(self, version: str | None) -> set[str] | None:
        """Return the ids that changed since a version, or None if all must be sent."""
        generation, _, offset = (version or "").partition(".")
        known = parse_number(offset)
        if generation != str(self.generation) or known is None or known > self.weight:
            return None
        return {item for item, at in self._touched.items() if at > known}

    def _clear(self) -> None:
        self.manifest = None
        self._touched = {}

    def _add(self, line: journal.Line) -> None:
        event = _decoder(line.raw)
        if isinstance(event, ev.RunCreated):
            _check_version(event.manifest)
        self.manifest = state.apply(self.manifest, event)
        # Steering may add nodes to the frontier and remove others.
        nodes = self.manifest.nodes if self.manifest is not None else ()
        for item in nodes if isinstance(event, ev.Steered) else _items(event):
            self._touched[item] = line.end

    def _find_problem(self, path: Path | None) -> str:
        if path is None:
            return f"{layout.EVENTS} is not a file of this run"
        return "" if self.manifest is not None else NO_RECORD


def _check_version(manifest: Manifest) -> None:
    if manifest.format_version != FORMAT_VERSION:
        raise StorageError(
            f"the run has format_version {manifest.format_version}, this treewright reads "
            f"{FORMAT_VERSION}; use the version that wrote it"
        )


def _items(event: ev.Event) -> list[str]:
    match event:
        case ev.RunCreated():
            return list(event.manifest.nodes)
        case ev.NodeExpanded() | ev.HeldoutMeasured():
            return [event.node_id]
        case ev.Decided():
            return [*event.decisions, *(node.node_id for node in event.nodes), *event.frontier]
        case ev.Settled():
            return [event.eval_id, *([event.node.node_id] if event.node is not None else [])]
        case ev.Queued() if isinstance(event.seen, int):  # the parent may have all its ideas now
            return [event.eval_id, event.parent_node_id]
        case ev.LeaseTaken() | ev.Stopped() | ev.Steered():
            return []
        case _:
            return [event.eval_id]


class TreeLibrary:
    """The tree runs that pages ask for, limited by the bytes of their journals.

    Summaries are small and are kept, so that the home page does not read a finished run twice.
    """

    def __init__(self, most_bytes: int = _MAX_BYTES) -> None:
        self._runs = RunCache(_CachedRun, lambda cached: cached.live.weight, most_bytes)
        self._lock = threading.Lock()
        self._summaries: OrderedDict[str, tuple[Signature, dict[str, Any]]] = OrderedDict()

    def summary(self, run: RunRef) -> dict[str, Any]:
        """Return the summary of a run, with its liveness."""
        found = signature(run.path / layout.EVENTS)
        with self._lock:
            known = self._summaries.get(run.key)
        if known is None or known[0] != found:
            cached = self._runs.get(run)
            with cached.live.lock:
                known = (found, _summary(cached.live.refresh()))
            with self._lock:
                self._summaries[run.key] = known
                while len(self._summaries) > _MAX_SUMMARIES:
                    self._summaries.popitem(last=False)
        return _with_liveness(run, known[1])

    def find_cached(self, run: RunRef, since: str | None) -> bytes | None:
        """Return the answer of `tree` if it is cached and current, else None."""
        cached = self._runs.find(run)
        if cached is None or not cached.live.is_current():
            return None
        return cached.documents.get((cached.live.version, since))

    def tree(self, run: RunRef, since: str | None) -> bytes:
        """Return the rows that changed since a version, as JSON."""
        cached = self._runs.get(run)
        with cached.live.lock:
            live = cached.live.refresh()
            key = (live.version, since)
            if key not in cached.documents:
                cached.forget_older(live.version)
                cached.documents[key] = msgspec.json.encode(self._rows(cached, since))
            answer = cached.documents[key]
        self._runs.shrink()
        return answer

    @contextmanager
    def manifest(self, run: RunRef) -> Iterator[Manifest | None]:
        """Yield the current manifest; it does not change inside the `with` block."""
        cached = self._runs.get(run)
        with cached.live.lock:
            yield cached.live.refresh().manifest
        self._runs.shrink()

    def held_bytes(self) -> int:
        """Return the bytes of the journals in memory."""
        return self._runs.weight()

    def _rows(self, cached: _CachedRun, since: str | None) -> dict[str, Any]:
        live = cached.live
        if live.manifest is None:
            return {"version": live.version, "full": True, "nodes": [], "evals": []}
        for path in tree_view.list_titled_ideas(live.manifest):
            if path not in cached.titles:
                cached.titles[path] = _title(cached.run, path)
        return tree_view.tree(live.manifest, live.version, live.touched_since(since), cached.titles)


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
    now = read_liveness(run.path / layout.LEASE, known["stop"])
    begins = known["problem"] == NO_RECORD and now.state == "running"
    if known["problem"] and not begins:
        now = Liveness("damaged", known["problem"])
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
