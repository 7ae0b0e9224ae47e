"""Choices that are made before the ideas of an earlier one are there.

A node was chosen and has no idea left. Nearly always its sources have one, so the choices
after it are made as if they had, and where these need ideas too, all are generated at the same
time. Nothing of it is recorded before its turn has come: should a node turn out to have no
ideas, the choices after it are forgotten and made again. So a run is the same as one
that waits, whatever the timing. In `live` order a choice is to know all there is: none is
made ahead, and what waits here are nodes, for ideas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from treewright.search.policies import Choice
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records.events import NodeExpanded
from treewright.tree.records.model import Manifest
from treewright.tree.run.generating import Generation


@dataclass(slots=True)
class Planned:
    """A choice that is not recorded yet: its number, what it knew, and the ideas that it waits
    for. `is_reserved`: the policy was asked for the one after it."""

    number: int
    seen: int
    choice: Choice
    node_id: str
    generation: Generation | None = None
    is_reserved: bool = False


@dataclass(slots=True)
class Plans:
    """In the order of their numbers; the first waits for its ideas, or for nothing."""

    _planned: deque[Planned] = field(default_factory=deque)
    _dropped: list[Generation] = field(default_factory=list)
    _owed: set[tuple[str, int]] = field(default_factory=set)
    """Generations that nobody needed in the end, or that a stop cut off: node and number. What
    they cost is recorded with the next one, and on disk until then."""

    def __len__(self) -> int:
        return len(self._planned)

    def __iter__(self) -> Iterator[Planned]:
        return iter(self._planned)

    def add(self, planned: Planned) -> None:
        self._planned.append(planned)
        generation = planned.generation
        if generation is not None:  # one that begins again counts what it finds of itself
            self._owed.discard((generation.node_id, generation.turn))

    @property
    def first(self) -> Planned | None:
        return self._planned[0] if self._planned else None

    @property
    def last(self) -> Planned | None:
        return self._planned[-1] if self._planned else None

    def take_first(self) -> Planned:
        return self._planned.popleft()

    def of(self, node_id: str) -> list[Planned]:
        return [planned for planned in self._planned if planned.node_id == node_id]

    def under_way(self) -> list[Generation]:
        """Generations that somebody waits for."""
        return [each.generation for each in self._planned if each.generation is not None]

    @property
    def is_generating(self) -> bool:
        return bool(self._dropped) or bool(self.under_way())

    @property
    def has_dropped(self) -> bool:
        return bool(self._dropped)

    def forget(self) -> bool:
        """None of them will be made. True if the policy was asked beyond the first."""
        was_ahead = any(planned.is_reserved for planned in self._planned)
        self._dropped += self.under_way()
        self._planned.clear()
        return was_ahead

    def clean_up(self, expander: Expander, manifest: Manifest, *, wait: bool = False) -> None:
        """Removes what generations left that nobody needs; what they cost is owed."""
        for generation in list(self._dropped):
            if generation.is_done(wait=None if wait else 0.0):
                self._dropped.remove(generation)
                expander.discard(manifest, generation.node_id)
                self._owed.add((generation.node_id, generation.turn))

    def owe(self, generations: Iterable[tuple[str, int]]) -> None:
        """Of an earlier owner of the run."""
        self._owed.update(generations)

    def add_owed(self, expander: Expander, manifest: Manifest, event: NodeExpanded) -> None:
        """To what an event carries."""
        for owed in self._owed:
            event.usage += expander.cost(manifest, *owed)

    def settle_owed(self, expander: Expander, manifest: Manifest) -> None:
        """That event is recorded. Who is killed before this counts them twice, not never."""
        for owed in self._owed:
            expander.settle(manifest, *owed)
        self._owed.clear()

    def wait(self) -> None:
        """Nothing of it runs on."""
        for generation in (*self.under_way(), *self._dropped):
            generation.is_done(wait=None)
