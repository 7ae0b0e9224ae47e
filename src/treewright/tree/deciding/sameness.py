"""Which candidates count once: those with the same code, and those with the same results.

Two changes that give the same results, byte for byte, are for the search one and the same: a second
place in the tree would only make it look at the same thing twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treewright.tree.records.model import Evaluation, Fate, Node


@dataclass(slots=True)
class Known:
    """Code and results of nodes. The numbers say at which outcome each became known, for searches
    without a barrier."""

    trees: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Known:
        known = cls()
        for node in nodes:
            known.trees[node.tree] = 0
            if node.artifacts.baseline is not None:
                known.results[node.artifacts.baseline.sha256] = 0
        return known

    def twin(self, evaluation: Evaluation) -> Fate | None:
        """Why the candidate is one that is known; None if it is new."""
        if evaluation.candidate_tree in self.trees:
            return "duplicate_code"
        if _digest(evaluation) in self.results:
            return "duplicate_results"
        return None

    def became(self, evaluation: Evaluation) -> int | None:
        """The outcome at which the first that is like it became a node."""
        found = [self.trees.get(evaluation.candidate_tree or "")]
        found.append(self.results.get(_digest(evaluation)))
        return min((place for place in found if place is not None), default=None)

    def add(self, evaluation: Evaluation, outcome: int = 0) -> None:
        if evaluation.candidate_tree is not None:
            self.trees.setdefault(evaluation.candidate_tree, outcome)
        if evaluation.results_csv is not None:
            self.results.setdefault(_digest(evaluation), outcome)

    def copy(self) -> Known:
        return Known(dict(self.trees), dict(self.results))


def _digest(evaluation: Evaluation) -> str:
    return evaluation.results_csv.sha256 if evaluation.results_csv is not None else ""
