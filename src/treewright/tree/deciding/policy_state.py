"""The state of a search by policy: choices, outcomes and fates, in the order of settling.

Gate, duplicate check and confirmation are those of beam search. There is no beam: every candidate
that passes becomes a node. Each outcome is told to the policy through a `Sequencer`. Pure: the
state is rebuilt from the records when a run is opened, and again to validate it.
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
from treewright.tree.deciding.duplicates import KnownCode
from treewright.tree.deciding.rounds import rules_after
from treewright.tree.records.model import (
    Decision,
    Evaluation,
    Exhausted,
    Fate,
    Manifest,
    PolicyRecord,
    StopReason,
)
from treewright.tree.records.steering import Steering, applied, banned_nodes, until


def choice_number(eval_id: str) -> int:
    """Return the number of the choice that an evaluation is."""
    return int(eval_id.removeprefix("e"))


def counter(value: object) -> int:
    """Return a counter of the records; 0 where the record has none."""
    return value if isinstance(value, int) else 0


def make_sequencer(policy_record: PolicyRecord, seed: int) -> Sequencer:
    """Return the sequencer before the first choice. The root's value is 0, because values are
    scores relative to the root."""
    root = SearchNode(0, None, score=0.0)
    return Sequencer(
        Tree(root, branching=policy_record.branching),
        policies.make(policy_record.policy, policy_record.options),
        seed,
        policy_record.order,
        policy_record.lookahead,
    )


@dataclass(slots=True)
class PolicyState:
    """The choices and outcomes of a search so far.

    Attributes:
        sequencer: The tree and the policy.
        max_depth: The last depth of nodes that may grow.
        confirms: Whether candidates are confirmed on held-out configs.
        known: The code and the results that are nodes.
        nodes: The node that each choice became.
        settled: The number of settled outcomes.
    """

    sequencer: Sequencer
    max_depth: int
    confirms: bool
    known: KnownCode = field(default_factory=KnownCode)
    nodes: dict[int, str] = field(default_factory=dict)
    settled: int = 0

    @classmethod
    def beginning(
        cls, manifest: Manifest, policy_record: PolicyRecord, max_depth: int
    ) -> PolicyState:
        root = next(node for node in manifest.nodes.values() if node.parent_node_id is None)
        return cls(
            make_sequencer(policy_record, manifest.seed),
            max_depth,
            bool(manifest.confirm_configs),
            KnownCode.of([root]),
            {0: root.node_id},
        )

    def needs_confirmation(self, evaluation: Evaluation) -> bool:
        """Return whether a candidate is swept on the held-out configs: it passes the gate, and its
        choice could not know that the same code was a node. So the answer does not depend on
        timing."""
        if (
            not self.confirms
            or not gate.decide(evaluation.parent_relative, evaluation.error).passed
        ):
            return False
        became = self.known.became(evaluation)
        return became is None or became > counter(evaluation.seen)

    def decide(self, evaluation: Evaluation) -> Decision:
        """Return the decision about an evaluation; a promoted one has no node yet."""
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
        """Add a decided evaluation as the next outcome."""
        self.settled += 1
        number = choice_number(evaluation.eval_id)
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


def exhausted_nodes(
    manifest: Manifest, policy_record: PolicyRecord, change: Steering | None = None
) -> list[Exhausted]:
    """Return the nodes found without ideas that no command has reopened, after a change or now."""
    records, found = applied(manifest.steering), policy_record.exhausted
    if change is not None:
        records, found = until(records, change), found[: change.exhausted]
    return [
        each
        for place, each in enumerate(found)
        if not any(place < r.exhausted and each.node_id in r.reopened for r in records)
    ]


def nodes_with_room(manifest: Manifest, policy_record: PolicyRecord, max_depth: int) -> list[str]:
    """Return the nodes above `max_depth` that may take another idea."""
    return [
        node.node_id
        for node in manifest.nodes.values()
        if node.depth < max_depth
        and (policy_record.branching is None or counter(node.tried) < policy_record.branching)
    ]


def rebuild_state(
    manifest: Manifest,
    policy_record: PolicyRecord,
    evaluations: Iterable[Evaluation] | None = None,
    change: Steering | None = None,
) -> PolicyState:
    """Return the state of a run from its records, without asking the policy.

    Args:
        manifest: The run.
        policy_record: How it searches.
        evaluations: Recomputed evaluations to use in place of the recorded ones.
        change: Return the state right after this change.
    """
    max_depth = manifest.max_depth
    if change is not None:
        max_depth = rules_after(manifest, change).max_depth
    state = PolicyState.beginning(manifest, policy_record, max_depth)
    branches = {node_id: number for number, node_id in state.nodes.items()}
    evaluations = list(manifest.evaluations.values() if evaluations is None else evaluations)
    settled = sorted((e for e in evaluations if e.decision is not None), key=_place)
    if change is not None:
        evaluations, settled = evaluations[: change.evaluations], settled[: change.settled]
    exhausted = exhausted_nodes(manifest, policy_record, change)

    def settle_up_to(seen: int) -> None:
        while state.settled < min(seen, len(settled)):
            evaluation = settled[state.settled]
            assert evaluation.decision is not None
            state.settle(evaluation, evaluation.decision)
            if evaluation.decision.promoted_to_node_id is not None:
                number = choice_number(evaluation.eval_id)
                branches[evaluation.decision.promoted_to_node_id] = number

    def exhaust_before(choice: int) -> None:
        while exhausted and exhausted[0].choice <= choice:
            found = exhausted.pop(0)
            settle_up_to(found.seen)
            state.sequencer.exhaust(branches[found.node_id], found.seen)

    for number, evaluation in enumerate(evaluations, start=1):
        exhaust_before(number)
        seen = counter(evaluation.seen)
        settle_up_to(seen)
        state.sequencer.take(Choice(branches[evaluation.parent_node_id]), seen)
    exhaust_before(len(evaluations) + 1)
    settle_up_to(len(settled))
    records = applied(manifest.steering)
    for node_id in sorted(banned_nodes(records if change is None else until(records, change))):
        state.sequencer.exhaust(branches[node_id])
    return state


def _place(evaluation: Evaluation) -> int:
    return counter(evaluation.place)


def stop_reason(manifest: Manifest, policy_record: PolicyRecord) -> StopReason:
    """Return why a search ends in which no further choice is possible."""
    if Budget(manifest.max_total_idea_evals).evals_left(manifest.spent) == 0:
        return "max_total_idea_evals"
    if exhausted_nodes(manifest, policy_record):
        return "no_new_ideas"
    if manifest.current_depth >= manifest.max_depth:
        return "max_depth_reached"
    return "empty_frontier"
