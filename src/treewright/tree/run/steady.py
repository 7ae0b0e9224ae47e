"""A search without a barrier: whenever a worker is free, one more idea under one node.

choose a node -> (its ideas are used up: generate more) -> queue -> evaluate -> confirm -> settle

The policy chooses; the sequencer says what it may know. Which choices can be made now, and when an
outcome counts, is what `fixed_order` and `live_order` add. Held-out sweeps run where evaluations
run, and ideas are generated beside them, so nobody waits for anybody who need not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError
from treewright.search.policies import Choice
from treewright.tree.deciding import left_over
from treewright.tree.deciding.promotion import new_node
from treewright.tree.deciding.steady import Standing, count, number_of, rebuild, stop_reason
from treewright.tree.deciding.steered import Turns, growth, next_idea
from treewright.tree.evaluating.heldout import HeldoutOutcome
from treewright.tree.guard.baselines import baselines
from treewright.tree.ideas.expansion import ancestors
from treewright.tree.records import events as ev
from treewright.tree.records.model import (
    UNSET,
    Evaluation,
    Exhausted,
    IdeaRecord,
    Node,
    SteadySearch,
    Unset,
)
from treewright.tree.records.steering import Command, applied, banned_ideas, injected
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.run.creation import ROOT_NODE
from treewright.tree.run.generating import Generation, depends, no_ideas
from treewright.tree.run.planning import Planned, Plans
from treewright.tree.run.requests import queued
from treewright.tree.run.steering import AT_ONCE

_RECENT = 32
QUICK_SECONDS = 0.05
"""Ideas that come within this time are waited for; for later ones nobody is."""


@dataclass(slots=True)
class SteadyCoordinator(Coordinator):
    """Advances a run until nothing is left to do."""

    _standing: Standing = field(init=False)
    _turns: Turns = field(default_factory=Turns, init=False)
    _undecided: dict[str, None] = field(default_factory=dict, init=False)
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT), init=False)
    _plans: Plans = field(default_factory=Plans, init=False)
    _no_ideas: BaseException | None = field(default=None, init=False)

    @property
    def _steady(self) -> SteadySearch:
        steady = self.manifest.steady
        assert steady is not None
        return steady

    def _go_on(self) -> None:
        self._standing = rebuild(self.manifest, self._steady)
        self._turns = Turns.of(self.manifest)
        self._plans.owe(self._expander.owed(self.manifest))
        open_ones = [e for e in self.manifest.evaluations.values() if e.decision is None]
        self._undecided = dict.fromkeys(e.eval_id for e in open_ones)
        self._requests.keep_ideas(open_ones)
        to_measure = [
            name
            for e in open_ones
            if e.status in ("completed", "failed")
            for name in self._settle_or_measure(e)
        ]
        try:
            self._dispatch([e.eval_id for e in open_ones if e.status == "pending"], to_measure)
        finally:
            self._plans.wait()
            self._plans.forget()
            self._plans.clean_up(self._expander, self.manifest)
        if self._no_ideas is not None:
            raise self._no_ideas
        if self._undecided or not (self._budget_is_used_up() or self._standing.sequencer.is_over):
            raise StorageError("the search has more to do, and nothing to do it with")
        self.store.record(ev.Stopped(reason=stop_reason(self.manifest, self._steady)))
        self.store.snapshot()

    def _may_apply(self, command: Command) -> bool:
        is_planning = self._plans or self._plans.is_generating
        return command.action in AT_ONCE or not is_planning

    def _changed(self, event: ev.Steered) -> None:
        if event.record.command.action in AT_ONCE:
            return  # nor must it: a choice may be planned that knows more than what is recorded
        self._standing = rebuild(self.manifest, self._steady)
        self._turns.add(event.record)

    # -- choosing -------------------------------------------------------------------------

    def _propose(self, without: Sequence[str] = ()) -> Choice | None:
        """What the policy chooses, or the node whose turn it is by somebody's word; `without` the
        nodes that cannot have an idea yet."""
        sequencer = self._standing.sequencer
        tree = sequencer.tree
        with tree.without([self._branch(node_id) for node_id in without]):
            choice = sequencer.propose()
            wanted = self._turns.whose(lambda node_id: growth(tree, self._branch(node_id)))
        if choice is None or wanted is None:
            return choice
        return Choice(self._branch(wanted))

    def _branch(self, node_id: str) -> int:
        """The number of the choice that a node came from."""
        source = self.manifest.nodes[node_id].artifacts.promoted_from_eval_id
        return number_of(source) if source is not None else 0

    def _next_idea(self, node: Node, after: int = 0) -> IdeaRecord | None:
        """The idea that is tried next on a node, or so many after that one."""
        records = applied(self.manifest.steering)
        if not records:
            place = count(node.tried) + after
            return node.ideas[place] if place < len(node.ideas) else None
        evaluations = self.manifest.evaluations.values()
        of_node = {e.idea_path for e in evaluations if e.parent_node_id == node.node_id}
        return next_idea(node, of_node, injected(records), banned_ideas(records))

    def _budget_is_used_up(self) -> bool:
        budget = Budget(self.manifest.max_total_idea_evals)
        return budget.evals_left(self.manifest.spent, len(self._plans)) == 0

    def _exhaust(self, event: ev.NodeExpanded) -> None:
        """Records that a node has no ideas. Where its sources failed and no other node could be
        chosen, the run pauses instead, when what is under way is done."""
        sequencer = self._standing.sequencer
        if event.failures:
            tree, without = sequencer.tree, self._branch(event.node_id)
            if not any(tree.can_grow(b) for b in tree.branches if b.number != without):
                self._no_ideas = no_ideas(event)
                return
        event.exhausted = Exhausted(event.node_id, sequencer.made + 1, sequencer.seen)
        self._record_ideas(event)
        sequencer.exhaust(self._branch(event.node_id))

    def _record_ideas(self, event: ev.NodeExpanded) -> None:
        self._plans.add_owed(self._expander, self.manifest, event)
        self.store.record(event)
        self._plans.settle_owed(self._expander, self.manifest)

    def _generate(self, choice: Choice, node: Node) -> Planned | None:
        """Has ideas for a node thought of; None if that has to wait."""
        sequencer, under_way = self._standing.sequencer, self._plans.under_way()
        if len(under_way) >= self._generations_at_once() or self._plans.has_dropped:
            return None
        if depends(self.manifest, node, under_way):
            return None
        number = self._steady.expansions + 1 + len(under_way)
        generation = Generation(
            self._expander,
            self.manifest,
            node,
            depth=node.depth + 1,
            most=self.manifest.ideas_per_node,
            number=number,
            seen=sequencer.seen,
            left_over=self._left_over(node, number),
        )
        return Planned(sequencer.made + 1, sequencer.seen, choice, node.node_id, generation)

    def _left_over(self, node: Node, number: int) -> list[IdeaRecord]:
        """Ideas that the node's ancestors have not got to by this choice, planned ones included."""
        manifest, lineage = self.manifest, list(ancestors(self.manifest, node))
        tried = {e.idea_path for e in manifest.evaluations.values()}
        for each in lineage[1:]:
            planned = (self._next_idea(each, n) for n in range(len(self._plans.of(each.node_id))))
            tried |= {idea.path for idea in planned if idea is not None}
        return left_over.without_barrier(manifest, lineage, number, tried)

    def _queue(self, planned: Planned, idea: IdeaRecord, without: list[str] | Unset = UNSET) -> str:
        """A choice with its idea becomes the evaluation of the next number."""
        node = self.manifest.nodes[planned.node_id]
        event = queued(planned.number, node, idea, node.depth + 1)
        event.seen, event.without = planned.seen, without
        self.store.record(event)
        evaluation = self.manifest.evaluations[event.eval_id]
        self._undecided[event.eval_id] = None
        self._deciding.load_nodes([node])
        self._requests.keep_idea(evaluation)
        if not planned.is_reserved:
            self._standing.sequencer.tree.reserve(*planned.choice)
        self._turns.take(node.node_id)
        return event.eval_id

    def _may_choose(self) -> bool:
        """What somebody wants changed comes before further choices."""
        stops = self._no_ideas is not None or self.cancel.is_set() or self._budget_is_used_up()
        return not (stops or self._inbox.waiting())

    def is_preparing(self) -> bool:
        return self._plans.is_generating or bool(self._inbox.waiting())

    # -- settling -------------------------------------------------------------------------

    def finished(self, eval_id: str) -> Sequence[str]:
        Coordinator.finished(self, eval_id)
        self._recent.append(eval_id)
        return self._settle_or_measure(self.manifest.evaluations[eval_id])

    def measured(self, eval_id: str, outcome: HeldoutOutcome) -> None:
        evaluation = self.manifest.evaluations[eval_id]
        self.store.record(self._confirmer.judge(self.manifest, evaluation, outcome))
        self._settle_or_measure(evaluation)

    def _settle_or_measure(self, evaluation: Evaluation) -> Sequence[str]:
        """What has its outcome is settled when its turn has come, or swept once more first."""
        if evaluation.confirmation is None and self._standing.needs_confirmation(evaluation):
            return (evaluation.eval_id,)
        self._settle_ready(evaluation)
        return ()

    @abstractmethod
    def _settle_ready(self, evaluation: Evaluation) -> None:
        """Settles what has its outcome, if its turn has come, and those that waited for it."""

    def _settle(self, evaluation: Evaluation) -> None:
        decision = self._standing.decide(evaluation)
        node = None
        if decision.fate == "promoted":
            manifest = self.manifest
            node = new_node(manifest, evaluation, len(manifest.nodes), timestamp())
            decision = msgspec.structs.replace(decision, promoted_to_node_id=node.node_id)
        self.store.record(
            ev.Settled(
                eval_id=evaluation.eval_id,
                decision=decision,
                node=node,
                rejected_worktrees_kept=self.retention.rejected_worktrees,
            )
        )
        del self._undecided[evaluation.eval_id]
        self._requests.forget_idea(evaluation)
        self._let_go(evaluation, node)
        self._promote_and_prune([node] if node is not None else [], [evaluation])
        self._standing.settle(evaluation, decision)

    def _hold(self) -> None:
        """Of nodes the root, and those with something under way; the others have copies."""
        manifest = self.manifest
        open_ones = [e for e in manifest.evaluations.values() if e.decision is None]
        names = {ROOT_NODE, *(e.parent_node_id for e in open_ones)}
        self._deciding.load_nodes(manifest.nodes[name] for name in sorted(names))
        for evaluation in open_ones:
            if evaluation.results_csv is not None:
                self._deciding.keep_in_memory(self._deciding.read(evaluation.results_csv))

    def _let_go(self, evaluation: Evaluation, node: Node | None) -> None:
        """Of what is settled only copies are kept, so that the rest stays as small as what is
        under way."""
        if node is not None:
            self._deciding.load_nodes([node])
            self._deciding.drop(baselines([node]))
        elif evaluation.results_csv is not None:
            self._deciding.drop([evaluation.results_csv])
        parent = evaluation.parent_node_id
        others = (self.manifest.evaluations[name].parent_node_id for name in self._undecided)
        if parent != ROOT_NODE and parent not in others:
            self._deciding.drop(baselines([self.manifest.nodes[parent]]))

    # -- what the dispatcher asks beside work ---------------------------------------------

    def peers(self) -> Iterator[Evaluation]:
        """What is under way, and what was finished last."""
        evaluations = self.manifest.evaluations
        yield from (evaluations[name] for name in self._recent)
        yield from (evaluations[name] for name in self._undecided)

    def where(self) -> str:
        return f"after {self._steady.settled} of {len(self.manifest.evaluations)} evaluations"
