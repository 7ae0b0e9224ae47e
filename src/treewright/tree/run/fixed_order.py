"""Choices in `fixed` order: the same ones whatever the timing, made as early as they can be.

The k-th choice knows the outcomes up to a certain one and no others, so when it is made changes
nothing. Choices after one that waits for its ideas are made meanwhile (`planning.py`), and
evaluations are settled in the order of their choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from treewright.search.policies import Choice
from treewright.tree.deciding.steady import rebuild
from treewright.tree.records.model import Evaluation
from treewright.tree.records.steering import applied
from treewright.tree.run.planning import Planned
from treewright.tree.run.steady import QUICK_SECONDS, SteadyCoordinator


@dataclass(slots=True)
class FixedOrder(SteadyCoordinator):
    """All choices that can be made, as many as the lookahead allows."""

    _ready: set[str] = field(default_factory=set, init=False)

    def more(self, room: int) -> Sequence[str]:
        found = self._take_planned()
        while self._may_choose() and (not self._plans or self._may_plan_ahead()):
            choice = self._propose_next()
            planned = self._plan(choice) if choice is not None else None
            if planned is None:
                break
            self._plans.add(planned)
            if planned.generation is not None:
                planned.generation.is_done(wait=QUICK_SECONDS)
            found += self._take_planned()
        return found

    def _propose_next(self) -> Choice | None:
        """The choice after the last one that is planned, as if that one were made."""
        last = self._plans.last
        if last is not None and not last.is_reserved:
            self._standing.sequencer.tree.reserve(*last.choice)
            last.is_reserved = True
        return self._propose()

    def _plan(self, choice: Choice) -> Planned | None:
        """A choice with its idea, or with the generation that it has to wait for; None where it
        cannot have one yet."""
        sequencer = self._standing.sequencer
        node = self.manifest.nodes[self._standing.nodes[choice.parent]]
        planned = self._plans.of(node.node_id)
        if self._next_idea(node, len(planned)) is not None:
            return Planned(sequencer.made + 1, sequencer.seen, choice, node.node_id)
        if any(each.generation is not None for each in planned):
            return None
        return self._generate(choice, node)

    def _may_plan_ahead(self) -> bool:
        """Whether to choose as if those before had their ideas. Not where somebody steers: whose
        turn it is, and which idea is next, follows what is recorded."""
        is_steered = bool(applied(self.manifest.steering)) or bool(self._inbox.waiting())
        return not (is_steered or self._generations_at_once() == 1)

    def _take_planned(self) -> list[str]:
        """Records choices whose turn has come, and the ideas they waited for, or that there are
        none. Where ideas could not be had, what is under way is finished before that is said."""
        self._plans.clean_up(self._expander, self.manifest)
        found: list[str] = []
        while (first := self._plans.first) is not None:
            generation = first.generation
            if generation is not None:
                if not generation.is_done():
                    break
                first.generation = None
                self._no_ideas, event = generation.error, generation.event
                if event is None or not event.ideas:
                    self._forget_plans()
                    if event is not None:
                        self._exhaust(event)
                    break
                self._record_ideas(event)
            idea = self._next_idea(self.manifest.nodes[first.node_id])
            if idea is None:  # banned, all of them
                self._forget_plans()
                break
            found.append(self._queue(first, idea))
            self._plans.take_first()
        return found

    def _forget_plans(self) -> None:
        if self._plans.forget():
            self._standing = rebuild(self.manifest, self._steady)
            self._standing.sequencer.propose()  # it knows again what the first of them knew

    def _settle_ready(self, evaluation: Evaluation) -> None:
        self._ready.add(evaluation.eval_id)
        while (first := f"e{self._standing.settled + 1:06d}") in self._ready:
            self._settle(self.manifest.evaluations[first])
            self._ready.remove(first)
