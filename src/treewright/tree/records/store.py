"""The state of a run on disk: the journal `events.jsonl` and its snapshot `manifest.json`.

The manifest is written when a depth begins, when it ends, and on exit. Within a depth it is written
once the journal has grown by half, so that its cost per event is constant. A manifest is used if
its checksum is right and it was written under the latest lease. Otherwise the journal is read from
its beginning, because a former owner may have written late.
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
LARGEST_MANIFEST = 1 << 31
_TAIL = 256
"""Number of bytes at the end of a manifest that hold the checksum."""

_log = logging.getLogger("treewright")
_event_decoder = jsontext.decoder(ev.Event)
_encoder = msgspec.json.Encoder()


class _Version(msgspec.Struct):
    format_version: int


def version_of(data: bytes) -> int:
    """Return the format version of a manifest's bytes.

    Raises:
        msgspec.DecodeError: the bytes are no JSON object with a version.
    """
    return jsontext.decode(data, type=_Version).format_version


def load(run_dir: Path, before_epoch: int | None = None) -> Manifest:
    """Return the current state of a run without owning it.

    Raises:
        UsageError: There is no run in the directory.
    """
    loaded = _load(run_dir, before_epoch)
    if loaded is None:
        raise _no_run(run_dir)
    return loaded.manifest


def payments(run_dir: Path) -> list[tuple[str, float]]:
    """Return the time and the dollars of every payment in the journal."""
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
    """Return whether a run was begun in the directory."""
    events = run_dir / EVENTS
    return (run_dir / MANIFEST).exists() or (events.exists() and events.stat().st_size > 0)


def refresh(run_dir: Path) -> Manifest:
    """Write the manifest from the journal without owning the run, and return it.

    Two writers do no harm: an outdated manifest is read together with the events after it.
    """
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
    """The state of a run for its owner. Every change goes through `record`."""

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
        self._is_consistent = True
        self._is_written = False
        self.watcher: Callable[[ev.Event, Manifest], None] | None = None
        """Called with each event and the state after it."""

    @property
    def is_new(self) -> bool:
        return self._manifest is None

    @property
    def manifest(self) -> Manifest:
        if self._manifest is None:
            raise StorageError(f"{self.run_dir}: the run was not created")
        return self._manifest

    def record(self, *events: ev.Event) -> None:
        """Write events to the journal in one durable write, then apply them to the manifest."""
        self._is_consistent = self._is_written = False
        self._append(*events)
        for event in events:
            self._manifest = state.apply(self._manifest, event)
        self._is_consistent = True
        self._since_snapshot += len(events)
        for event in events:
            self._observer(event)
            if self.watcher is not None:
                self.watcher(event, self.manifest)

    def snapshot_if_due(self) -> None:
        """Write the manifest if the journal has grown by half since the last snapshot."""
        if self._since_snapshot >= max(_FEWEST_EVENTS_BETWEEN_SNAPSHOTS, self._size_hint // 2):
            self.snapshot()

    def snapshot(self) -> None:
        """Write the manifest, unless it is up to date.

        Nothing is written if an interruption fell between the journal and the manifest.
        """
        if not self._is_consistent:
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
        # `started` is only for readers: an evaluation that a power cut makes the journal forget is
        # started again.
        sync = not all(isinstance(event, ev.Started) for event in events)
        self._journal.append([_encoder.encode(event) for event in events], sync=sync)


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest. The checksum at the end covers everything except itself."""
    manifest.snapshot.sha256 = "0" * 64
    blank = msgspec.json.format(_encoder.encode(manifest), indent=1) + b"\n"
    manifest.snapshot.sha256 = hashlib.sha256(blank).hexdigest()
    return blank[:-_TAIL] + _with_checksum(blank[-_TAIL:], manifest.snapshot.sha256.encode())


def is_checksum_valid(data: bytes) -> bool:
    """Return whether the checksum of a manifest matches its bytes."""
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
    """A manifest, the number of journal lines in it, and the offset and epoch of the last one."""

    manifest: Manifest
    lines: int
    offset: int
    epoch: int


def _load(run_dir: Path, before_epoch: int | None) -> _Loaded | None:
    """Return the state of a run; `before_epoch` is the epoch of the reader's own lease."""
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
    """Return the event of a journal line, and the manifest after it."""
    try:
        event = _event_decoder(line.raw)
        return event, state.apply(manifest, event)
    except (msgspec.ValidationError, KeyError) as error:
        raise StorageError(
            f"{events}: a line ending at byte {line.end} does not fit the run ({error}); "
            "it was written by another version, or edited"
        ) from None


def _read_snapshot(path: Path) -> Manifest | None:
    """Return the manifest as last written, or None if it is missing or torn."""
    try:
        data = untrusted.read(path, LARGEST_MANIFEST)
    except FileNotFoundError:
        return None
    except untrusted.NotPlain as problem:
        if path.is_file() and not path.is_symlink():
            raise StorageError(f"cannot read {path}: {problem}") from None
        _log.warning("%s: %s; it is rebuilt from %s", path.parent, problem, EVENTS)
        return None
    try:
        version = version_of(data)
    except msgspec.DecodeError:
        _log.warning("%s is not readable; rebuilding it from %s", path, EVENTS)
        return None
    if version != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format_version {version}, this treewright reads {FORMAT_VERSION}; "
            "use the version that wrote it"
        )
    if not is_checksum_valid(data):
        raise StorageError(
            f"{path} was edited by hand or damaged: its checksum does not match. Delete it and "
            f"run again to rebuild it from {EVENTS}; nothing is lost"
        )
    try:
        return jsontext.decode(data, type=Manifest)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}") from None
