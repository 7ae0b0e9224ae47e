"""Search by a policy: whenever a worker is free, one more idea is tried on one node.

    choose a node -> (no idea left: generate) -> queue -> evaluate -> confirm -> settle

The policy chooses a node; the sequencer says which outcomes it may know. `FixedOrder` gives the
same choices in any timing, `LiveOrder` lets every choice know all outcomes. Ideas are
generated and held-out sweeps run while evaluations run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError
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
from treewright.tree.deciding.promotion import new_node
from treewright.tree.evaluating.request import HeldoutOutcome
from treewright.tree.guard.baselines import baselines
from treewright.tree.records import events as ev
from treewright.tree.records.model import (
    UNSET,
    Evaluation,
    Exhausted,
    IdeaRecord,
    Node,
    PolicyRecord,
    Unset,
    ancestors,
)
from treewright.tree.records.steering import Command, applied, banned_ideas, injected
from treewright.tree.run.command_effects import CONTROL_ACTIONS
from treewright.tree.run.creation import ROOT_NODE
from treewright.tree.run.ideas_ahead import (
    Generation,
    PlannedChoice,
    Plans,
    depends_on,
    missing_ideas,
)
from treewright.tree.run.requests import queued
from treewright.tree.run.tree_search import TreeSearch, Work

_RECENT_OUTCOMES = 32
_MAX_WAITING_NODES = 32
"""With more nodes than this waiting for ideas, the `live` order chooses none until some arrive."""
QUICK_SECONDS = 0.05
"""The search waits this long for ideas before it does other work."""


@dataclass(slots=True)
class PolicySearch(TreeSearch):
    """Advances a run until it is over."""

    has_barrier: ClassVar[bool] = False
    _state: PolicyState = field(init=False)
    _node_requests: NodeRequests = field(default_factory=NodeRequests, init=False)
    """The nodes that the user asked for with `boost` or `inject`."""
    _undecided: dict[str, None] = field(default_factory=dict, init=False)
    """Evaluations without a recorded fate, in the order of choosing."""
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT_OUTCOMES), init=False)
    """The last evaluations that ended, with which a failure is compared."""
    _plans: Plans = field(default_factory=Plans, init=False)
    _ideas_error: BaseException | None = field(default=None, init=False)
    """Why no further idea can be had; raised once the evaluations under way have ended."""

    @property
    def _settings(self) -> PolicyRecord:
        settings = self.manifest.policy_record
        assert settings is not None
        return settings

    def begin(self, checkpoint: Callable[[], None]) -> Work:
        self._state = rebuild_state(self.manifest, self._settings)
        self._node_requests = NodeRequests.of(self.manifest)
        self._plans.add_unrecorded(self.parts.expander.owed(self.manifest))
        undecided = [e for e in self.manifest.evaluations.values() if e.decision is None]
        self._undecided = dict.fromkeys(e.eval_id for e in undecided)
        self.parts.requests.keep_ideas(undecided)
        to_measure = [
            name
            for e in undecided
            if e.status in ("completed", "failed")
            for name in self._settle_or_measure(e)
        ]
        return Work([e.eval_id for e in undecided if e.status == "pending"], to_measure)

    def next_stage(self) -> None:
        """Record why the search is over; the loop has run everything that could be chosen."""
        self.close()
        if self._ideas_error is not None:
            raise self._ideas_error
        is_over = self._is_budget_spent() or self._state.sequencer.is_over
        if self._undecided or not is_over:
            raise StorageError("the search has more to do, and nothing to do it with")
        self.parts.store.record(ev.Stopped(reason=stop_reason(self.manifest, self._settings)))
        self.parts.store.snapshot()

    def close(self) -> None:
        self._plans.wait()
        self._plans.drop()
        self._plans.clean_up(self.parts.expander, self.manifest)

    def peers(self) -> Iterator[Evaluation]:
        """Yield the last evaluations that ended, and those under way."""
        evaluations = self.manifest.evaluations
        yield from (evaluations[name] for name in self._recent)
        yield from (evaluations[name] for name in self._undecided)

    def position(self) -> str:
        return f"after {self._settings.settled} of {len(self.manifest.evaluations)} evaluations"

    def can_apply(self, command: Command) -> bool:
        """A change of the tree waits while ideas are generated: their choice was made before."""
        is_planning = self._plans or self._plans.is_generating
        return command.action in CONTROL_ACTIONS or not is_planning

    def on_steered(self, event: ev.Steered) -> None:
        if event.record.command.action in CONTROL_ACTIONS:
            return  # a planned choice may know more outcomes than the records, so no rebuild_state
        self._state = rebuild_state(self.manifest, self._settings)
        self._node_requests.add(event.record)

    def is_preparing(self) -> bool:
        return self._plans.is_generating or bool(self.parts.inbox.waiting())

    # -- choosing -------------------------------------------------------------------------

    def _propose(self, without: Sequence[str] = ()) -> Choice | None:
        """Return the next choice: a node that the user asked for, or the policy's.

        Args:
            without: Nodes that cannot be chosen because their ideas are not there yet.
        """
        sequencer = self._state.sequencer
        tree = sequencer.tree
        with tree.without([self._branch(node_id) for node_id in without]):
            choice = sequencer.propose()
            wanted = self._node_requests.next_node(
                lambda node_id: growth(tree, self._branch(node_id))
            )
        if choice is None or wanted is None:
            return choice
        return Choice(self._branch(wanted))

    def _branch(self, node_id: str) -> int:
        """Return the number of the choice that a node came from."""
        source = self.manifest.nodes[node_id].artifacts.promoted_from_eval_id
        return choice_number(source) if source is not None else 0

    def _next_idea(self, node: Node, after: int = 0) -> IdeaRecord | None:
        """Return the untried idea of a node after the first `after` ones; None if there is none."""
        records = applied(self.manifest.steering)
        if not records:
            place = counter(node.tried) + after
            return node.ideas[place] if place < len(node.ideas) else None
        evaluations = self.manifest.evaluations.values()
        tried = {e.idea_path for e in evaluations if e.parent_node_id == node.node_id}
        return choose_next_idea(node, tried, injected(records), banned_ideas(records))

    def _is_budget_spent(self) -> bool:
        budget = Budget(self.manifest.max_total_idea_evals)
        return budget.evals_left(self.manifest.spent, len(self._plans)) == 0

    def _can_choose(self) -> bool:
        """Return whether to choose now; commands of the user are applied first."""
        ends = self._ideas_error is not None or self.parts.cancel.is_set()
        return not (ends or self._is_budget_spent() or self.parts.inbox.waiting())

    def _queue(
        self, planned: PlannedChoice, idea: IdeaRecord, without: list[str] | Unset = UNSET
    ) -> str:
        """Record a choice with its idea as the evaluation of the next number."""
        node = self.manifest.nodes[planned.node_id]
        event = queued(planned.number, node, idea, node.depth + 1)
        event.seen, event.without = planned.seen, without
        self.parts.store.record(event)
        self._undecided[event.eval_id] = None
        self.parts.deciding_files.load_nodes([node])
        self.parts.requests.keep_idea(self.manifest.evaluations[event.eval_id])
        if not planned.is_reserved:
            self._state.sequencer.tree.reserve(*planned.choice)
        self._node_requests.use(node.node_id)
        return event.eval_id

    # -- ideas ----------------------------------------------------------------------------

    def _generate(self, choice: Choice, node: Node) -> PlannedChoice | None:
        """Start to generate ideas for a node; None if that has to wait."""
        sequencer, under_way = self._state.sequencer, self._plans.generations()
        if len(under_way) >= self.parts.generations_at_once() or self._plans.has_dropped:
            return None
        if depends_on(self.manifest, node, under_way):
            return None
        number = self._settings.expansions + 1 + len(under_way)
        generation = Generation(
            self.parts.expander,
            self.manifest,
            node,
            depth=node.depth + 1,
            most=self.manifest.ideas_per_node,
            number=number,
            seen=sequencer.seen,
            leftovers=self._leftovers(node, number),
        )
        return PlannedChoice(sequencer.made + 1, sequencer.seen, choice, node.node_id, generation)

    def _leftovers(self, node: Node, number: int) -> list[IdeaRecord]:
        """Return the ideas of the node's ancestors that neither evaluations nor plans try."""
        manifest, lineage = self.manifest, ancestors(self.manifest, node)
        tried = {e.idea_path for e in manifest.evaluations.values()}
        for each in lineage[1:]:
            places = range(len(self._plans.for_node(each.node_id)))
            planned = (self._next_idea(each, place) for place in places)
            tried |= {idea.path for idea in planned if idea is not None}
        return leftovers.for_expansion(manifest, lineage, number, tried)

    def _exhaust(self, event: ev.NodeExpanded) -> None:
        """Record that a node has no ideas. If its sources failed and no other node can be chosen,
        the run pauses instead once the evaluations under way have ended."""
        sequencer = self._state.sequencer
        if event.failures:
            tree, without = sequencer.tree, self._branch(event.node_id)
            if not any(tree.can_grow(b) for b in tree.branches if b.number != without):
                self._ideas_error = missing_ideas(event)
                return
        event.exhausted = Exhausted(event.node_id, sequencer.made + 1, sequencer.seen)
        self._record_ideas(event)
        sequencer.exhaust(self._branch(event.node_id))

    def _record_ideas(self, event: ev.NodeExpanded) -> None:
        self._plans.add_costs(self.parts.expander, self.manifest, event)
        self.parts.store.record(event)
        self._plans.forget_costs(self.parts.expander, self.manifest)

    # -- settling -------------------------------------------------------------------------

    def on_recorded(self, eval_id: str) -> Sequence[str]:
        self._recent.append(eval_id)
        return self._settle_or_measure(self.manifest.evaluations[eval_id])

    def on_measured(self, eval_id: str, outcome: HeldoutOutcome) -> None:
        evaluation = self.manifest.evaluations[eval_id]
        self.parts.store.record(self.parts.confirmer.judge(self.manifest, evaluation, outcome))
        self._settle_or_measure(evaluation)

    def _settle_or_measure(self, evaluation: Evaluation) -> Sequence[str]:
        """Settle an evaluation that has its outcome; return it if it must be confirmed first."""
        if evaluation.confirmation is None and self._state.needs_confirmation(evaluation):
            return (evaluation.eval_id,)
        self._settle_in_order(evaluation)
        return ()

    @abstractmethod
    def _settle_in_order(self, evaluation: Evaluation) -> None:
        """Settle an evaluation as soon as the order allows, and those that waited for it."""

    def _settle(self, evaluation: Evaluation) -> None:
        """Record the fate of an evaluation, promote and prune, and tell the policy."""
        decision = self._state.decide(evaluation)
        node = None
        if decision.fate == "promoted":
            manifest = self.manifest
            node = new_node(manifest, evaluation, len(manifest.nodes), timestamp())
            decision = msgspec.structs.replace(decision, promoted_to_node_id=node.node_id)
        self.parts.store.record(
            ev.Settled(
                eval_id=evaluation.eval_id,
                decision=decision,
                node=node,
                rejected_worktrees_kept=self.parts.options.retention.rejected_worktrees,
            )
        )
        del self._undecided[evaluation.eval_id]
        self.parts.requests.forget_idea(evaluation)
        self._release_files(evaluation, node)
        self.parts.promote_and_prune([node] if node is not None else [], [evaluation])
        self._state.settle(evaluation, decision)

    def keep_files(self) -> None:
        """Keep the root, and the nodes and results of evaluations under way."""
        manifest, deciding_files = self.manifest, self.parts.deciding_files
        undecided = [e for e in manifest.evaluations.values() if e.decision is None]
        names = {ROOT_NODE, *(e.parent_node_id for e in undecided)}
        deciding_files.load_nodes(manifest.nodes[name] for name in sorted(names))
        for evaluation in undecided:
            if evaluation.results_csv is not None:
                deciding_files.keep_in_memory(deciding_files.read(evaluation.results_csv))

    def _release_files(self, evaluation: Evaluation, node: Node | None) -> None:
        """Drop the files of a settled evaluation from memory, so that it holds only those of
        evaluations under way."""
        deciding_files = self.parts.deciding_files
        if node is not None:
            deciding_files.load_nodes([node])
            deciding_files.drop(baselines([node]))
        elif evaluation.results_csv is not None:
            deciding_files.drop([evaluation.results_csv])
        parent = evaluation.parent_node_id
        others = (self.manifest.evaluations[name].parent_node_id for name in self._undecided)
        if parent != ROOT_NODE and parent not in others:
            deciding_files.drop(baselines([self.manifest.nodes[parent]]))


