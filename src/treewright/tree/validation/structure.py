"""The structure of the records: they refer to each other soundly. All other checks rely on this
one.
"""

from __future__ import annotations

from collections.abc import Iterator

from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import ROOT_NODE
from treewright.tree.validation.findings import Finding


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


_TO_EVALUATIONS = frozenset({"eval_ids", "promoted_from_eval_id"})
