"""Choices in `live` order: one for every worker that is free, knowing all there is to know.

A node whose ideas are used up is asked for more, and until these are there the policy chooses as if
it took no child: what could not be chosen is recorded with the choice, so that it can be made
again. When its ideas have come it is chosen like any other. Evaluations are settled as they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treewright.tree.records.model import UNSET, Evaluation
from treewright.tree.run.planning import Planned
from treewright.tree.run.steady import QUICK_SECONDS, SteadyCoordinator

_MOST_WAITING = 32
"""Nodes that are passed over for want of ideas; where so many have none, few will have some."""


@dataclass(slots=True)
class LiveOrder(SteadyCoordinator):
    """No more choices than there are workers for, so that each knows as much as it can."""

    def more(self, room: int) -> Sequence[str]:
        self._take_ideas()
        sequencer = self._standing.sequencer
        found: list[str] = []
        refused: list[str] = []
        while len(found) < room and self._may_choose():
            waiting = [*(planned.node_id for planned in self._plans), *refused]
            choice = self._propose(waiting) if len(waiting) <= _MOST_WAITING else None
            if choice is None:
                break
            node = self.manifest.nodes[self._standing.nodes[choice.parent]]
            idea = self._next_idea(node)
            if idea is not None:
                made = Planned(sequencer.made + 1, sequencer.seen, choice, node.node_id)
                found.append(self._queue(made, idea, waiting or UNSET))
            elif (asked := self._generate(choice, node)) is not None:
                self._plans.add(asked)
                assert asked.generation is not None
                asked.generation.is_done(wait=QUICK_SECONDS)
                self._take_ideas()
            else:
                refused.append(node.node_id)
        return found

    def _take_ideas(self) -> None:
        """Records ideas in the order in which they were asked for, or that there are none."""
        while (first := self._plans.first) is not None:
            generation = first.generation
            assert generation is not None
            if not generation.is_done():
                return
            self._plans.take_first()
            self._no_ideas, event = self._no_ideas or generation.error, generation.event
            if event is not None and event.ideas:
                self._record_ideas(event)
            elif event is not None:
                self._exhaust(event)

    def _settle_ready(self, evaluation: Evaluation) -> None:
        self._settle(evaluation)
