"""Beam search: one depth at a time, with a barrier before anything is decided.

    expand the frontier -> queue -> evaluate -> (barrier) confirm -> decide -> promote -> prune

An invocation of `treewright tree` without `--until-done` does one depth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError
from treewright.tree.deciding import leftovers, rounds
from treewright.tree.deciding.promotion import KnownCode, new_node
from treewright.tree.evaluating.request import HeldoutOutcome
from treewright.tree.records import events as ev
from treewright.tree.records.model import Decision, Evaluation, IdeaRecord, Node, ancestors
from treewright.tree.records.steering import Command, applied, banned_nodes
from treewright.tree.run import command_effects
from treewright.tree.run.ideas_ahead import Generation, depends_on, missing_ideas
from treewright.tree.run.requests import queued
from treewright.tree.run.tree_search import TreeSearch, Work


@dataclass(slots=True)
class BeamSearch(TreeSearch):
    """Advances a run by one depth."""

    has_barrier: ClassVar[bool] = True
    _measured: dict[str, HeldoutOutcome] = field(default_factory=dict, init=False)
    _to_confirm: list[str] = field(default_factory=list, init=False)
    """Candidates without a recorded confirmation, best first."""

    @property
    def _depth(self) -> int:
        """The depth being worked on."""
        return self.manifest.current_depth + 1

    def begin(self, checkpoint: Callable[[], None]) -> Work | None:
        depth = self._depth
        self._expand(depth, checkpoint)
        self._queue(depth)
        self.parts.store.snapshot()
        if not any(self.peers()):
            self._end_without_ideas()
            self.parts.store.snapshot()
            return None
        pending = [e.eval_id for e in self.peers() if e.status == "pending"]
        if not pending:
            return self.next_stage()
        self.parts.requests.keep_ideas(self.peers())
        return Work(pending)

    def next_stage(self) -> Work | None:
        """Return the candidates to confirm; once there are none, decide about the depth."""
        evaluations = list(self.peers())
        unfinished = [e.eval_id for e in evaluations if e.status not in ("completed", "failed")]
        if unfinished:
            raise StorageError(
                f"depth {self._depth} cannot be decided: {unfinished[0]} has no outcome"
            )
        self.keep_files()
        confirmations = None
        if self.manifest.confirm_configs:
            confirmations = {
                e.eval_id: e.confirmation for e in evaluations if e.confirmation is not None
            }
        known = KnownCode.of(self.manifest.nodes.values())
        selection = rounds.select_beam(evaluations, self.manifest.beam_width, known, confirmations)
        if selection.to_confirm:
            self.parts.stop_if_cancelled()
            return self._confirm(list(selection.to_confirm))
        self._decide(selection, evaluations)
        self.parts.store.snapshot()
        return None

    def peers(self) -> Iterator[Evaluation]:
        """Yield the evaluations of the depth being worked on."""
        if len(self.manifest.depths) >= self._depth:
            for eval_id in self.manifest.depths[self._depth - 1].eval_ids:
                yield self.manifest.evaluations[eval_id]

    def position(self) -> str:
        return f"at depth {self._depth}"

    def can_apply(self, command: Command) -> bool:
        """A change of the tree waits until the depth that has begun is decided."""
        changes_tree = command.action in command_effects.TREE_ACTIONS
        return not (changes_tree and command_effects.in_round(self.manifest))

    def keep_files(self) -> None:
        self.parts.deciding_files.load_all(self.manifest)

    # -- ideas ----------------------------------------------------------------------------

    def _expand(self, depth: int, checkpoint: Callable[[], None]) -> None:
        """Choose ideas for the nodes of the frontier, at most as many as the budget can evaluate.

        Several nodes are asked at the same time; their ideas are recorded in the order of the
        nodes. A node without ideas because of failed sources is recorded only if another node has
        ideas.
        """
        manifest = self.manifest
        under_way: deque[Generation] = deque()
        without_ideas: list[ev.NodeExpanded] = []

        def record_first() -> None:
            generation = under_way.popleft()
            generation.wait()
            if generation.error is not None:
                raise generation.error
            event = generation.event
            assert event is not None
            if event.failures and not event.ideas:
                without_ideas.append(event)
            else:
                self.parts.store.record(event)

        try:
            for node_id in sorted(manifest.frontier):
                self.parts.stop_if_cancelled()
                checkpoint()
                node = manifest.nodes[node_id]
                if node.expanded_for_depth == depth:
                    continue
                at_once = self.parts.generations_at_once()
                while under_way and (
                    len(under_way) >= at_once
                    or depends_on(manifest, node, under_way)
                    or self._ideas_wanted(depth, under_way) < manifest.ideas_per_node
                ):
                    record_first()
                wanted = self._ideas_wanted(depth, under_way)
                if wanted:
                    leftovers = self._leftovers(node, depth)
                    under_way.append(
                        Generation(
                            self.parts.expander,
                            manifest,
                            node,
                            depth=depth,
                            most=wanted,
                            leftovers=leftovers,
                        )
                    )
            while under_way:
                record_first()
        finally:
            for generation in under_way:
                generation.wait()
        if without_ideas:
            nodes = [manifest.nodes[node_id] for node_id in manifest.frontier]
            if not any(idea.depth == depth for node in nodes for idea in node.ideas):
                raise missing_ideas(without_ideas[0])
            for event in without_ideas:
                self.parts.store.record(event)

    def _ideas_wanted(self, depth: int, under_way: Iterable[Generation]) -> int:
        """Return how many ideas the next node may get, if every idea asked for arrives."""
        manifest = self.manifest
        planned = sum(
            idea.depth == depth for n in manifest.frontier for idea in manifest.nodes[n].ideas
        )
        promised = sum(generation.most for generation in under_way)
        planned += promised - len(list(self.peers()))
        budget = Budget(manifest.max_total_idea_evals)
        return budget.allow(manifest.ideas_per_node, manifest.spent, planned)

    def _leftovers(self, node: Node, depth: int) -> list[IdeaRecord]:
        """Return the ideas of the node and its ancestors that no evaluation has tried."""
        manifest, lineage = self.manifest, ancestors(self.manifest, node)
        tried = {e.idea_path for e in manifest.evaluations.values() if e.depth < depth}
        others = manifest.nodes.values() if manifest.dedupe_scope == "global" else lineage
        taken = {idea.key for each in others for idea in each.ideas if idea.depth == depth}
        return leftovers.for_depth(manifest, lineage, depth, tried, taken)

    def _queue(self, depth: int) -> None:
        """Give every chosen idea its evaluation, in an order that depends on nothing but ids."""
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
            self.parts.store.record(*events)

    # -- confirming -----------------------------------------------------------------------

    def _confirm(self, eval_ids: list[str]) -> Work:
        """Return the held-out sweeps of candidates, after those that their parents still need."""
        manifest = self.manifest
        for eval_id in eval_ids:
            parent = manifest.evaluations[eval_id].parent_node_id
            if manifest.nodes[parent].artifacts.heldout is None:
                self.parts.store.record(self.parts.confirmer.measure_node(manifest, parent))
        self._measured, self._to_confirm = {}, list(eval_ids)
        return Work(measurements=eval_ids)

    def on_measured(self, eval_id: str, outcome: HeldoutOutcome) -> None:
        """Record confirmations in the order of rank, whichever sweep ended first."""
        self._measured[eval_id] = outcome
        while self._to_confirm and self._to_confirm[0] in self._measured:
            self._record_confirmation(self._to_confirm.pop(0))

    def on_pause(self) -> None:
        """Record the confirmations that wait for one of a better rank."""
        for eval_id in self._to_confirm:
            if eval_id in self._measured:
                self._record_confirmation(eval_id)
        self._to_confirm = []

    def _record_confirmation(self, eval_id: str) -> None:
        evaluation, outcome = self.manifest.evaluations[eval_id], self._measured[eval_id]
        self.parts.store.record(self.parts.confirmer.judge(self.manifest, evaluation, outcome))

    # -- deciding -------------------------------------------------------------------------

    def _decide(self, selection: rounds.Selection, evaluations: list[Evaluation]) -> None:
        """Record the fates of the whole depth, then promote and prune."""
        manifest, now = self.manifest, timestamp()
        nodes = [
            new_node(manifest, manifest.evaluations[eval_id], len(manifest.nodes) + place, now)
            for place, eval_id in enumerate(selection.promoted)
        ]
        decisions = dict(selection.decisions)
        for node, eval_id in zip(nodes, selection.promoted, strict=True):
            decisions[eval_id] = msgspec.structs.replace(
                decisions[eval_id], promoted_to_node_id=node.node_id
            )
        self.parts.store.record(self._decided(decisions, nodes))
        self.parts.promote_and_prune(nodes, evaluations)
        self.keep_files()

    def _end_without_ideas(self) -> None:
        """End a depth for which no node had an idea. With elites the search goes on if other nodes
        can take the place of these."""
        event = self._decided({}, [])
        if rounds.rules_now(self.manifest).elites and event.frontier:
            self.parts.store.record(event)
        else:
            self.parts.store.record(ev.Stopped(reason="no_new_ideas"))

    def _decided(self, decisions: dict[str, Decision], nodes: list[Node]) -> ev.Decided:
        manifest, rules, depth = self.manifest, rounds.rules_now(self.manifest), self._depth
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
                {**manifest.nodes, **{node.node_id: node for node in nodes}},
                banned_nodes(applied(manifest.steering)),
            ),
            stop_reason=rounds.stop_reason(rules, done),
            rejected_worktrees_kept=self.parts.options.retention.rejected_worktrees,
        )
