"""A search without a barrier: whenever a worker is free, one more idea under one node.

choose a node -> (its ideas are used up: generate more) -> queue -> evaluate -> confirm -> settle

The policy chooses; the sequencer says what it may know. In `fixed` order evaluations are settled
in the order of their choices, in `live` order as they come. Held-out sweeps run where
evaluations run, and ideas are generated beside them, so nobody waits for anybody who need not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Thread

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError
from treewright.tree.deciding.kept_files import baselines
from treewright.tree.deciding.promotion import new_node
from treewright.tree.deciding.steady import Standing, count, number_of, rebuild, stop_reason
from treewright.tree.evaluating.heldout import HeldoutOutcome
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import events as ev
from treewright.tree.records.model import Evaluation, Exhausted, Manifest, Node, SteadySearch
from treewright.tree.running.coordinator import Coordinator, queued
from treewright.tree.running.creation import ROOT_NODE

_RECENT = 32
_QUICK_SECONDS = 0.05


class Generation:
    """Ideas for a node being thought of, beside the evaluations."""

    def __init__(self, expander: Expander, manifest: Manifest, node: Node, number: int) -> None:
        self.node_id = node.node_id
        self.error: BaseException | None = None
        self.event: ev.NodeExpanded | None = None
        self._work = (expander, manifest, node.node_id, node.depth + 1, number)
        self._thread = Thread(target=self._run, name="ideas", daemon=True)
        self._thread.start()

    def is_done(self, wait: float | None = 0.0) -> bool:
        self._thread.join(wait)
        return not self._thread.is_alive()

    def _run(self) -> None:
        expander, manifest, node_id, depth, number = self._work
        try:
            self.event = expander.expand(
                manifest, node_id, depth, manifest.ideas_per_node, expansion=number
            )
        except BaseException as error:  # whatever it is belongs to whoever waits for the ideas
            self.error = error


@dataclass(slots=True)
class SteadyCoordinator(Coordinator):
    """Advances a run until nothing is left to do."""

    _standing: Standing = field(init=False)
    _undecided: dict[str, None] = field(default_factory=dict, init=False)
    _ready: set[str] = field(default_factory=set, init=False)
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT), init=False)
    _generation: Generation | None = field(default=None, init=False)
    _no_ideas: BaseException | None = field(default=None, init=False)

    @property
    def _steady(self) -> SteadySearch:
        steady = self.manifest.steady
        assert steady is not None
        return steady

    def advance(self) -> bool:
        """Goes on until there is a stop reason; False if there was one before."""
        if self.manifest.stop_reason is not None:
            return False
        self._standing = rebuild(self.manifest, self._steady)
        open_ones = [e for e in self.manifest.evaluations.values() if e.decision is None]
        self._undecided = dict.fromkeys(e.eval_id for e in open_ones)
        self._ideas = {e.idea_path: self._read_idea(e) for e in open_ones}
        to_measure = [
            name
            for e in open_ones
            if e.status in ("completed", "failed")
            for name in self._settle_or_measure(e)
        ]
        try:
            self._dispatch([e.eval_id for e in open_ones if e.status == "pending"], to_measure)
        finally:
            if self._generation is not None:
                self._generation.is_done(wait=None)
        if self._no_ideas is not None:
            raise self._no_ideas
        if self._undecided or not (self._budget_is_used_up() or self._standing.sequencer.is_over):
            raise StorageError("the search has more to do, and nothing to do it with")
        self.store.record(ev.Stopped(reason=stop_reason(self.manifest, self._steady)))
        self.store.snapshot()
        return True

    # -- choosing -------------------------------------------------------------------------

    def more(self, room: int) -> Sequence[str]:
        """Choices that can be made now. In `fixed` order all of them, because when they are made
        changes nothing; in `live` order only for workers that are free, to know as much as
        there is to know."""
        found: list[str] = []
        is_live = self._steady.order == "live"
        self._take_ideas()
        while not (is_live and len(found) >= room) and self._may_choose():
            choice = self._standing.sequencer.propose()
            if choice is None:
                break
            node = self.manifest.nodes[self._standing.nodes[choice.parent]]
            if count(node.tried) < len(node.ideas):
                found.append(self._queue(node))
                self._standing.sequencer.tree.reserve(*choice)
            else:
                number = self._steady.expansions + 1
                self._generation = Generation(self._expander, self.manifest, node, number)
                self._generation.is_done(wait=_QUICK_SECONDS)
                self._take_ideas()
        return found

    def _may_choose(self) -> bool:
        waiting = self._generation is not None or self._no_ideas is not None
        return not (waiting or self.cancel.is_set() or self._budget_is_used_up())

    def _budget_is_used_up(self) -> bool:
        return Budget(self.manifest.max_total_idea_evals).evals_left(self.manifest.spent) == 0

    def _take_ideas(self) -> None:
        """Records ideas that are ready, or that there are none. Where they could not be had,
        what is under way is finished before that is said."""
        generation = self._generation
        if generation is None or not generation.is_done():
            return
        self._generation = None
        self._no_ideas = generation.error
        event = generation.event
        if event is None:
            return
        if event.ideas:
            self.store.record(event)
            return
        sequencer = self._standing.sequencer
        event.exhausted = Exhausted(event.node_id, sequencer.made + 1, sequencer.seen)
        self.store.record(event)
        source = self.manifest.nodes[event.node_id].artifacts.promoted_from_eval_id
        sequencer.exhaust(number_of(source) if source is not None else 0)

    def _queue(self, node: Node) -> str:
        """The node's next idea becomes the evaluation of the next number."""
        sequencer = self._standing.sequencer
        idea = node.ideas[count(node.tried)]
        event = queued(sequencer.made + 1, node, idea, node.depth + 1)
        event.seen = sequencer.seen
        self.store.record(event)
        evaluation = self.manifest.evaluations[event.eval_id]
        self._undecided[event.eval_id] = None
        self._deciding.hold_nodes([node])
        self._ideas[idea.path] = self._read_idea(evaluation)
        return event.eval_id

    def is_preparing(self) -> bool:
        return self._generation is not None

    # -- settling -------------------------------------------------------------------------

    def finished(self, eval_id: str) -> Sequence[str]:
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
        self._ready.add(evaluation.eval_id)
        if self._steady.order == "live":
            self._settle(evaluation)
        else:
            while (first := f"e{self._standing.settled + 1:06d}") in self._ready:
                self._settle(self.manifest.evaluations[first])
        return ()

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
        self._ready.remove(evaluation.eval_id)
        del self._undecided[evaluation.eval_id]
        self._ideas.pop(evaluation.idea_path, None)
        self._let_go(evaluation, node)
        self._promote_and_prune([node] if node is not None else [], [evaluation])
        self._standing.settle(evaluation, decision)

    def _hold(self) -> None:
        """Of nodes the root, and those with something under way; the others have copies."""
        manifest = self.manifest
        open_ones = [e for e in manifest.evaluations.values() if e.decision is None]
        names = {ROOT_NODE, *(e.parent_node_id for e in open_ones)}
        self._deciding.hold_nodes(manifest.nodes[name] for name in sorted(names))
        for evaluation in open_ones:
            if evaluation.results_csv is not None:
                self._deciding.hold(self._deciding.read(evaluation.results_csv))

    def _let_go(self, evaluation: Evaluation, node: Node | None) -> None:
        """Of what is settled only copies are kept, so that the rest stays as small as what is
        under way."""
        if node is not None:
            self._deciding.hold_nodes([node])
            self._deciding.let_go(baselines([node]))
        elif evaluation.results_csv is not None:
            self._deciding.let_go([evaluation.results_csv])
        parent = evaluation.parent_node_id
        others = (self.manifest.evaluations[name].parent_node_id for name in self._undecided)
        if parent != ROOT_NODE and parent not in others:
            self._deciding.let_go(baselines([self.manifest.nodes[parent]]))

    # -- what the dispatcher asks beside work ---------------------------------------------

    def peers(self) -> Iterator[Evaluation]:
        """What is under way, and what was finished last."""
        evaluations = self.manifest.evaluations
        yield from (evaluations[name] for name in self._recent)
        yield from (evaluations[name] for name in self._undecided)

    def where(self) -> str:
        return f"after {self._steady.settled} of {len(self.manifest.evaluations)} evaluations"

    def _period(self) -> object:
        return self._steady.settled // _RECENT
