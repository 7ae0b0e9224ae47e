"""Ideas that are generated while the search goes on, and choices that wait for them.

Ideas for several nodes are generated at the same time and recorded as if one node had been asked
after the other. Ideas for one node can depend on those of another: the run does not try an idea
twice, and a source can read the files of a node's ancestors. Such nodes wait for each other, so a
run has the same ideas however many nodes are asked at once.

In `fixed` order the policy also chooses ahead. Nearly always a node that was chosen gets an idea,
so the choices after it are made as if it had one. No choice is recorded before the choices before
it: if the node turns out to have no idea, the choices after it are dropped and made again. In
`live` order no choice is made ahead; a plan there is a node that waits for its ideas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Thread

from treewright.search.policies import Choice
from treewright.tree.ideas.expansion import Expander
from treewright.tree.ideas.idea_source import IdeaSourceError
from treewright.tree.records.events import NodeExpanded
from treewright.tree.records.model import UNSET, IdeaRecord, Manifest, Node, Unset, ancestors


class Generation:
    """Ideas for one node, generated in a thread.

    Args:
        expander: Asks the idea sources.
        manifest: The run.
        node: The node.
        depth: The depth of its children.
        most: The most ideas to generate.
        number: The number of the expansion in a search by policy; unset in beam search.
        seen: The number of outcomes that the sources may know; None for all.
        leftovers: Ideas of ancestors to offer before new ones.
    """

    def __init__(
        self,
        expander: Expander,
        manifest: Manifest,
        node: Node,
        *,
        depth: int,
        most: int,
        number: int | Unset = UNSET,
        seen: int | None = None,
        leftovers: Sequence[IdeaRecord] = (),
    ) -> None:
        self.node_id = node.node_id
        self.most = most
        self.number = depth if isinstance(number, Unset) else number
        self.error: BaseException | None = None
        self.event: NodeExpanded | None = None

        def generate() -> None:
            try:
                self.event = expander.expand(
                    manifest, self.node_id, depth, most, number, seen, leftovers
                )
            except BaseException as error:  # raised later, in the thread that uses the ideas
                self.error = error

        self._thread = Thread(target=generate, name=f"ideas-{node.node_id}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Return when the generation has ended, or after `seconds`."""
        self._thread.join(seconds)

    def is_done(self) -> bool:
        """Return whether `event` or `error` is there."""
        return not self._thread.is_alive()


def missing_ideas(event: NodeExpanded) -> IdeaSourceError:
    """Return the error of a run that pauses because every source failed and no node has ideas."""
    causes = "; ".join(event.failures) if isinstance(event.failures, list) else ""
    return IdeaSourceError(
        f"paused: no ideas for {event.node_id}: {causes}. Nothing was decided; put that right and "
        "run the same command again"
    )


def depends_on(manifest: Manifest, node: Node, others: Iterable[Generation]) -> bool:
    """Return whether ideas for a node must wait until the ideas of the others are recorded."""
    nodes = [manifest.nodes[other.node_id] for other in others]
    if manifest.dedupe_scope == "global":
        return bool(nodes)
    above = {each.node_id for each in ancestors(manifest, node)}
    return any(
        other.node_id in above
        or node.node_id in {each.node_id for each in ancestors(manifest, other)}
        for other in nodes
    )


@dataclass(slots=True)
class PlannedChoice:
    """A choice that is not recorded yet.

    Attributes:
        number: The number of the choice.
        seen: The number of outcomes that the policy knew.
        choice: The choice of the policy.
        node_id: The chosen node.
        generation: The ideas that it waits for, if any.
        is_reserved: Whether the policy was asked for the choice after it.
    """

    number: int
    seen: int
    choice: Choice
    node_id: str
    generation: Generation | None = None
    is_reserved: bool = False


@dataclass(slots=True)
class Plans:
    """Planned choices in the order of their numbers, and generations that are not needed any more.

    A dropped generation has cost something. Its cost is recorded with the next expansion and stays
    on disk until then; `_unrecorded` has its node and number.
    """

    _planned: deque[PlannedChoice] = field(default_factory=deque)
    _dropped: list[Generation] = field(default_factory=list)
    _unrecorded: set[tuple[str, int]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._planned)

    def __iter__(self) -> Iterator[PlannedChoice]:
        return iter(self._planned)

    def add(self, planned: PlannedChoice) -> None:
        self._planned.append(planned)
        generation = planned.generation
        if generation is not None:  # a repeated generation counts its earlier cost itself
            self._unrecorded.discard((generation.node_id, generation.number))

    @property
    def first(self) -> PlannedChoice | None:
        return self._planned[0] if self._planned else None

    @property
    def last(self) -> PlannedChoice | None:
        return self._planned[-1] if self._planned else None

    def take_first(self) -> PlannedChoice:
        return self._planned.popleft()

    def for_node(self, node_id: str) -> list[PlannedChoice]:
        return [planned for planned in self._planned if planned.node_id == node_id]

    def generations(self) -> list[Generation]:
        """Return the generations that planned choices wait for."""
        return [each.generation for each in self._planned if each.generation is not None]

    @property
    def is_generating(self) -> bool:
        return bool(self._dropped) or bool(self.generations())

    @property
    def has_dropped(self) -> bool:
        return bool(self._dropped)

    def drop(self) -> bool:
        """Drop every planned choice; return whether the policy was asked beyond the first."""
        was_ahead = any(planned.is_reserved for planned in self._planned)
        self._dropped += self.generations()
        self._planned.clear()
        return was_ahead

    def clean_up(self, expander: Expander, manifest: Manifest) -> None:
        """Remove the files of dropped generations that have ended, and note their cost."""
        for generation in list(self._dropped):
            if generation.is_done():
                self._dropped.remove(generation)
                expander.discard(manifest, generation.node_id)
                self._unrecorded.add((generation.node_id, generation.number))

    def add_unrecorded(self, generations: Iterable[tuple[str, int]]) -> None:
        """Note generations of an earlier owner that no event has paid for yet."""
        self._unrecorded.update(generations)

    def add_costs(self, expander: Expander, manifest: Manifest, event: NodeExpanded) -> None:
        """Add the unrecorded costs to an event that is about to be recorded."""
        for generation in self._unrecorded:
            event.usage += expander.cost(manifest, *generation)

    def forget_costs(self, expander: Expander, manifest: Manifest) -> None:
        """Forget the costs that an event has recorded. An owner that dies before this call makes
        the next one count them twice rather than never."""
        for generation in self._unrecorded:
            expander.settle(manifest, *generation)
        self._unrecorded.clear()

    def wait(self) -> None:
        """Return when no generation runs."""
        for generation in (*self.generations(), *self._dropped):
            generation.wait()
