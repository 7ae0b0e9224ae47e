"""Candidates that count once because their code is the same.

A second node with the same code would only make the search do the same work twice. Two candidates
have the same code if their git trees are equal. They also count as the same if their results are
equal, byte for byte, and either their code is equal after formatting, or the results have so large
a number of configs that different code would hardly agree on all of them. Equal results of few
configs prove nothing: two different ideas may gain the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treewright.tree.records.model import Evaluation, Fate, Node

MANY_CONFIGS = 8
"""Results that are equal in this many configs count as the same, even for different code."""
_ANY_CODE = ""


@dataclass(slots=True)
class KnownCode:
    """Code and results of nodes.

    `trees` maps git trees, and `results` maps pairs of the results' sha256 and the code's digest,
    to the number of the outcome at which they became known; 0 in a search by depth.
    """

    trees: dict[str, int] = field(default_factory=dict)
    results: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> KnownCode:
        known = cls()
        for node in nodes:
            known.trees[node.tree] = 0
            if node.artifacts.baseline is not None:
                known._add_results(node.artifacts.baseline.sha256, node.code, 0)
        return known

    def twin(self, evaluation: Evaluation) -> Fate | None:
        """Return why the candidate is the same as a known one; None if it is new."""
        if evaluation.candidate_tree in self.trees:
            return "duplicate_code"
        return "duplicate_results" if _results_key(evaluation) in self.results else None

    def became(self, evaluation: Evaluation) -> int | None:
        """Return the outcome at which the first candidate that is the same became a node."""
        found = (
            self.trees.get(evaluation.candidate_tree or ""),
            self.results.get(_results_key(evaluation)),
        )
        return min((place for place in found if place is not None), default=None)

    def add(self, evaluation: Evaluation, outcome: int = 0) -> None:
        if evaluation.candidate_tree is not None:
            self.trees.setdefault(evaluation.candidate_tree, outcome)
        if evaluation.results_csv is not None:
            code = evaluation.candidate_code or evaluation.eval_id
            self._add_results(evaluation.results_csv.sha256, code, outcome)

    def copy(self) -> KnownCode:
        return KnownCode(dict(self.trees), dict(self.results))

    def _add_results(self, sha256: str, code: str, outcome: int) -> None:
        for key in ((sha256, code), (sha256, _ANY_CODE)):
            self.results.setdefault(key, outcome)


def _results_key(evaluation: Evaluation) -> tuple[str, str]:
    """Return the key of a candidate's results, which equal candidates share."""
    sha256 = evaluation.results_csv.sha256 if evaluation.results_csv is not None else ""
    found = evaluation.root_relative
    if found is not None and found.rows_expected >= MANY_CONFIGS:
        return sha256, _ANY_CODE
    return sha256, evaluation.candidate_code or evaluation.eval_id
