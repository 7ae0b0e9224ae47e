"""The node that a selected evaluation becomes. Pure."""

from __future__ import annotations

from treewright.tree.records import layout
from treewright.tree.records.model import (
    Dedupe,
    Evaluation,
    Manifest,
    Node,
    NodeArtifacts,
)


def new_node(manifest: Manifest, evaluation: Evaluation, number: int, created_at: str) -> Node:
    """Return the node of a promoted evaluation; its results are its children's baseline."""
    parent = manifest.nodes[evaluation.parent_node_id]
    assert evaluation.candidate_commit is not None
    assert evaluation.candidate_tree is not None
    assert evaluation.results_csv is not None
    node_id = f"n{number:04d}"
    heldout = evaluation.confirmation.results_csv if evaluation.confirmation else None
    return Node(
        node_id=node_id,
        parent_node_id=parent.node_id,
        depth=evaluation.depth,
        commit=evaluation.candidate_commit,
        tree=evaluation.candidate_tree,
        code=evaluation.candidate_code or "",
        ref=None if manifest.dry_run else layout.node_ref(manifest.tree_run_id, node_id),
        worktree_path=None if manifest.dry_run else layout.worktree(node_id),
        baseline_results_csv_path=evaluation.results_csv.path,
        sweep_config_limit=manifest.sweep_config_limit,
        idea_chain=[*parent.idea_chain, evaluation.idea_path],
        status="frontier",
        created_at=created_at,
        node_ideas_dir=layout.ideas(node_id),
        root_relative=evaluation.root_relative,
        parent_relative=evaluation.parent_relative,
        dedupe=Dedupe(manifest.dedupe_scope),
        artifacts=NodeArtifacts(
            baseline=evaluation.results_csv,
            heldout=heldout,
            promoted_from_eval_id=evaluation.eval_id,
        ),
    )
