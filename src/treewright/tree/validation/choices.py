"""A search by policy, repeated: every choice, fate and node, and the stop reason.

The policy is asked for every choice with the outcomes that the choice knew, on a tree built from
the recomputed evaluations. In `fixed` order the number of known outcomes is computed as well. In
`live` order the recorded order of the outcomes is used, because it depends on time.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.search.policies import Choice
from treewright.tree.deciding import leftovers
from treewright.tree.deciding.policy_state import (
    NodeRequests,
    PolicyState,
    choice_number,
    choose_next_idea,
    counter,
    growth,
    rebuild_state,
    stop_reason,
)
from treewright.tree.records.model import (
    UNSET,
    Evaluation,
    Exhausted,
    Manifest,
    Node,
    PolicyRecord,
    StopReason,
    Unset,
    ancestors,
)
from treewright.tree.records.steering import (
    Steering,
    applied,
    banned_ideas,
    injected,
    is_stopped,
    undo,
)
from treewright.tree.validation.decisions import compare_decisions, compare_left_over
from treewright.tree.validation.findings import Finding


def choose_again(
    manifest: Manifest, policy_record: PolicyRecord, evaluations: dict[str, Evaluation]
) -> Iterator[Finding]:
    """Yield the findings of a repeated search; stop at the first choice that differs, because all
    later ones would differ too."""
    try:
        walk = _Walk(manifest, policy_record, list(evaluations.values()))
    except TreewrightError as error:
        yield Finding("policy_unknown", "run", str(error))
        return
    try:
        yield from walk.run()
    except (ValueError, KeyError, IndexError) as error:
        yield Finding("choice_differs", "run", f"the records do not fit together: {error}")


class _Walk:
    """The repeated search, up to one of its choices."""

    def __init__(
        self, manifest: Manifest, policy_record: PolicyRecord, evaluations: list[Evaluation]
    ) -> None:
        self.manifest = manifest
        self.policy_record = policy_record
        self.evaluations = evaluations
        self._changes = applied(manifest.steering)
        first = undo({"max_depth": manifest.max_depth}, self._changes)["max_depth"]
        self._state = PolicyState.beginning(manifest, policy_record, first)
        decided = [e for e in evaluations if e.decision is not None]
        self._settled = sorted(decided, key=lambda e: counter(e.place))
        self._exhausted = list(policy_record.exhausted)
        self._is_fixed = policy_record.order == "fixed"
        self._tried: dict[str, set[str]] = {}
        self._requests = NodeRequests()
        self._applied: list[Steering] = []
        self._count = 1

    @property
    def _branches(self) -> dict[str, int]:
        return {node_id: number for number, node_id in self._state.nodes.items()}

    def run(self) -> Iterator[Finding]:
        places = [counter(e.place) for e in self._settled]
        expected = list(range(1, len(places) + 1))
        if self._is_fixed:
            expected = [choice_number(e.eval_id) for e in self._settled]
        if places != expected or self.policy_record.settled != len(places):
            message = "the places of the outcomes are not those of their order"
            yield Finding("choice_differs", "run", message)
        for number, evaluation in enumerate(self.evaluations, start=1):
            yield from self._change(number)
            yield from self._exhaust_recorded(number)
            yield from self._settle_up_to(counter(evaluation.seen))
            problem = self._choose(number, evaluation)
            if problem is not None:
                yield Finding("choice_differs", evaluation.eval_id, problem)
                return
            yield from self._idea(evaluation)
        yield from self._change(len(self.evaluations) + 1)
        yield from self._exhaust_recorded(len(self.evaluations) + 1)
        yield from self._settle_up_to(len(self._settled))
        yield from self._stop()
        for found in self._exhausted:
            message = f"{found.node_id} is recorded as without ideas, which no choice found"
            yield Finding("choice_differs", "run", message)

    def _settle_up_to(self, seen: int) -> Iterator[Finding]:
        while self._state.settled < min(seen, len(self._settled)):
            evaluation = self._settled[self._state.settled]
            decision = self._state.decide(evaluation)
            if decision.fate == "promoted":
                node_id = f"n{self._count:04d}"
                decision = msgspec.structs.replace(decision, promoted_to_node_id=node_id)
                self._count += 1
            yield from compare_decisions([evaluation], {evaluation.eval_id: decision})
            needed = self._state.needs_confirmation(evaluation)
            name, measured = evaluation.eval_id, evaluation.confirmation is not None
            if needed and not measured:
                message = "it had to be swept on held-out configs before it was settled"
                yield Finding("confirmation_missing", name, message)
            elif measured and not needed:
                message = "it was swept on held-out configs, which nothing asked for"
                yield Finding("confirmation_needless", name, message)
            self._state.settle(evaluation, decision)

    def _choose(self, number: int, evaluation: Evaluation) -> str | None:
        """Repeat a choice; return how the recorded one differs, if it does."""
        sequencer = self._state.sequencer
        with sequencer.tree.without(self._waiting_for_ideas(evaluation)):
            choice = self._propose(number)
        if choice is None:
            return f"the {self.policy_record.policy} policy would have waited or ended here"
        made = (self._state.nodes[choice.parent], sequencer.seen)
        recorded = (evaluation.parent_node_id, evaluation.seen)
        if made != recorded:
            return (
                f"the {self.policy_record.policy} policy chooses (node, outcomes known) {made}, "
                f"recorded is {recorded}"
            )
        sequencer.tree.reserve(*choice)
        self._requests.use(evaluation.parent_node_id)
        return None

    def _waiting_for_ideas(self, evaluation: Evaluation) -> list[int]:
        """Return the nodes that could not be chosen at that moment. In `fixed` order there are
        none."""
        if isinstance(evaluation.without, Unset):
            return []
        if self._is_fixed:
            raise ValueError(f"{evaluation.eval_id} was chosen without some nodes")
        for node_id in evaluation.without:
            if not self._applied and self._has_ideas(node_id):
                raise ValueError(f"{evaluation.eval_id}: {node_id} had ideas and was passed over")
        branches = self._branches
        return [branches[node_id] for node_id in evaluation.without]

    def _has_ideas(self, node_id: str) -> bool:
        """Return whether the node has an untried idea from an expansion of which one idea was
        tried."""
        ideas, tried = self.manifest.nodes[node_id].ideas, self._tried.get(node_id, set())
        begun = {idea.expansion for idea in ideas if idea.path in tried}
        return any(idea.expansion in begun for idea in ideas if idea.path not in tried)

    def _propose(self, number: int, before: Steering | None = None) -> Choice | None:
        """Return the policy's choice, after the nodes that were found without ideas at this place.
        `before` is a change that comes after these nodes."""
        sequencer = self._state.sequencer
        while (choice := self._next()) is not None:
            found = Exhausted(self._state.nodes[choice.parent], number, sequencer.seen)
            if self._exhausted[:1] != [found] or not self._is_next(before):
                break
            self._exhaust_next()
        return choice

    def _next(self) -> Choice | None:
        """Return the next choice: a node that the user asked for, or the policy's."""
        sequencer = self._state.sequencer
        choice = sequencer.propose()
        branches = self._branches
        wanted = self._requests.next_node(
            lambda node_id: (
                growth(sequencer.tree, branches[node_id]) if node_id in branches else "later"
            )
        )
        return choice if choice is None or wanted is None else Choice(branches[wanted])

    def _exhaust_recorded(self, number: int, before: Steering | None = None) -> Iterator[Finding]:
        """Repeat the recorded nodes without ideas. In `live` order more outcomes may be known when
        ideas turn out to be missing than when they were asked for, so the policy is not asked
        here."""
        while not self._is_fixed and self._is_next(before) and self._exhausted[0].choice <= number:
            yield from self._settle_up_to(self._exhausted[0].seen)
            self._exhaust_next()

    def _is_next(self, before: Steering | None) -> bool:
        """Return whether another node was found without ideas, `before` a change."""
        known = len(self.policy_record.exhausted) - len(self._exhausted)
        return bool(self._exhausted) and (before is None or known < before.exhausted)

    def _exhaust_next(self) -> None:
        found = self._exhausted.pop(0)
        self._state.sequencer.exhaust(self._branches[found.node_id])

    def _change(self, number: int) -> Iterator[Finding]:
        """Apply the changes of the user before that choice: from there on the search is the one
        that the records give under the new settings."""
        while self._changes and self._changes[0].evaluations < number:
            change = self._changes.pop(0)
            yield from self._settle_up_to(change.settled)
            if self._is_next(change):
                yield from self._exhaust_recorded(number, change)
                self._propose(number, change)
            self._state = rebuild_state(self.manifest, self.policy_record, self.evaluations, change)
            self._requests.add(change)
            self._applied.append(change)

    def _idea(self, evaluation: Evaluation) -> Iterator[Finding]:
        """Check that a choice tries the next idea of its node."""
        node = self.manifest.nodes[evaluation.parent_node_id]
        tried = self._tried.setdefault(node.node_id, set())
        later = {*injected(self._changes), *banned_ideas(self._applied)}
        idea = choose_next_idea(node, tried, injected(self._applied), later)
        yield from self._left_over(evaluation, node)
        tried.add(evaluation.idea_path)
        if idea is None or idea.path != evaluation.idea_path:
            message = f"{evaluation.idea_path} is not the next idea of {node.node_id}"
            yield Finding("queue_differs", evaluation.eval_id, message)

    def _left_over(self, evaluation: Evaluation, node: Node) -> Iterator[Finding]:
        """Check that, in `fixed` order, the ideas of an expansion begin with the leftovers of the
        ancestors at the first choice that uses it. A steered run may have banned some."""
        idea = next((i for i in node.ideas if i.path == evaluation.idea_path), None)
        if idea is None or not isinstance(idea.expansion, int) or applied(self.manifest.steering):
            return
        chosen = [each for each in node.ideas if each.expansion == idea.expansion]
        if not self._is_fixed or chosen[0] != idea:
            return
        tried = set().union(*self._tried.values())
        lineage = ancestors(self.manifest, node)
        expected = leftovers.for_expansion(self.manifest, lineage, idea.expansion, tried)
        yield from compare_left_over(evaluation.eval_id, node.node_id, chosen, expected)

    def _stop(self) -> Iterator[Finding]:
        """Check that the search stopped because of the budget or because no choice was possible."""
        recorded = self.manifest.stop_reason
        if recorded == "stopped" and is_stopped(applied(self.manifest.steering)):
            return
        if recorded == "cap_reached" and self.manifest.caps is not UNSET:
            return
        ends: StopReason | None = stop_reason(self.manifest, self.policy_record)
        if ends != "max_total_idea_evals" and self._propose(len(self.evaluations) + 1) is not None:
            ends = None
        undecided = len(self._settled) < len(self.evaluations)
        if recorded is not None and (recorded != ends or undecided):
            message = f"it is {recorded}, the choices give {ends}"
            yield Finding("stop_reason_differs", "run", message)
