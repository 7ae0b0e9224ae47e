"""Facts about a run that the sections and pictures of the report share.

They are the titles of ideas, the best path, and the evaluations by parent, computed in one pass
over the manifest.
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
from treewright.tree.records.model import Evaluation, Manifest, Node, ancestors

_TITLE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a run."""

    run_dir: Path
    manifest: Manifest
    best: Node
    path: list[Node]
    """The nodes from the root to the best node."""
    on_path: frozenset[str]
    by_parent: dict[str, list[Evaluation]]
    """The evaluations of a node's candidates, oldest first, by the id of the node."""
    titles: dict[str, str]
    """The titles of idea files, by path."""
    primary: dict[str, Any]
    """The configuration of the primary metric."""

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
        path = ancestors(manifest, best)[::-1]
        on_path = frozenset(node.node_id for node in path)
        return cls(run_dir, manifest, best, path, on_path, by_parent, titles, primary)

    def title(self, evaluation: Evaluation) -> str:
        return self.titles[evaluation.idea_path] or evaluation.idea_id

    def node_title(self, node: Node) -> str:
        """Return the title of the idea that led to the node."""
        evaluation = self.origin(node)
        return self.title(evaluation) if evaluation else "the root"

    def origin(self, node: Node) -> Evaluation | None:
        """Return the evaluation that became the node; None for the root."""
        eval_id = node.artifacts.promoted_from_eval_id
        return self.manifest.evaluations.get(eval_id) if eval_id else None

    def primary_means(self, node: Node) -> tuple[float, float] | None:
        """Return the means of the primary metric at the root and at the node."""
        for metric in self.against_the_root(node):
            if metric.get("primary"):
                return metric["baseline_mean"], metric["candidate_mean"]
        return None

    def against_the_root(self, node: Node) -> list[dict[str, Any]]:
        """Return the compared metrics of the node's summary.json; [] for the root."""
        evaluation = self.origin(node)
        if evaluation is None:
            return []
        document = summary.read(self.run_dir / layout.summary(evaluation.experiment_dir)) or {}
        scores = document.get("scoring_summary", {})
        metrics = scores.get("root_relative", {}).get("metrics", [])
        return [metric for metric in metrics if metric.get("baseline_mean") is not None]


def read_title(path: Path, inside: Path | None = None) -> str:
    """Return the title of an idea file; "" if it is missing, or outside of `inside`."""
    try:
        with untrusted.open_plain(path, untrusted.LARGEST_TEXT, inside) as file:
            return idea_text.title(file.read(_TITLE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
