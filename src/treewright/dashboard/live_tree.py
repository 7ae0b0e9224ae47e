"""The current state of a tree run, updated by reading only the new lines of its journal.

Only the journal is read, because the manifest follows from it. For every node and evaluation, the
object keeps the journal offset of its last change, so that a page can ask for later changes only.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from treewright.dashboard import run_files
from treewright.dashboard.roots import parse_number
from treewright.kernel.errors import StorageError
from treewright.kernel.storage import journal
from treewright.kernel.text import jsontext
from treewright.tree.records import events as ev
from treewright.tree.records import layout, state
from treewright.tree.records.model import FORMAT_VERSION, Manifest

_decoder = jsontext.decoder(ev.Event)
Signature = tuple[int, int, int]


NO_RECORD = "the run has no first record"
"""The problem of a run with a baseline or preflight in progress."""


class LiveTree:
    """One run. Any thread may call `refresh`; a reader of `manifest` must hold `lock`."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.manifest: Manifest | None = None
        self.problem = ""
        self._events = run_dir / layout.EVENTS
        self._signature: Signature | None = None
        self._generation = 0
        self._offset = 0
        self._epoch = 0
        self._touched: dict[str, int] = {}
        self.lock = threading.RLock()

    @property
    def version(self) -> str:
        """Return the version of the state; it changes with every record."""
        return f"{self._generation}.{self._offset}"

    @property
    def weight(self) -> int:
        """Return the bytes of the journal that were read."""
        return self._offset

    def is_current(self) -> bool:
        """Return whether the journal is unchanged since the last `refresh`; costs one `stat`."""
        return self._signature is not None and signature(self._events) == self._signature

    def refresh(self) -> LiveTree:
        """Read the new records. On damage, set `problem` and keep the readable part."""
        with self.lock:
            found = signature(self._events)
            if found == self._signature:
                return self
            before = self._signature
            if before is None or found[0] != before[0] or found[1] < self._offset:
                self._restart()
            try:
                if run_files.resolve(self.run_dir, layout.EVENTS) is None:
                    raise StorageError(f"{layout.EVENTS} is not a file of this run")
                self._read_new()
                self.problem = "" if self.manifest is not None else NO_RECORD
            except (StorageError, OSError, msgspec.ValidationError, KeyError) as error:
                self.problem = str(error)
            self._signature = found
        return self

    def touched_since(self, version: str | None) -> set[str] | None:
        """Return the ids that changed since a version, or None if all must be sent."""
        generation, _, offset = (version or "").partition(".")
        known = parse_number(offset)
        if generation != str(self._generation) or known is None or known > self._offset:
            return None
        return {item for item, at in self._touched.items() if at > known}

    def _restart(self) -> None:
        self._generation += 1
        self._offset = self._epoch = 0
        self.manifest = None
        self._touched = {}

    def _read_new(self) -> None:
        for line in journal.read(self._events, self._offset, self._epoch):
            event = _decoder(line.raw)
            if isinstance(event, ev.RunCreated):
                _check_version(event.manifest)
            self.manifest = state.apply(self.manifest, event)
            self._offset, self._epoch = line.end, line.epoch
            # Steering may add nodes to the frontier and remove others.
            nodes = self.manifest.nodes if self.manifest is not None else ()
            for item in nodes if isinstance(event, ev.Steered) else _items(event):
                self._touched[item] = line.end


def signature(path: Path) -> Signature:
    """Return the inode, the size and the time of change of a file."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


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
