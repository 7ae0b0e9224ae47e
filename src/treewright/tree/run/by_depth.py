"""Beam search: one depth at a time, with a barrier before anything is decided.

expand the frontier -> queue -> evaluate -> (barrier) confirm, decide -> promote -> prune
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError
from treewright.tree.deciding import beam, left_over, rounds
from treewright.tree.deciding.promotion import new_node
from treewright.tree.deciding.sameness import Known
from treewright.tree.evaluating.heldout import HeldoutOutcome
from treewright.tree.ideas.expansion import ancestors
from treewright.tree.records import events as ev
from treewright.tree.records.model import Decision, Evaluation, IdeaRecord, Node
from treewright.tree.records.steering import applied, banned_nodes
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.run.faults import Paused
from treewright.tree.run.generating import Generation, depends, no_ideas
from treewright.tree.run.requests import queued


@dataclass(slots=True)
class DepthCoordinator(Coordinator):
    """Advances a run by one depth."""

    has_barrier: bool = field(default=True, init=False)
    _measured: dict[str, HeldoutOutcome] = field(default_factory=dict, init=False)
    _to_record: list[str] = field(default_factory=list, init=False)
    _without_ideas: list[ev.NodeExpanded] = field(default_factory=list, init=False)

    def _go_on(self) -> None:
        """Does one depth, or what is left of it."""
        depth = self.manifest.current_depth + 1
        self._expand(depth)
        self._queue(depth)
        self.store.snapshot()
        if not any(self.peers()):
            self._go_without_ideas(depth)
        else:
            self._evaluate()
            self._decide(depth)
        self.store.snapshot()

    def peers(self) -> Iterator[Evaluation]:
        """Evaluations of the depth being worked on."""
        depth = self.manifest.current_depth + 1
        if len(self.manifest.depths) >= depth:
            for eval_id in self.manifest.depths[depth - 1].eval_ids:
                yield self.manifest.evaluations[eval_id]

    def where(self) -> str:
        return f"at depth {self.manifest.current_depth + 1}"

    def _expand(self, depth: int) -> None:
        """Chooses ideas for the frontier, for several nodes at a time; no more than the budget
        lets be tried."""
        manifest = self.manifest
        under_way: deque[Generation] = deque()
        self._without_ideas = []
        try:
            for node_id in sorted(manifest.frontier):
                self._stop_if_cancelled()
                self._wait_or_halt()
                node = manifest.nodes[node_id]
                if node.expanded_for_depth == depth:
                    continue
                at_once = self._generations_at_once()
                while under_way and (
                    len(under_way) >= at_once
                    or depends(manifest, node, under_way)
                    or self._wanted(depth, under_way) < manifest.ideas_per_node
                ):
                    self._take(under_way.popleft())
                wanted = self._wanted(depth, under_way)
                if wanted:
                    under_way.append(
                        Generation(
                            self._expander,
                            manifest,
                            node,
                            depth=depth,
                            most=wanted,
                            left_over=self._left_over(node, depth),
                        )
                    )
            while under_way:
                self._take(under_way.popleft())
        finally:
            for generation in under_way:
                generation.is_done(wait=None)
        if self._without_ideas:
            nodes = [manifest.nodes[node_id] for node_id in manifest.frontier]
            if not any(idea.depth == depth for node in nodes for idea in node.ideas):
                raise no_ideas(self._without_ideas[0])
            for event in self._without_ideas:
                self.store.record(event)

    def _left_over(self, node: Node, depth: int) -> list[IdeaRecord]:
        """Ideas that the node and its ancestors did not get to."""
        manifest, lineage = self.manifest, list(ancestors(self.manifest, node))
        tried = {e.idea_path for e in manifest.evaluations.values() if e.depth < depth}
        others = manifest.nodes.values() if manifest.dedupe_scope == "global" else lineage
        taken = {idea.key for each in others for idea in each.ideas if idea.depth == depth}
        return left_over.by_depth(manifest, lineage, depth, tried, taken)

    def _take(self, generation: Generation) -> None:
        """Records ideas in the order of their nodes. That a node has none because its sources
        failed is recorded when others have some."""
        generation.is_done(wait=None)
        if generation.error is not None:
            raise generation.error
        event = generation.event
        assert event is not None
        if event.failures and not event.ideas:
            self._without_ideas.append(event)
        else:
            self.store.record(event)

    def _wanted(self, depth: int, under_way: Iterable[Generation]) -> int:
        """How many ideas the next node may get, if those that are asked for all come."""
        manifest = self.manifest
        planned = sum(
            idea.depth == depth for n in manifest.frontier for idea in manifest.nodes[n].ideas
        )
        promised = sum(generation.most for generation in under_way)
        planned += promised - len(list(self.peers()))
        budget = Budget(manifest.max_total_idea_evals)
        return budget.allow(manifest.ideas_per_node, manifest.spent, planned)

    def _queue(self, depth: int) -> None:
        """Gives every chosen idea its evaluation id, in an order that depends on nothing else."""
        manifest = self.manifest
        there = {(e.parent_node_id, e.idea_path) for e in self.peers()}
        tasks = [
            (node_id, idea)
            for node_id, idea in rounds.tasks(manifest, manifest.frontier, depth)
            if (node_id, idea.path) not in there
        ]
        allowed = Budget(manifest.max_total_idea_evals).allow(len(tasks), manifest.spent)
        first = len(manifest.evaluations) + 1
        events = [
            queued(number, manifest.nodes[node_id], idea, depth)
            for number, (node_id, idea) in enumerate(tasks[:allowed], start=first)
        ]
        if events:
            self.store.record(*events)

    def _evaluate(self) -> None:
        """Runs what is pending; returns when every evaluation of the depth has an outcome."""
        pending = [e.eval_id for e in self.peers() if e.status == "pending"]
        if pending:
            self._requests.keep_ideas(self.peers())
            self._dispatch(pending)

    def _decide(self, depth: int) -> None:
        """The barrier: applies gate and beam to the whole depth, then promotes and prunes."""
        manifest = self.manifest
        evaluations = list(self.peers())
        unsettled = [e.eval_id for e in evaluations if e.status not in ("completed", "failed")]
        if unsettled:
            raise StorageError(f"depth {depth} cannot be decided: {unsettled[0]} has no outcome")
        self._hold()
        selection = self._select(evaluations)
        now = timestamp()
        nodes = [
            new_node(manifest, manifest.evaluations[eval_id], len(manifest.nodes) + place, now)
            for place, eval_id in enumerate(selection.promoted)
        ]
        decisions = dict(selection.decisions)
        for node, eval_id in zip(nodes, selection.promoted, strict=True):
            decisions[eval_id] = msgspec.structs.replace(
                decisions[eval_id], promoted_to_node_id=node.node_id
            )
        self.store.record(self._decided(depth, decisions, nodes))
        self._promote_and_prune(nodes, evaluations)
        self._hold()

    def _go_without_ideas(self, depth: int) -> None:
        """A round for which there was no idea ends the search, unless others of the best nodes
        can take its place."""
        event = self._decided(depth, {}, [])
        if rounds.rules_now(self.manifest).elites and event.frontier:
            self.store.record(event)
        else:
            self.store.record(ev.Stopped(reason="no_new_ideas"))

    def _decided(self, depth: int, decisions: dict[str, Decision], nodes: list[Node]) -> ev.Decided:
        manifest, rules = self.manifest, rounds.rules_now(self.manifest)
        promoted = [node.node_id for node in nodes]
        evaluations, record = manifest.spent.evals, manifest.depths[depth - 1]
        before = rounds.last_round(manifest).unlucky
        done = rounds.Round(
            depth=depth,
            frontier=manifest.frontier,
            promoted=promoted,
            unlucky=rounds.unlucky_after(manifest, before, record, promoted, evaluations),
            evaluations=evaluations,
        )
        return ev.Decided(
            depth=depth,
            decisions=decisions,
            nodes=nodes,
            frontier=rounds.next_frontier(
                manifest,
                rules,
                done,
                rounds.with_new(manifest, nodes),
                banned_nodes(applied(manifest.steering)),
            ),
            stop_reason=rounds.stop_reason(rules, done),
            rejected_worktrees_kept=self.retention.rejected_worktrees,
        )

    def _select(self, evaluations: list[Evaluation]) -> beam.Selection:
        manifest = self.manifest
        known = Known.of(manifest.nodes.values())
        while True:
            confirmations = None
            if manifest.confirm_configs:
                confirmations = {
                    e.eval_id: e.confirmation for e in evaluations if e.confirmation is not None
                }
            selection = beam.select(evaluations, manifest.beam_width, known, confirmations)
            if not selection.to_confirm:
                return selection
            self._stop_if_cancelled()
            self._confirm(list(selection.to_confirm))

    def _confirm(self, eval_ids: list[str]) -> None:
        """Sweeps candidates on the held-out configs, all at once as far as there are workers."""
        manifest = self.manifest
        for eval_id in eval_ids:
            parent = manifest.evaluations[eval_id].parent_node_id
            if manifest.nodes[parent].artifacts.heldout is None:
                self.store.record(self._confirmer.measure_node(manifest, parent))
        self._measured, self._to_record = {}, list(eval_ids)
        try:
            self._dispatch(to_measure=eval_ids)
        except Paused:
            for eval_id in self._to_record:
                if eval_id in self._measured:
                    self._record(eval_id)
            raise

    def measured(self, eval_id: str, outcome: HeldoutOutcome) -> None:
        """Recorded in the order of rank, whichever came first."""
        self._measured[eval_id] = outcome
        while self._to_record and self._to_record[0] in self._measured:
            self._record(self._to_record.pop(0))

    def _record(self, eval_id: str) -> None:
        evaluation, outcome = self.manifest.evaluations[eval_id], self._measured[eval_id]
        self.store.record(self._confirmer.judge(self.manifest, evaluation, outcome))
