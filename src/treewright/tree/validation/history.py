"""The records of a run: manifest.json is what events.jsonl gives, and the records fit together.

All other checks rely on these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import journal, untrusted
from treewright.kernel.text import jsontext
from treewright.tree.records import events as ev
from treewright.tree.records import layout, state, store
from treewright.tree.records.model import FORMAT_VERSION, Manifest, SnapshotMark
from treewright.tree.run.creation import ROOT_NODE
from treewright.tree.validation.findings import Finding

_events = jsontext.decoder(ev.Event)


_TO_EVALUATIONS = frozenset({"eval_ids", "promoted_from_eval_id"})


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
        data = untrusted.read(path, store.LARGEST_MANIFEST)
    except FileNotFoundError:
        return None, [Finding("manifest_missing", path.name, "there is no such file")]
    except OSError as error:
        return None, [Finding("manifest_unreadable", path.name, error.strerror or str(error))]
    try:
        version = store.version_of(data)
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
                taken = True
                if manifest is not None:
                    at_offset = jsontext.decode(msgspec.json.encode(manifest), type=Manifest)
            manifest = state.apply(manifest, _events(line.raw))
    except KeyError as error:
        return None, None, f"an event names {error}, which no event before it made"
    except (TreewrightError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, None, str(error)
    if manifest is None:
        return None, None, "it has no run_created event"
    return at_offset if taken else manifest, manifest, None


def _differences(snapshot: Manifest, replayed: Manifest | None) -> list[Finding]:
    """Return a finding for each part that differs, down to the record."""
    if replayed is not None:
        bare = (msgspec.structs.replace(m, snapshot=SnapshotMark()) for m in (snapshot, replayed))
        mine, theirs = map(msgspec.json.encode, bare)
        if mine == theirs:
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


def check_structure(manifest: Manifest) -> Iterator[Finding]:
    """Check that ids are dense and in order, every reference leads to a record, and parents come
    first."""
    yield from _ids(manifest)
    yield from _references(manifest)


def _ids(manifest: Manifest) -> Iterator[Finding]:
    expected_nodes = [f"n{number:04d}" for number in range(len(manifest.nodes))]
    if list(manifest.nodes) != expected_nodes or ROOT_NODE not in manifest.nodes:
        yield Finding("ids_not_dense", "nodes", f"node ids are not {ROOT_NODE} and on, in order")
    expected_evals = [f"e{number + 1:06d}" for number in range(len(manifest.evaluations))]
    if list(manifest.evaluations) != expected_evals:
        message = "evaluation ids are not e000001 and on, in order"
        yield Finding("ids_not_dense", "evaluations", message)
    for key, node in manifest.nodes.items():
        if node.node_id != key:
            yield Finding("id_mismatch", key, f"the record under this key is {node.node_id}")
    for key, evaluation in manifest.evaluations.items():
        if evaluation.eval_id != key:
            message = f"the record under this key is {evaluation.eval_id}"
            yield Finding("id_mismatch", key, message)


def _references(manifest: Manifest) -> Iterator[Finding]:
    nodes, evaluations = manifest.nodes, manifest.evaluations
    named = [("run", "frontier", node_id) for node_id in manifest.frontier]
    named += [("run", "expanded", node_id) for node_id in manifest.expanded]
    for number, record in enumerate(manifest.depths, start=1):
        owner = f"depth {number}"
        if record.depth != number:
            yield Finding("id_mismatch", owner, f"the record here is of depth {record.depth}")
        named += [(owner, "frontier", node_id) for node_id in record.frontier]
        named += [(owner, "promoted", node_id) for node_id in record.promoted]
        named += [(owner, "eval_ids", eval_id) for eval_id in record.eval_ids]
    for evaluation in evaluations.values():
        name = evaluation.eval_id
        named.append((name, "parent_node_id", evaluation.parent_node_id))
        if not 1 <= evaluation.depth <= len(manifest.depths):
            yield Finding("dangling_reference", name, f"there is no depth {evaluation.depth}")
        promoted_to = evaluation.decision.promoted_to_node_id if evaluation.decision else None
        if promoted_to is not None:
            named.append((name, "promoted_to_node_id", promoted_to))
    for node in nodes.values():
        if node.node_id == ROOT_NODE:
            continue
        named.append((node.node_id, "parent_node_id", str(node.parent_node_id)))
        from_eval = str(node.artifacts.promoted_from_eval_id)
        named.append((node.node_id, "promoted_from_eval_id", from_eval))
        if node.parent_node_id is not None and node.parent_node_id >= node.node_id:
            message = f"its parent {node.parent_node_id} is not older than it"
            yield Finding("dangling_reference", node.node_id, message)
    for owner, field, target in named:
        if target not in (evaluations if field in _TO_EVALUATIONS else nodes):
            yield Finding(
                "dangling_reference", owner, f"{field} names {target}, which is not there"
            )
