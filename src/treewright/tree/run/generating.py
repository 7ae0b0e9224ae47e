"""Ideas for several nodes thought of at the same time, and recorded as if one after the other.

What is chosen for a node may depend on the ideas of others: what a run does not try twice, and
the files of its ancestors that a source can read. Nodes for which that is so wait for one
another, so that a run has the same ideas however many of them are generated at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Thread

from treewright.tree.ideas.base import IdeaSourceError
from treewright.tree.ideas.expansion import Expander, ancestors
from treewright.tree.records import events as ev
from treewright.tree.records.model import UNSET, IdeaRecord, Manifest, Node, Unset


class Generation:
    """Ideas for a node being thought of. `number` is that of the expansion in a run without a
    barrier, `seen` how many outcomes are known there; `left_over` are ideas to take before new
    ones."""

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
        left_over: Sequence[IdeaRecord] = (),
    ) -> None:
        self.node_id = node.node_id
        self.most = most
        self.turn = depth if isinstance(number, Unset) else number
        self.error: BaseException | None = None
        self.event: ev.NodeExpanded | None = None
        self._work = (expander, manifest, depth, number, seen, left_over)
        self._thread = Thread(target=self._run, name=f"ideas-{node.node_id}", daemon=True)
        self._thread.start()

    def is_done(self, wait: float | None = 0.0) -> bool:
        self._thread.join(wait)
        return not self._thread.is_alive()

    def _run(self) -> None:
        expander, manifest, depth, number, seen, left_over = self._work
        try:
            self.event = expander.expand(
                manifest, self.node_id, depth, self.most, number, seen, left_over
            )
        except BaseException as error:  # whatever it is belongs to whoever waits for the ideas
            self.error = error


def no_ideas(event: ev.NodeExpanded) -> IdeaSourceError:
    """For a run that cannot go on, because every source failed and no other node has ideas."""
    said = "; ".join(event.failures) if isinstance(event.failures, list) else ""
    return IdeaSourceError(
        f"paused: no ideas for {event.node_id}: {said}. Nothing was decided; put that right and "
        "run the same command again"
    )


def depends(manifest: Manifest, node: Node, others: Iterable[Generation]) -> bool:
    """Whether ideas for a node can be chosen only when those of the others are known."""
    being_asked = [manifest.nodes[other.node_id] for other in others]
    if manifest.dedupe_scope == "global":
        return bool(being_asked)
    above = {each.node_id for each in ancestors(manifest, node)}
    return any(
        other.node_id in above
        or node.node_id in {each.node_id for each in ancestors(manifest, other)}
        for other in being_asked
    )
