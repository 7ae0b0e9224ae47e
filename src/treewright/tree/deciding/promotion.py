"""The promotion of a candidate: the gate, held-out configs, code that counts once, the node. Pure.

The reasons of a decision are stable codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treewright.tree.deciding.scoring import (
    INCOMPLETE_ROWS,
    OF_METRICS,
    PRIMARY_IMPROVED,
    PRIMARY_MEAN_WORSE,
    PRIMARY_REGRESSED,
    SECONDARY_IMPROVED,
)
from treewright.tree.records import layout
from treewright.tree.records.model import (
    Confirmation,
    Dedupe,
    EvalError,
    Evaluation,
    Fate,
    GateDecision,
    Manifest,
    Node,
    NodeArtifacts,
    Recommendation,
)

NOT_RECOMMENDED = "not_recommended"
HELDOUT_NOT_BETTER = "heldout_not_better"


MANY_CONFIGS = 8
"""Results that are equal in this many configs count as the same, even for different code."""
_ANY_CODE = ""


def decide_gate(parent_relative: Recommendation | None, error: EvalError | None) -> GateDecision:
    """Pass a recommended candidate, and a `mixed` one if its primary mean is not worse.

    A `mixed` grade has no other argument for the candidate than the mean. Incomplete measurements
    never pass.
    """
    if error is not None:
        return GateDecision(False, [error.code])
    if parent_relative is None:
        return GateDecision(False, [INCOMPLETE_ROWS])
    if parent_relative.rows_used != parent_relative.rows_expected:
        return GateDecision(False, _with(INCOMPLETE_ROWS, parent_relative.reasons))
    if PRIMARY_REGRESSED in parent_relative.reasons:
        return GateDecision(False, _with(PRIMARY_REGRESSED, parent_relative.reasons))
    if parent_relative.should_explore:
        return GateDecision(True, parent_relative.reasons)
    if parent_relative.grade == "mixed":
        worse = PRIMARY_MEAN_WORSE in parent_relative.reasons
        return GateDecision(not worse, parent_relative.reasons)
    return GateDecision(False, _with(NOT_RECOMMENDED, parent_relative.reasons))


def confirm(
    selection: Recommendation,
    heldout: Recommendation,
    config_start: int,
    config_stop: int,
    *,
    must_be_significant: bool = False,
) -> Confirmation:
    """Return the confirmation: does the gain on the selection configs show on held-out configs?

    The held-out rows must be complete and sound on both sides and must not show a worse primary
    metric. If the gain of the primary metric got the candidate selected, they must show a gain as
    well. The shrinkage is the share of the selected gain that the held-out rows do not show.
    """
    reasons = [reason for reason in heldout.reasons if reason not in OF_METRICS]
    shown = PRIMARY_IMPROVED if selection.should_explore else SECONDARY_IMPROVED
    if heldout.rows_used != heldout.rows_expected:
        reasons = reasons or [INCOMPLETE_ROWS]
    elif PRIMARY_REGRESSED in heldout.reasons:
        reasons.append(PRIMARY_REGRESSED)
    elif (selection.should_explore and not (heldout.primary_gain or 0.0) > 0) or (
        must_be_significant and shown not in heldout.reasons
    ):
        reasons.append(HELDOUT_NOT_BETTER)
    elif PRIMARY_MEAN_WORSE in heldout.reasons:
        reasons.append(PRIMARY_MEAN_WORSE)
    shrinkage = None
    if selection.primary_gain and heldout.primary_gain is not None:
        shrinkage = 1.0 - heldout.primary_gain / selection.primary_gain
    return Confirmation(
        config_start=config_start,
        config_stop=config_stop,
        held=not reasons,
        reasons=reasons,
        selection_gain=selection.primary_gain,
        heldout_gain=heldout.primary_gain,
        heldout_gain_low=heldout.primary_gain_low,
        heldout_gain_high=heldout.primary_gain_high,
        shrinkage=shrinkage,
    )


def _with(code: str, reasons: list[str]) -> list[str]:
    return [code, *(reason for reason in reasons if reason != code)]


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
