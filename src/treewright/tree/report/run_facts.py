"""What the sections and pictures share: titles, the best path, evaluations by parent.

Computed once, in one pass over the manifest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.storage import untrusted
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout, summary
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Evaluation, Manifest, Node

_TITLE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Facts:
    """`by_parent[node_id]` are its evaluations, oldest first; `path` is root to best."""

    run_dir: Path
    manifest: Manifest
    best: Node
    path: list[Node]
    on_path: frozenset[str]
    by_parent: dict[str, list[Evaluation]]
    titles: dict[str, str]
    primary: dict[str, Any]

    @classmethod
    def of(cls, run_dir: Path, manifest: Manifest) -> Facts:
        best = best_node(manifest)
        by_parent: dict[str, list[Evaluation]] = defaultdict(list)
        titles: dict[str, str] = {}
        for evaluation in manifest.evaluations.values():
            by_parent[evaluation.parent_node_id].append(evaluation)
            if evaluation.idea_path not in titles:
                titles[evaluation.idea_path] = read_title(run_dir / evaluation.idea_path, run_dir)
        metrics = manifest.agent_config.get("metrics", [])
        primary = next((m for m in metrics if m.get("primary")), {})
        path = lineage(manifest, best)
        on_path = frozenset(node.node_id for node in path)
        return cls(run_dir, manifest, best, path, on_path, by_parent, titles, primary)

    def title(self, evaluation: Evaluation) -> str:
        return self.titles[evaluation.idea_path] or evaluation.idea_id

    def node_title(self, node: Node) -> str:
        """The idea that made the node."""
        evaluation = self.origin(node)
        return self.title(evaluation) if evaluation else "the root"

    def origin(self, node: Node) -> Evaluation | None:
        """The evaluation that became the node; None for the root."""
        eval_id = node.artifacts.promoted_from_eval_id
        return self.manifest.evaluations.get(eval_id) if eval_id else None

    def primary_means(self, node: Node) -> tuple[float, float] | None:
        """The primary metric's mean at the root and at the node, from its summary.json."""
        for metric in self.against_the_root(node):
            if metric.get("primary"):
                return metric["baseline_mean"], metric["candidate_mean"]
        return None

    def against_the_root(self, node: Node) -> list[dict[str, Any]]:
        """Each metric of the node's summary.json that was compared; none of the root."""
        evaluation = self.origin(node)
        if evaluation is None:
            return []
        document = summary.read(self.run_dir / layout.summary(evaluation.experiment_dir)) or {}
        scores = document.get("scoring_summary", {})
        metrics = scores.get("root_relative", {}).get("metrics", [])
        return [metric for metric in metrics if metric.get("baseline_mean") is not None]


def lineage(manifest: Manifest, node: Node) -> list[Node]:
    """The root, ..., the node."""
    path = [node]
    while (parent := path[-1].parent_node_id) is not None:
        path.append(manifest.nodes[parent])
    return path[::-1]


def read_title(path: Path, inside: Path | None = None) -> str:
    """The title of an idea file; empty if the file is gone, or leads out of `inside`."""
    try:
        with untrusted.open_plain(path, untrusted.LARGEST_TEXT, inside) as file:
            return idea_text.title(file.read(_TITLE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
