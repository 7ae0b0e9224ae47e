"""The history of a run: manifest.json is complete and is the state that events.jsonl gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import journal, untrusted
from treewright.kernel.text import jsontext
from treewright.tree.records import events as ev
from treewright.tree.records import layout, state, store
from treewright.tree.records.model import FORMAT_VERSION, Manifest, SnapshotMark
from treewright.tree.validation.findings import Finding

_LARGEST = 1 << 31  # the limit of the store

_events = jsontext.decoder(ev.Event)


class _Version(msgspec.Struct):
    format_version: int


@dataclass(frozen=True, slots=True)
class History:
    """The state to check further, if there is one, and the findings on the way to it."""

    manifest: Manifest | None
    findings: list[Finding]


def read_history(run_dir: Path) -> History:
    """Return the state that readers of the run get; if they get none, the best state that can be
    rebuilt."""
    snapshot, findings = _snapshot(run_dir / layout.MANIFEST)
    offset = snapshot.snapshot.journal_offset if snapshot is not None else None
    at_snapshot, now, problem = _rebuild(run_dir / layout.EVENTS, offset)
    if problem is not None:
        findings.append(Finding("events_unreadable", layout.EVENTS, problem))
    elif snapshot is not None:
        findings += _differences(snapshot, at_snapshot)
    try:
        return History(store.load(run_dir), findings)
    except TreewrightError:
        return History(now or snapshot, findings)


def _snapshot(path: Path) -> tuple[Manifest | None, list[Finding]]:
    try:
        data = untrusted.read(path, _LARGEST)
    except FileNotFoundError:
        return None, [Finding("manifest_missing", path.name, "there is no such file")]
    except OSError as error:
        return None, [Finding("manifest_unreadable", path.name, error.strerror or str(error))]
    try:
        version = jsontext.decode(data, type=_Version).format_version
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, [Finding("manifest_unreadable", path.name, str(error))]
    if version != FORMAT_VERSION:
        message = f"format_version is {version}, this treewright reads {FORMAT_VERSION}"
        return None, [Finding("manifest_version", path.name, message)]
    findings = []
    if not store.is_checksum_valid(data):
        message = "the checksum in snapshot.sha256 is not that of the file"
        findings.append(Finding("manifest_checksum", path.name, message))
    try:
        return jsontext.decode(data, type=Manifest), findings
    except msgspec.ValidationError as error:
        return None, [*findings, Finding("manifest_unreadable", path.name, str(error))]


def _rebuild(path: Path, offset: int | None) -> tuple[Manifest | None, Manifest | None, str | None]:
    """Return the state at `offset`, the state at the end, and the problem that stopped the
    reading."""
    manifest: Manifest | None = None
    at_offset: Manifest | None = None
    taken = False
    try:
        for line in journal.read(path):
            if not taken and offset is not None and line.end > offset:
                at_offset, taken = _copy(manifest), True
            manifest = state.apply(manifest, _events(line.raw))
    except KeyError as error:
        return None, None, f"an event names {error}, which no event before it made"
    except (TreewrightError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, None, str(error)
    if manifest is None:
        return None, None, "it has no run_created event"
    return at_offset if taken else manifest, manifest, None


def _copy(manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    return jsontext.decode(msgspec.json.encode(manifest), type=Manifest)


def _comparable(manifest: Manifest) -> bytes:
    bare = msgspec.structs.replace(manifest, snapshot=SnapshotMark())
    return msgspec.json.encode(bare)


def _differences(snapshot: Manifest, replayed: Manifest | None) -> list[Finding]:
    """Return a finding for each part that differs, down to the record."""
    if replayed is not None and _comparable(snapshot) == _comparable(replayed):
        return []
    here = msgspec.to_builtins(snapshot)
    there = msgspec.to_builtins(replayed) if replayed is not None else {}
    for document in (here, there):
        document.pop("snapshot", None)
    paths: list[str] = []
    for key in sorted({*here, *there}):
        mine, theirs = here.get(key), there.get(key)
        if mine == theirs:
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict):
            paths += [
                f"{key}.{name}"
                for name in sorted({*mine, *theirs})
                if mine.get(name) != theirs.get(name)
            ]
        else:
            paths.append(key)
    message = "it is not what events.jsonl adds up to"
    return [Finding("manifest_differs_from_events", path, message) for path in paths]
