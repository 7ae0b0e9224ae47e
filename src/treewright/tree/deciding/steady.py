"""Deciding without a barrier: each evaluation by itself, in the order of choosing or of arrival.

The gate against the parent, the check for code that is a node already, and the held-out
confirmation are those of beam search; there is no beam, so what passes becomes a node. What
came of it is told to the search policy through a `Sequencer`. Pure: rebuilt from the records
whenever a run is opened, and once more to validate it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treewright.kernel.budget import Budget
from treewright.search import policies
from treewright.search.policies import Choice
from treewright.search.sequencer import Outcome, Sequencer
from treewright.search.tree import Node as SearchNode
from treewright.search.tree import Tree
from treewright.tree.deciding import gate
from treewright.tree.deciding.rounds import rules_after
from treewright.tree.deciding.sameness import Known
from treewright.tree.records.model import (
    Decision,
    Evaluation,
    Exhausted,
    Fate,
    Manifest,
    SteadySearch,
    StopReason,
)
from treewright.tree.records.steering import Steering, applied, banned_nodes, until


def number_of(eval_id: str) -> int:
    """Of the choice that an evaluation is."""
    return int(eval_id.removeprefix("e"))


def count(value: object) -> int:
    """A counter that records of beam search do not have."""
    return value if isinstance(value, int) else 0


def make_sequencer(steady: SteadySearch, seed: int) -> Sequencer:
    """Before the first choice. The root's value is 0: values are root-relative scores."""
    root = SearchNode(0, None, score=0.0)
    return Sequencer(
        Tree(root, branching=steady.branching),
        policies.make(steady.policy, steady.options),
        seed,
        steady.order,
        steady.lookahead,
    )


@dataclass(slots=True)
class Standing:
    """Where a search stands: what was chosen and settled, which code and results are nodes.

    `nodes` says which node a choice became.
    """

    sequencer: Sequencer
    max_depth: int
    confirms: bool
    known: Known = field(default_factory=Known)
    nodes: dict[int, str] = field(default_factory=dict)
    settled: int = 0

    @classmethod
    def beginning(cls, manifest: Manifest, steady: SteadySearch, max_depth: int) -> Standing:
        root = next(node for node in manifest.nodes.values() if node.parent_node_id is None)
        return cls(
            make_sequencer(steady, manifest.seed),
            max_depth,
            bool(manifest.confirm_configs),
            Known.of([root]),
            {0: root.node_id},
        )

    def needs_confirmation(self, evaluation: Evaluation) -> bool:
        """What passes the gate is swept on held-out configs; not if its choice could know that
        it is a node already. So it does not depend on who was quicker."""
        if (
            not self.confirms
            or not gate.decide(evaluation.parent_relative, evaluation.error).passed
        ):
            return False
        became = self.known.became(evaluation)
        return became is None or became > count(evaluation.seen)

    def decide(self, evaluation: Evaluation) -> Decision:
        """The fate of an evaluation whose turn it is; a promoted one has no node yet."""
        passed = gate.decide(evaluation.parent_relative, evaluation.error)
        return Decision(fate=self._fate(evaluation, passed.passed), gate=passed)

    def _fate(self, evaluation: Evaluation, passed: bool) -> Fate:
        if evaluation.error is not None:
            return "evaluation_failed"
        if not passed:
            return "gate_failed"
        twin = self.known.twin(evaluation)
        if twin is not None:
            return twin
        confirmation = evaluation.confirmation
        if confirmation is not None and not confirmation.held:
            return "not_confirmed"
        return "promoted"

    def settle(self, evaluation: Evaluation, decision: Decision) -> None:
        """A decided evaluation becomes known, at the place after those before it."""
        self.settled += 1
        number = number_of(evaluation.eval_id)
        if decision.promoted_to_node_id is not None:
            self.nodes[number] = decision.promoted_to_node_id
            self.known.add(evaluation, self.settled)
        self.sequencer.tell(number, self._outcome(number, evaluation, decision))

    def _outcome(self, number: int, evaluation: Evaluation, decision: Decision) -> Outcome:
        found = evaluation.root_relative
        incomplete = found is None or found.rows_used != found.rows_expected
        if evaluation.error is not None or found is None or incomplete:
            return Outcome(None)
        above = self.sequencer.tree.branches[number].parent
        parent = above.node if above is not None else None
        node = SearchNode(number, parent, score=found.score, value=found.score)
        promoted = decision.fate == "promoted"
        return Outcome(node, expandable=promoted and evaluation.depth < self.max_depth)


