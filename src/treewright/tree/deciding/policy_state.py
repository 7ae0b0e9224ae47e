"""The state of a search by policy: choices, outcomes and fates, in the order of settling.

Gate, duplicate check and confirmation are those of beam search. There is no beam: every candidate
that passes becomes a node. Each outcome is told to the policy through a `Sequencer`. The user can
name the node that comes next, ideas that come first, and ideas that must not be tried. Pure: the
state is rebuilt from the records when a run is opened, and again to validate it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from treewright.kernel.budget import Budget
from treewright.search import policies
from treewright.search.policies import Choice
from treewright.search.sequencer import Outcome, Sequencer
from treewright.search.tree import Node as SearchNode
from treewright.search.tree import Status, Tree
from treewright.tree.deciding import promotion
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.deciding.rounds import rules_after
from treewright.tree.records.model import (
    Decision,
    Evaluation,
    Exhausted,
    Fate,
    IdeaRecord,
    Manifest,
    Node,
    PolicyRecord,
    StopReason,
)
from treewright.tree.records.steering import Steering, applied, banned_nodes, until

Growth = Literal["grows", "later", "never"]


class NodeRequests:
    """Nodes that the user asked for, before any that the policy chooses."""

    def __init__(self) -> None:
        self._next: deque[tuple[str, int]] = deque()

    @classmethod
    def of(cls, manifest: Manifest) -> NodeRequests:
        """Return the requests of a run's records that are not fulfilled yet."""
        requests, records = cls(), deque(applied(manifest.steering))
        for number, evaluation in enumerate(manifest.evaluations.values(), start=1):
            while records and records[0].evaluations < number:
                requests.add(records.popleft())
            requests.use(evaluation.parent_node_id)
        for record in records:
            requests.add(record)
        return requests

    def add(self, record: Steering) -> None:
        command = record.command
        if record.node_id is None or (command.action != "boost" and record.idea_path is None):
            return
        request = (record.node_id, command.times)
        if command.first:
            self._next.appendleft(request)
        else:
            self._next.append(request)

    def next_node(self, state: Callable[[str], Growth]) -> str | None:
        """Return the requested node that comes next. A node that takes no further idea loses its
        request; one with an outcome that no choice may know yet waits."""
        while self._next and state(self._next[0][0]) == "never":
            self._next.popleft()
        if self._next and state(self._next[0][0]) == "grows":
            return self._next[0][0]
        return None

    def use(self, node_id: str) -> None:
        """Count a choice of this node against its request."""
        for place, (name, times) in enumerate(self._next):
            if name == node_id:
                self._next[place] = (name, times - 1)
                if times == 1:
                    del self._next[place]
                return


def growth(tree: Tree, number: int) -> Growth:
    """Return whether the node of a choice can take another child, as far as the tree knows."""
    branch = tree.branches[number]
    if branch.status is Status.PENDING or number in tree.suspended:
        return "later"
    return "grows" if tree.can_grow(branch) else "never"


def choose_next_idea(
    node: Node, tried: Collection[str], by_hand: Sequence[str], banned: Collection[str]
) -> IdeaRecord | None:
    """Return the idea of a node that is tried next: the user's first, none that is banned."""
    there = {idea.path: idea for idea in node.ideas if idea.path not in (*tried, *banned)}
    own = [there[path] for path in by_hand if path in there]
    return next(iter([*own, *there.values()]), None)


def choice_number(eval_id: str) -> int:
    """Return the number of the choice that an evaluation is."""
    return int(eval_id.removeprefix("e"))


def counter(value: object) -> int:
    """Return a counter of the records; 0 where the record has none."""
    return value if isinstance(value, int) else 0


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
        """Return the state before the first choice."""
        root = next(node for node in manifest.nodes.values() if node.parent_node_id is None)
        sequencer = Sequencer(
            # The root's value is 0, because values are scores relative to the root.
            Tree(SearchNode(0, None, score=0.0), branching=policy_record.branching),
            policies.make(policy_record.policy, policy_record.options),
            manifest.seed,
            policy_record.order,
            policy_record.lookahead,
        )
        confirms = bool(manifest.confirm_configs)
        return cls(sequencer, max_depth, confirms, KnownCode.of([root]), {0: root.node_id})

    def needs_confirmation(self, evaluation: Evaluation) -> bool:
        """Return whether a candidate is swept on the held-out configs: it passes the gate, and its
        choice could not know that the same code was a node. So the answer does not depend on
        timing."""
        if (
            not self.confirms
            or not promotion.decide_gate(evaluation.parent_relative, evaluation.error).passed
        ):
            return False
        became = self.known.became(evaluation)
        return became is None or became > counter(evaluation.seen)

    def decide(self, evaluation: Evaluation) -> Decision:
        """Return the decision about an evaluation; a promoted one has no node yet."""
        passed = promotion.decide_gate(evaluation.parent_relative, evaluation.error)
        fate: Fate = "promoted"
        if evaluation.error is not None:
            fate = "evaluation_failed"
        elif not passed.passed:
            fate = "gate_failed"
        elif (twin := self.known.twin(evaluation)) is not None:
            fate = twin
        elif evaluation.confirmation is not None and not evaluation.confirmation.held:
            fate = "not_confirmed"
        return Decision(fate=fate, gate=passed)

    def settle(self, evaluation: Evaluation, decision: Decision) -> None:
        """Add a decided evaluation as the next outcome."""
        self.settled += 1
        number = choice_number(evaluation.eval_id)
        if decision.promoted_to_node_id is not None:
            self.nodes[number] = decision.promoted_to_node_id
            self.known.add(evaluation, self.settled)
        found, outcome = evaluation.root_relative, Outcome(None)
        is_complete = found is not None and found.rows_used == found.rows_expected
        if evaluation.error is None and found is not None and is_complete:
            above = self.sequencer.tree.branches[number].parent
            parent = above.node if above is not None else None
            node = SearchNode(number, parent, score=found.score, value=found.score)
            grows = decision.fate == "promoted" and evaluation.depth < self.max_depth
            outcome = Outcome(node, expandable=grows)
        self.sequencer.tell(number, outcome)


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
    decided = (e for e in evaluations if e.decision is not None)
    settled = sorted(decided, key=lambda evaluation: counter(evaluation.place))
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


def stop_reason(manifest: Manifest, policy_record: PolicyRecord) -> StopReason:
    """Return why a search ends in which no further choice is possible."""
    if Budget(manifest.max_total_idea_evals).evals_left(manifest.spent) == 0:
        return "max_total_idea_evals"
    if exhausted_nodes(manifest, policy_record):
        return "no_new_ideas"
    if manifest.current_depth >= manifest.max_depth:
        return "max_depth_reached"
    return "empty_frontier"
