"""A search without a barrier made again: every choice, every fate, every node, the stop reason.

The policy is asked for each choice with what that choice knew, on a tree that is built from the
recomputed evaluations; in `fixed` order what it knew is computed as well. In `live` order the
recorded order of the outcomes is taken as it is: nobody can say when they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.search.policies import Choice
from treewright.tree.deciding import left_over
from treewright.tree.deciding.steady import (
    Standing,
    count,
    exhausted_now,
    number_of,
    rebuild,
)
from treewright.tree.deciding.steered import Turns, growth, next_idea
from treewright.tree.ideas.expansion import ancestors
from treewright.tree.records.model import (
    UNSET,
    Decision,
    Evaluation,
    Exhausted,
    Manifest,
    Node,
    SteadySearch,
    StopReason,
    Unset,
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
    manifest: Manifest, steady: SteadySearch, evaluations: dict[str, Evaluation]
) -> Iterator[Finding]:
    """Stops at the first choice that differs: what follows it would differ too."""
    try:
        walk = _Walk(manifest, steady, list(evaluations.values()))
    except TreewrightError as error:
        yield Finding("policy_unknown", "run", str(error))
        return
    try:
        yield from walk.run()
    except (ValueError, KeyError, IndexError) as error:
        yield Finding("choice_differs", "run", f"the records do not fit together: {error}")


@dataclass(slots=True)
class _Walk:
    manifest: Manifest
    steady: SteadySearch
    evaluations: list[Evaluation]
    _standing: Standing = field(init=False)
    _settled: list[Evaluation] = field(init=False)
    _exhausted: list[Exhausted] = field(init=False)
    _changes: list[Steering] = field(init=False)
    _tried: dict[str, set[str]] = field(default_factory=dict)
    _turns: Turns = field(default_factory=Turns)
    _applied: list[Steering] = field(default_factory=list)
    _count: int = 1
    _is_fixed: bool = field(init=False)

    def __post_init__(self) -> None:
        self._changes = applied(self.manifest.steering)
        first = undo({"max_depth": self.manifest.max_depth}, self._changes)["max_depth"]
        self._standing = Standing.beginning(self.manifest, self.steady, first)
        decided = [e for e in self.evaluations if e.decision is not None]
        self._settled = sorted(decided, key=lambda e: count(e.place))
        self._exhausted = list(self.steady.exhausted)
        self._is_fixed = self.steady.order == "fixed"

    def run(self) -> Iterator[Finding]:
        yield from self._order()
        for number, evaluation in enumerate(self.evaluations, start=1):
            yield from self._change(number)
            yield from self._exhaust_recorded(number)
            yield from self._settle_up_to(count(evaluation.seen))
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

    def _order(self) -> Iterator[Finding]:
        places = [count(e.place) for e in self._settled]
        expected = list(range(1, len(places) + 1))
        if self._is_fixed:
            expected = [number_of(e.eval_id) for e in self._settled]
        if places != expected or self.steady.settled != len(places):
            message = "the places of the outcomes are not those of their order"
            yield Finding("choice_differs", "run", message)

    def _settle_up_to(self, seen: int) -> Iterator[Finding]:
        while self._standing.settled < min(seen, len(self._settled)):
            evaluation = self._settled[self._standing.settled]
            decision = self._decide(evaluation)
            yield from compare_decisions([evaluation], {evaluation.eval_id: decision})
            needed = self._standing.needs_confirmation(evaluation)
            name, measured = evaluation.eval_id, evaluation.confirmation is not None
            if needed and not measured:
                message = "it had to be swept on held-out configs before it was settled"
                yield Finding("confirmation_missing", name, message)
            elif measured and not needed:
                message = "it was swept on held-out configs, which nothing asked for"
                yield Finding("confirmation_needless", name, message)
            self._standing.settle(evaluation, decision)

    def _decide(self, evaluation: Evaluation) -> Decision:
        decision = self._standing.decide(evaluation)
        if decision.fate != "promoted":
            return decision
        node_id = f"n{self._count:04d}"
        self._count += 1
        return msgspec.structs.replace(decision, promoted_to_node_id=node_id)

    def _choose(self, number: int, evaluation: Evaluation) -> str | None:
        """Makes a choice again; what is wrong with the recorded one, if anything."""
        sequencer = self._standing.sequencer
        with sequencer.tree.without(self._waiting_for_ideas(evaluation)):
            choice = self._propose(number)
        if choice is None:
            return f"the {self.steady.policy} policy would have waited or ended here"
        made = (self._standing.nodes[choice.parent], sequencer.seen)
        recorded = (evaluation.parent_node_id, evaluation.seen)
        if made != recorded:
            return (
                f"the {self.steady.policy} policy chooses (node, outcomes known) {made}, "
                f"recorded is {recorded}"
            )
        sequencer.tree.reserve(*choice)
        self._turns.take(evaluation.parent_node_id)
        return None

    def _waiting_for_ideas(self, evaluation: Evaluation) -> list[int]:
        """Nodes that could not be chosen then. In `fixed` order there are none."""
        if isinstance(evaluation.without, Unset):
            return []
        if self._is_fixed:
            raise ValueError(f"{evaluation.eval_id} was chosen without some nodes")
        for node_id in evaluation.without:
            if not self._applied and self._has_ideas(node_id):
                raise ValueError(f"{evaluation.eval_id}: {node_id} had ideas and was passed over")
        branches = {node_id: number for number, node_id in self._standing.nodes.items()}
        return [branches[node_id] for node_id in evaluation.without]

    def _has_ideas(self, node_id: str) -> bool:
        """Whether it has an idea that came together with one which was tried by then."""
        ideas, tried = self.manifest.nodes[node_id].ideas, self._tried.get(node_id, set())
        begun = {idea.expansion for idea in ideas if idea.path in tried}
        return any(idea.expansion in begun for idea in ideas if idea.path not in tried)

    def _propose(self, number: int, before: Steering | None = None) -> Choice | None:
        """What the policy says; where it was found that there are no ideas there (`before` a
        change), what it says when it knows that."""
        sequencer = self._standing.sequencer
        while (choice := self._next()) is not None:
            found = Exhausted(self._standing.nodes[choice.parent], number, sequencer.seen)
            if self._exhausted[:1] != [found] or not self._is_next(before):
                break
            self._exhaust_next()
        return choice

    def _next(self) -> Choice | None:
        """The policy's choice, or that of somebody who said whose turn it is."""
        sequencer = self._standing.sequencer
        choice = sequencer.propose()
        branches = {node_id: number for number, node_id in self._standing.nodes.items()}
        wanted = self._turns.whose(
            lambda node_id: (
                growth(sequencer.tree, branches[node_id]) if node_id in branches else "later"
            )
        )
        return choice if choice is None or wanted is None else Choice(branches[wanted])

    def _exhaust_recorded(self, number: int, before: Steering | None = None) -> Iterator[Finding]:
        """In `live` order more may be known when ideas were found to be missing than when they
        were asked for, so that the policy would have chosen otherwise by then."""
        while not self._is_fixed and self._is_next(before) and self._exhausted[0].choice <= number:
            yield from self._settle_up_to(self._exhausted[0].seen)
            self._exhaust_next()

    def _is_next(self, before: Steering | None) -> bool:
        """Whether there are more nodes that were found to have no ideas, `before` a change."""
        known = len(self.steady.exhausted) - len(self._exhausted)
        return bool(self._exhausted) and (before is None or known < before.exhausted)

    def _exhaust_next(self) -> None:
        found = self._exhausted.pop(0)
        branches = {node_id: number for number, node_id in self._standing.nodes.items()}
        self._standing.sequencer.exhaust(branches[found.node_id])

    def _change(self, number: int) -> Iterator[Finding]:
        """What somebody changed before that choice: from there on the search is the one that
        the records up to there make under the new rules."""
        while self._changes and self._changes[0].evaluations < number:
            change = self._changes.pop(0)
            yield from self._settle_up_to(change.settled)
            if self._is_next(change):
                yield from self._exhaust_recorded(number, change)
                self._propose(number, change)
            self._standing = rebuild(self.manifest, self.steady, self.evaluations, change)
            self._turns.add(change)
            self._applied.append(change)

    def _idea(self, evaluation: Evaluation) -> Iterator[Finding]:
        """A choice tries the next idea of its node."""
        node = self.manifest.nodes[evaluation.parent_node_id]
        tried = self._tried.setdefault(node.node_id, set())
        later = {*injected(self._changes), *banned_ideas(self._applied)}
        idea = next_idea(node, tried, injected(self._applied), later)
        yield from self._left_over(evaluation, node)
        tried.add(evaluation.idea_path)
        if idea is None or idea.path != evaluation.idea_path:
            message = f"{evaluation.idea_path} is not the next idea of {node.node_id}"
            yield Finding("queue_differs", evaluation.eval_id, message)

    def _left_over(self, evaluation: Evaluation, node: Node) -> Iterator[Finding]:
        """In `fixed` order the ideas of an expansion begin with those that the ancestors had not
        got to by the first choice that uses it. A run that was steered may have banned some."""
        idea = next((i for i in node.ideas if i.path == evaluation.idea_path), None)
        if idea is None or not isinstance(idea.expansion, int) or applied(self.manifest.steering):
            return
        chosen = [each for each in node.ideas if each.expansion == idea.expansion]
        if not self._is_fixed or chosen[0] != idea:
            return
        tried = set().union(*self._tried.values())
        lineage = list(ancestors(self.manifest, node))
        expected = left_over.without_barrier(self.manifest, lineage, idea.expansion, tried)
        yield from compare_left_over(evaluation.eval_id, node.node_id, chosen, expected)

    def _stop(self) -> Iterator[Finding]:
        """A search stops when the budget is used up, or when nothing can be chosen any more."""
        recorded = self.manifest.stop_reason
        if recorded == "stopped" and is_stopped(applied(self.manifest.steering)):
            return
        if recorded == "cap_reached" and self.manifest.caps is not UNSET:
            return
        again = self._stop_reason()
        undecided = len(self._settled) < len(self.evaluations)
        if recorded is not None and (recorded != again or undecided):
            message = f"it is {recorded}, the choices give {again}"
            yield Finding("stop_reason_differs", "run", message)

    def _stop_reason(self) -> StopReason | None:
        """Written out again on purpose: a check that calls what it checks finds nothing."""
        manifest = self.manifest
        if len(self.evaluations) == manifest.max_total_idea_evals:
            return "max_total_idea_evals"
        if self._propose(len(self.evaluations) + 1) is not None:
            return None
        if exhausted_now(self.manifest, self.steady):
            return "no_new_ideas"
        deepest = max(node.depth for node in manifest.nodes.values())
        return "max_depth_reached" if deepest == manifest.max_depth else "empty_frontier"
