"""Nodes and ideas that the user asked for, in a search by policy. Pure.

The policy chooses a node. The user can name the node that comes next, ideas that come first, and
ideas that must not be tried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from treewright.search.tree import Status, Tree
from treewright.tree.records.model import IdeaRecord, Manifest, Node
from treewright.tree.records.steering import Steering, applied

Growth = Literal["grows", "later", "never"]


class NodeRequests:
    """Nodes that the user asked for, before any that the policy chooses."""

    def __init__(self) -> None:
        self._next: deque[tuple[str, int]] = deque()

    @classmethod
    def of(cls, manifest: Manifest) -> NodeRequests:
        """Return the requests of a run's records that are not fulfilled yet."""
        requests, records = cls(), deque(applied(manifest.steering))
        for number, evaluation in enumerate(manifest.evaluations.values(), start=1):
            while records and records[0].evaluations < number:
                requests.add(records.popleft())
            requests.use(evaluation.parent_node_id)
        for record in records:
            requests.add(record)
        return requests

    def add(self, record: Steering) -> None:
        command = record.command
        if record.node_id is None or (command.action != "boost" and record.idea_path is None):
            return
        request = (record.node_id, command.times)
        if command.first:
            self._next.appendleft(request)
        else:
            self._next.append(request)

    def next_node(self, state: Callable[[str], Growth]) -> str | None:
        """Return the requested node that comes next. A node that takes no further idea loses its
        request; one with an outcome that no choice may know yet waits."""
        while self._next and state(self._next[0][0]) == "never":
            self._next.popleft()
        if self._next and state(self._next[0][0]) == "grows":
            return self._next[0][0]
        return None

    def use(self, node_id: str) -> None:
        """Count a choice of this node against its request."""
        for place, (name, times) in enumerate(self._next):
            if name == node_id:
                self._next[place] = (name, times - 1)
                if times == 1:
                    del self._next[place]
                return


def growth(tree: Tree, number: int) -> Growth:
    """Return whether the node of a choice can take another child, as far as the tree knows."""
    branch = tree.branches[number]
    if branch.status is Status.PENDING or number in tree.suspended:
        return "later"
    return "grows" if tree.can_grow(branch) else "never"


def choose_next_idea(
    node: Node, tried: Collection[str], by_hand: Sequence[str], banned: Collection[str]
) -> IdeaRecord | None:
    """Return the idea of a node that is tried next: the user's first, none that is banned."""
    there = {idea.path: idea for idea in node.ideas if idea.path not in (*tried, *banned)}
    own = [there[path] for path in by_hand if path in there]
    return next(iter([*own, *there.values()]), None)