@dataclass(slots=True)
class FixedOrder(PolicySearch):
    """The same choices in any timing, made as early as the lookahead allows.

    The k-th choice knows the outcomes up to a certain one and no others. Choices after one that
    waits for its ideas are made meanwhile, and evaluations are settled in the order of choosing.
    """

    _ready: set[str] = field(default_factory=set, init=False)

    def more(self, room: int) -> Sequence[str]:
        found = self._queue_planned()
        while self._can_choose() and (not self._plans or self._can_plan_ahead()):
            choice = self._propose_next()
            planned = self._plan(choice) if choice is not None else None
            if planned is None:
                break
            self._plans.add(planned)
            if planned.generation is not None:
                planned.generation.wait(QUICK_SECONDS)
            found += self._queue_planned()
        return found

    def _propose_next(self) -> Choice | None:
        """Return the choice after the last planned one, as if that one were made."""
        last = self._plans.last
        if last is not None and not last.is_reserved:
            self._state.sequencer.tree.reserve(*last.choice)
            last.is_reserved = True
        return self._propose()

    def _plan(self, choice: Choice) -> PlannedChoice | None:
        """Return a choice with the generation it waits for, if any; None if it cannot wait now."""
        sequencer = self._state.sequencer
        node = self.manifest.nodes[self._state.nodes[choice.parent]]
        planned = self._plans.for_node(node.node_id)
        if self._next_idea(node, len(planned)) is not None:
            return PlannedChoice(sequencer.made + 1, sequencer.seen, choice, node.node_id)
        if any(each.generation is not None for each in planned):
            return None
        return self._generate(choice, node)

    def _can_plan_ahead(self) -> bool:
        """Return whether to choose as if the planned choices had their ideas. In a steered run the
        next node and the next idea depend on the records, so it waits for them."""
        is_steered = bool(applied(self.manifest.steering)) or bool(self.parts.inbox.waiting())
        return not (is_steered or self.parts.generations_at_once() == 1)

    def _queue_planned(self) -> list[str]:
        """Queue planned choices from the first on, as far as their ideas are there."""
        self._plans.clean_up(self.parts.expander, self.manifest)
        found: list[str] = []
        while (first := self._plans.first) is not None:
            generation = first.generation
            if generation is not None:
                if not generation.is_done():
                    break
                first.generation = None
                self._ideas_error, event = generation.error, generation.event
                if event is None or not event.ideas:
                    self._drop_plans()
                    if event is not None:
                        self._exhaust(event)
                    break
                self._record_ideas(event)
            idea = self._next_idea(self.manifest.nodes[first.node_id])
            if idea is None:  # all of them are banned
                self._drop_plans()
                break
            found.append(self._queue(first, idea))
            self._plans.take_first()
        return found

    def _drop_plans(self) -> None:
        if self._plans.drop():
            self._state = rebuild_state(self.manifest, self._settings)
            self._state.sequencer.propose()  # adds the outcomes that the first choice knew

    def _settle_in_order(self, evaluation: Evaluation) -> None:
        self._ready.add(evaluation.eval_id)
        while (first := f"e{self._state.settled + 1:06d}") in self._ready:
            self._settle(self.manifest.evaluations[first])
            self._ready.remove(first)


