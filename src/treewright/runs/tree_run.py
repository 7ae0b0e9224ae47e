"""A tree run as columns and pictures, and its payments over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from treewright.kernel.clock import seconds_between
from treewright.runs.columns import Columns, Picture, page
from treewright.tree.records import store
from treewright.tree.records.description import best_node, describe
from treewright.tree.records.model import Manifest, Recommendation, Unset
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import draw_score_chart
from treewright.tree.report.tree_picture import draw_tree

_EVALUATION = (
    "eval_id", "parent_node_id", "depth", "idea_id", "idea", "status", "fate", "node_id", "score",
    "primary_gain", "primary_gain_low", "primary_gain_high", "parent_score", "grade", "reasons",
    "error", "commit", "attempt", "worker", "queued_at", "started_at", "finished_at", "seconds",
    "cost_usd", "tokens",
)  # fmt: skip
_NODE = (
    "node_id", "parent_node_id", "depth", "idea", "commit", "ref", "status", "score",
    "primary_gain", "primary_gain_low", "primary_gain_high", "eval_id", "created_at", "is_best",
)  # fmt: skip


@dataclass(frozen=True)
class TreeRun:
    """A search over commits at the time of reading."""

    path: Path
    manifest: Manifest
    kind: Literal["tree"] = "tree"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the tree run in a directory."""
        return cls(path, store.load(path))

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self.manifest.tree_run_id

    @property
    def stop_reason(self) -> str | None:
        """Return why the search ended, or None while it runs."""
        return self.manifest.stop_reason

    @property
    def is_finished(self) -> bool:
        """Return whether there is a stop reason."""
        return self.stop_reason is not None

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Return the JSON object that `treewright tree` prints."""
        return describe(self.manifest, self.path)

    @cached_property
    def evaluations(self) -> Columns:
        """Return a row for each evaluation, in the order of queueing."""
        rows: list[tuple[Any, ...]] = []
        for one in self.manifest.evaluations.values():
            decision, above, error = one.decision, one.parent_relative, one.error
            found = one.root_relative
            took = seconds_between(one.started_at, one.finished_at)
            rows.append(
                (
                    one.eval_id, one.parent_node_id, one.depth, one.idea_id, self.facts.title(one),
                    one.status, decision.fate if decision else None,
                    decision.promoted_to_node_id if decision else None, *_gains(found),
                    above.score if above else None, found.grade if found else None,
                    list(decision.gate.reasons) if decision else [], error.code if error else None,
                    one.candidate_commit, one.attempt, one.worker, one.queued_at, one.started_at,
                    one.finished_at, took, one.usage.cost_usd, one.usage.tokens,
                )
            )  # fmt: skip
        return Columns.of(_EVALUATION, rows)

    @cached_property
    def nodes(self) -> Columns:
        """Return a row for each commit of the tree, the root first."""
        best = best_node(self.manifest).node_id
        rows = [
            (
                node.node_id, node.parent_node_id, node.depth, self.facts.node_title(node),
                node.commit, node.ref, node.status, node.score, *_gains(node.root_relative)[1:],
                node.artifacts.promoted_from_eval_id, node.created_at, node.node_id == best,
            )
            for node in self.manifest.nodes.values()
        ]  # fmt: skip
        return Columns.of(_NODE, rows)

    @property
    def best(self) -> dict[str, Any]:
        """Return the row of `nodes` with the highest score."""
        return next(row for row in self.nodes.rows() if row["is_best"])

    def tree(self) -> Picture:
        """Return the picture of the tree in the report."""
        return Picture(draw_tree(self.facts))

    def scores(self) -> Picture:
        """Return a chart of every score by depth, and of the best so far."""
        return Picture(draw_score_chart(self.facts))

    @cached_property
    def facts(self) -> Facts:
        """Return the facts of the run's report."""
        return Facts.of(self.path, self.manifest)

    def _repr_html_(self) -> str:
        return page(f"tree run {self.run_id}", self._shown(), self.tree())

    def __repr__(self) -> str:
        return f"TreeRun({self.run_id!r}, {self._shown()})"

    def _shown(self) -> dict[str, Any]:
        return {
            "evaluations": len(self.manifest.evaluations),
            "nodes": len(self.manifest.nodes),
            "best": f"{self.best['node_id']}, score {self.best['score']:.4g}",
            "stop reason": self.stop_reason or "none yet",
        }


def _gains(found: Recommendation | None) -> tuple[float | None, ...]:
    if found is None:
        return (None, None, None, None)
    return found.score, found.primary_gain, found.primary_gain_low, found.primary_gain_high


class Payment(NamedTuple):
    """A payment, in seconds since the start of the run."""

    seconds: float
    cost_usd: float


def payments(run: TreeRun) -> list[Payment] | None:
    """Return the payments of a run, the earliest first; None if a price is unknown."""
    manifest = run.manifest
    usages = [one.usage for one in manifest.evaluations.values()]
    usages += [] if isinstance(manifest.roles, Unset) else manifest.roles.values()
    if manifest.spent.unpriced_tokens or any(u.tokens and not u.cost_usd for u in usages):
        return None
    return sorted(
        Payment(seconds_between(manifest.created_at, at) or 0.0, cost)
        for at, cost in (store.payments(run.path) if manifest.spent.cost_usd else ())
    )
