"""What steering means for a search without a barrier: whose turn it is, and which idea. Pure.

A policy chooses a node. Somebody may have said which node comes next, which ideas come first, and
which are not to be tried at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from treewright.search.tree import Status, Tree
from treewright.tree.records.model import IdeaRecord, Manifest, Node
from treewright.tree.records.steering import Steering, applied

Growth = Literal["grows", "later", "never"]


class Turns:
    """Nodes whose turn it is by somebody's word, before any that the policy chooses."""

    def __init__(self) -> None:
        self._next: deque[tuple[str, int]] = deque()

    @classmethod
    def of(cls, manifest: Manifest) -> Turns:
        """Those that are left of a run's records."""
        turns, records = cls(), deque(applied(manifest.steering))
        for number, evaluation in enumerate(manifest.evaluations.values(), start=1):
            while records and records[0].evaluations < number:
                turns.add(records.popleft())
            turns.take(evaluation.parent_node_id)
        for record in records:
            turns.add(record)
        return turns

    def add(self, record: Steering) -> None:
        command = record.command
        if record.node_id is None or (command.action != "boost" and record.idea_path is None):
            return
        turn = (record.node_id, command.times)
        if command.first:
            self._next.appendleft(turn)
        else:
            self._next.append(turn)

    def whose(self, state: Callable[[str], Growth]) -> str | None:
        """The node whose turn it is. One that takes no further idea has lost its turn; one whose
        outcome no choice may know yet waits for it."""
        while self._next and state(self._next[0][0]) == "never":
            self._next.popleft()
        if self._next and state(self._next[0][0]) == "grows":
            return self._next[0][0]
        return None

    def take(self, node_id: str) -> None:
        """A choice was made for that node."""
        for place, (name, times) in enumerate(self._next):
            if name == node_id:
                self._next[place] = (name, times - 1)
                if times == 1:
                    del self._next[place]
                return


def growth(tree: Tree, number: int) -> Growth:
    """Whether the node of that choice can take a further one, as far as the tree knows."""
    branch = tree.branches[number]
    if branch.status is Status.PENDING or number in tree.suspended:
        return "later"
    return "grows" if tree.can_grow(branch) else "never"


def next_idea(
    node: Node, tried: Collection[str], by_hand: Sequence[str], banned: Collection[str]
) -> IdeaRecord | None:
    """The idea of a node that is tried next: those added by hand first, none that is banned."""
    there = {idea.path: idea for idea in node.ideas if idea.path not in (*tried, *banned)}
    own = [there[path] for path in by_hand if path in there]
    return next(iter([*own, *there.values()]), None)
