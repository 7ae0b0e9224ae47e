"""The manifest on disk: a snapshot, and the journal that it is rebuilt from.

`events.jsonl` is the history; `manifest.json` is what it adds up to, written whole when a
depth begins, when it ends, and on exit; within a depth only when enough has happened that
its cost stays a constant share of each event. A manifest is believed if its checksum is
right and it was written under the latest lease; otherwise the journal is read from
its beginning, so that nothing a former owner wrote late can count.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage import atomic, journal, untrusted
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease, latest_epoch
from treewright.kernel.text import jsontext
from treewright.tree.records import events as ev
from treewright.tree.records import state
from treewright.tree.records.layout import EVENTS, LEASE, MANIFEST
from treewright.tree.records.model import FORMAT_VERSION, Manifest, SnapshotMark

_FEWEST_EVENTS_BETWEEN_SNAPSHOTS = 2000
_CHECKSUM = re.compile(rb'("sha256": ")([0-9a-f]{64})("\s*\}\s*\}\s*)\Z')
_LARGEST = 1 << 31  # no search has written that much
_TAIL = 256  # enough to hold the checksum and what follows it

_log = logging.getLogger("treewright")
_event_decoder = jsontext.decoder(ev.Event)
_encoder = msgspec.json.Encoder()


class _Version(msgspec.Struct):
    format_version: int


def load(run_dir: Path, before_epoch: int | None = None) -> Manifest:
    """The present state of a run, without owning it. Raises UsageError if there is none."""
    loaded = _load(run_dir, before_epoch)
    if loaded is None:
        raise _no_run(run_dir)
    return loaded.manifest


def payments(run_dir: Path) -> list[tuple[str, float]]:
    """When something was paid and how many dollars, for whatever: from the whole journal."""
    events, manifest = run_dir / EVENTS, None
    found: list[tuple[str, float]] = []
    before = 0.0
    for line in journal.read(events):
        event, manifest = _applied(manifest, line, events)
        total = manifest.spent.cost_usd if manifest is not None else 0.0
        if total != before:
            found.append((event.at, total - before))
        before = total
    return found


def exists(run_dir: Path) -> bool:
    events = run_dir / EVENTS
    return (run_dir / MANIFEST).exists() or (events.exists() and events.stat().st_size > 0)


def refresh(run_dir: Path) -> Manifest:
    """Writes the manifest anew from the journal, without owning the run. Whichever of two
    writers is last: a manifest that is behind is read together with what follows it."""
    loaded = _load(run_dir, None)
    if loaded is None:
        raise _no_run(run_dir)
    old = loaded.manifest.snapshot
    if (old.journal_offset, old.journal_epoch) != (loaded.offset, loaded.epoch):
        loaded.manifest.snapshot = SnapshotMark(loaded.offset, loaded.epoch)
        atomic.write_bytes(run_dir / MANIFEST, encode(loaded.manifest))
    return loaded.manifest


def _no_run(run_dir: Path) -> UsageError:
    return UsageError(f"no tree run at {run_dir}; check --tree-run-id and --repo")


class RunStore:
    """The owner's view: every change goes through `record`."""

    def __init__(self, run_dir: Path, lease: Lease, observer: Callable[[ev.Event], None]) -> None:
        self.run_dir = run_dir
        self.lease = lease
        self._observer = observer
        self._journal = Journal(run_dir / EVENTS, lease.epoch, lease.check, lease.is_in_place)
        self._append(ev.LeaseTaken(owner=lease.owner))
        loaded = _load(run_dir, lease.epoch)
        self._manifest = loaded.manifest if loaded is not None else None
        self._since_snapshot = 0
        self._size_hint = loaded.lines if loaded is not None else 0
        self._whole = True
        self._is_written = False
        self.watcher: Callable[[ev.Event, Manifest], None] | None = None
        """Told of each event with the state that it led to."""

    @property
    def is_new(self) -> bool:
        return self._manifest is None

    @property
    def manifest(self) -> Manifest:
        if self._manifest is None:
            raise StorageError(f"{self.run_dir}: the run was not created")
        return self._manifest

    def record(self, *events: ev.Event) -> None:
        """Makes facts durable, all in one write, and then true."""
        self._whole = self._is_written = False
        self._append(*events)
        for event in events:
            self._manifest = state.apply(self._manifest, event)
        self._whole = True
        self._since_snapshot += len(events)
        for event in events:
            self._observer(event)
            if self.watcher is not None:
                self.watcher(event, self.manifest)

    def snapshot_if_due(self) -> None:
        """Rewrites the manifest once the journal has grown by half of what it holds."""
        if self._since_snapshot >= max(_FEWEST_EVENTS_BETWEEN_SNAPSHOTS, self._size_hint // 2):
            self.snapshot()

    def snapshot(self) -> None:
        """Writes the manifest; not if an interruption fell between the journal and it, nor if
        what it would say is what we wrote."""
        if not self._whole:
            return
        self.lease.check()
        manifest = self.manifest
        if self._is_written and (self.run_dir / MANIFEST).exists():
            return
        manifest.snapshot = SnapshotMark(self._journal.end, self.lease.epoch)
        atomic.write_bytes(self.run_dir / MANIFEST, encode(manifest))
        self._size_hint += self._since_snapshot
        self._since_snapshot = 0
        self._is_written = True

    def close(self) -> None:
        self._journal.close()

    def _append(self, *events: ev.Event) -> None:
        now = timestamp()
        for event in events:
            event.epoch, event.at = self.lease.epoch, now
        # That an evaluation started is for the reader: nothing is decided on it, and one
        # that a power cut makes us forget is simply started again.
        sync = not all(isinstance(event, ev.Started) for event in events)
        self._journal.append([_encoder.encode(event) for event in events], sync=sync)


def encode(manifest: Manifest) -> bytes:
    """The file's bytes, with the checksum of everything but itself at its end."""
    manifest.snapshot.sha256 = "0" * 64
    blank = msgspec.json.format(_encoder.encode(manifest), indent=1) + b"\n"
    manifest.snapshot.sha256 = hashlib.sha256(blank).hexdigest()
    return blank[:-_TAIL] + _with_checksum(blank[-_TAIL:], manifest.snapshot.sha256.encode())


def checksum_holds(data: bytes) -> bool:
    found = _CHECKSUM.search(data[-_TAIL:])
    if found is None:
        return False
    digest = hashlib.sha256(memoryview(data)[:-_TAIL])
    digest.update(_with_checksum(data[-_TAIL:], b"0" * 64))
    return digest.hexdigest().encode() == found[2]


def _with_checksum(tail: bytes, checksum: bytes) -> bytes:
    return _CHECKSUM.sub(rb"\g<1>" + checksum + rb"\g<3>", tail)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The state, how many journal lines are in it, and where and in which epoch these end."""

    manifest: Manifest
    lines: int
    offset: int
    epoch: int


def _load(run_dir: Path, before_epoch: int | None) -> _Loaded | None:
    """The state that the files add up to. `before_epoch` is the reader's own."""
    last_epoch = latest_epoch(run_dir / LEASE) if before_epoch is None else before_epoch - 1
    manifest = _read_snapshot(run_dir / MANIFEST)
    snapshot_exists = manifest is not None
    events = run_dir / EVENTS
    offset = epoch = 0
    if manifest is not None:
        if manifest.snapshot.journal_epoch == last_epoch:
            offset, epoch = manifest.snapshot.journal_offset, manifest.snapshot.journal_epoch
        elif events.exists():
            manifest = None
        if offset > (events.stat().st_size if events.exists() else 0):
            raise StorageError(
                f"{events} is shorter than {MANIFEST} says; restore it from a backup"
            )
    count = len(manifest.evaluations) * 3 if manifest is not None else 0
    for line in journal.read(events, offset, epoch):
        _, manifest = _applied(manifest, line, events)
        count += 1
        offset, epoch = line.end, line.epoch
    if manifest is None and snapshot_exists:
        raise StorageError(
            f"{events} does not have the beginning of the run that {MANIFEST} describes; "
            "restore it from a backup"
        )
    return _Loaded(manifest, count, offset, epoch) if manifest is not None else None


def _applied(
    manifest: Manifest | None, line: journal.Line, events: Path
) -> tuple[ev.Event, Manifest | None]:
    """The event of a line of the journal, and the state after it."""
    try:
        event = _event_decoder(line.raw)
        return event, state.apply(manifest, event)
    except (msgspec.ValidationError, KeyError) as error:
        raise StorageError(
            f"{events}: a line ending at byte {line.end} does not fit the run ({error}); "
            "it was written by another version, or edited"
        ) from None


def _read_snapshot(path: Path) -> Manifest | None:
    """The manifest as last written; None if it is missing or torn (the journal has it all)."""
    try:
        data = untrusted.read(path, _LARGEST)
    except FileNotFoundError:
        return None
    except untrusted.NotPlain as problem:
        if path.is_file() and not path.is_symlink():
            raise StorageError(f"cannot read {path}: {problem}") from None
        _log.warning("%s: %s; what it should say is in %s", path.parent, problem, EVENTS)
        return None
    try:
        version = jsontext.decode(data, type=_Version).format_version
    except msgspec.DecodeError:
        _log.warning("%s is not readable; rebuilding it from %s", path, EVENTS)
        return None
    if version != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format_version {version}, this treewright reads {FORMAT_VERSION}; "
            "use the version that wrote it"
        )
    if not checksum_holds(data):
        raise StorageError(
            f"{path} was edited by hand or damaged: its checksum does not match. Delete it and "
            f"run again to rebuild it from {EVENTS}; nothing is lost"
        )
    try:
        return jsontext.decode(data, type=Manifest)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}") from None