@dataclass(slots=True)
class LiveOrder(PolicySearch):
    """One choice for every free worker, which knows every outcome there is.

    While ideas are generated for a node, the policy chooses as if that node took no child; the
    nodes left out are recorded with the choice, so that it can be made again. Evaluations are
    settled as they end.
    """

    def more(self, room: int) -> Sequence[str]:
        self._take_ideas()
        sequencer = self._state.sequencer
        found: list[str] = []
        postponed: list[str] = []  # nodes without ideas, which cannot be asked for now
        while len(found) < room and self._can_choose():
            waiting = [*(planned.node_id for planned in self._plans), *postponed]
            choice = self._propose(waiting) if len(waiting) <= _MAX_WAITING_NODES else None
            if choice is None:
                break
            node = self.manifest.nodes[self._state.nodes[choice.parent]]
            idea = self._next_idea(node)
            if idea is not None:
                made = PlannedChoice(sequencer.made + 1, sequencer.seen, choice, node.node_id)
                found.append(self._queue(made, idea, waiting or UNSET))
            elif (planned := self._generate(choice, node)) is not None:
                self._plans.add(planned)
                assert planned.generation is not None
                planned.generation.wait(QUICK_SECONDS)
                self._take_ideas()
            else:
                postponed.append(node.node_id)
        return found

    def _take_ideas(self) -> None:
        """Record generated ideas in the order of asking, or that there are none."""
        while (first := self._plans.first) is not None:
            generation = first.generation
            assert generation is not None
            if not generation.is_done():
                return
            self._plans.take_first()
            self._ideas_error, event = self._ideas_error or generation.error, generation.event
            if event is not None and event.ideas:
                self._record_ideas(event)
            elif event is not None:
                self._exhaust(event)

    def _settle_in_order(self, evaluation: Evaluation) -> None:
        self._settle(evaluation)