def exhausted_now(
    manifest: Manifest, steady: SteadySearch, change: Steering | None = None
) -> list[Exhausted]:
    """Nodes found without ideas that nobody has reopened since; after a change, or after all."""
    records, found = applied(manifest.steering), steady.exhausted
    if change is not None:
        records, found = until(records, change), found[: change.exhausted]
    return [
        each
        for place, each in enumerate(found)
        if not any(place < r.exhausted and each.node_id in r.reopened for r in records)
    ]


def growing(manifest: Manifest, steady: SteadySearch, max_depth: int) -> list[str]:
    """The frontier of a search without a barrier, were `max_depth` the limit and every node
    open that was found without ideas."""
    return [
        node.node_id
        for node in manifest.nodes.values()
        if node.depth < max_depth
        and (steady.branching is None or count(node.tried) < steady.branching)
    ]


def rebuild(
    manifest: Manifest,
    steady: SteadySearch,
    evaluations: Iterable[Evaluation] | None = None,
    change: Steering | None = None,
) -> Standing:
    """The standing of a run, from its records; the policy is not asked. Of `evaluations` other
    than the recorded, and as it was right after a change, to check a run."""
    max_depth = manifest.max_depth
    if change is not None:
        max_depth = rules_after(manifest, change).max_depth
    standing = Standing.beginning(manifest, steady, max_depth)
    branches = {node_id: number for number, node_id in standing.nodes.items()}
    evaluations = list(manifest.evaluations.values() if evaluations is None else evaluations)
    settled = sorted((e for e in evaluations if e.decision is not None), key=_place)
    if change is not None:
        evaluations, settled = evaluations[: change.evaluations], settled[: change.settled]
    exhausted = exhausted_now(manifest, steady, change)

    def settle_up_to(seen: int) -> None:
        while standing.settled < min(seen, len(settled)):
            evaluation = settled[standing.settled]
            assert evaluation.decision is not None
            standing.settle(evaluation, evaluation.decision)
            if evaluation.decision.promoted_to_node_id is not None:
                number = number_of(evaluation.eval_id)
                branches[evaluation.decision.promoted_to_node_id] = number

    def exhaust_before(choice: int) -> None:
        while exhausted and exhausted[0].choice <= choice:
            found = exhausted.pop(0)
            settle_up_to(found.seen)
            standing.sequencer.exhaust(branches[found.node_id], found.seen)

    for number, evaluation in enumerate(evaluations, start=1):
        exhaust_before(number)
        seen = count(evaluation.seen)
        settle_up_to(seen)
        standing.sequencer.take(Choice(branches[evaluation.parent_node_id]), seen)
    exhaust_before(len(evaluations) + 1)
    settle_up_to(len(settled))
    records = applied(manifest.steering)
    for node_id in sorted(banned_nodes(records if change is None else until(records, change))):
        standing.sequencer.exhaust(branches[node_id])
    return standing


def _place(evaluation: Evaluation) -> int:
    return count(evaluation.place)


def stop_reason(manifest: Manifest, steady: SteadySearch) -> StopReason:
    """Why a search ends that nothing more can be chosen in."""
    if Budget(manifest.max_total_idea_evals).evals_left(manifest.spent) == 0:
        return "max_total_idea_evals"
    if exhausted_now(manifest, steady):
        return "no_new_ideas"
    if manifest.current_depth >= manifest.max_depth:
        return "max_depth_reached"
    return "empty_frontier"
