"""Nodes: the scored states of a search, as evaluations see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Node:
    """A scored state of the search. It refers to its parent only, so its path can be pickled.

    Attributes:
        number: The number of its task; 0 for the root.
        parent: The node above; None for the root.
        depth: The number of steps from the root.
        action: The way in which it was grown, if the search has several.
        score: The score; None for a root without one.
        scores: The numbers by config, if the score has them.
        value: The score as a number of which larger is better.
        data: The JSON value that was recorded with it. Each access returns a new copy, so an
            evaluation that changes it does not change the node.
    """

    __slots__ = (
        "_data",
        "_json",
        "action",
        "depth",
        "number",
        "parent",
        "score",
        "scores",
        "value",
    )

    def __init__(
        self,
        number: int,
        parent: Node | None,
        *,
        action: str | None = None,
        score: float | None = None,
        scores: Mapping[str, float] | None = None,
        value: float = 0.0,
        data: Any = None,
    ) -> None:
        self.number = number
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.action = action
        self.score = score
        self.scores = scores
        self.value = value
        can_change = isinstance(data, list | dict)
        self._json = msgspec.json.encode(data) if can_change else None
        self._data: Any = None if can_change else data

    @property
    def data(self) -> Any:
        """A copy of the JSON value that was recorded with the node."""
        return self._data if self._json is None else msgspec.json.decode(self._json)

    def path(self) -> list[Node]:
        """Return the nodes from the root to this node."""
        upwards: list[Node] = []
        node: Node | None = self
        while node is not None:
            upwards.append(node)
            node = node.parent
        return upwards[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path as a list: nested pickles of a deep path would recurse too deeply."""
        return _restore, ([_state(node) for node in self.path()],)

    def __repr__(self) -> str:
        return f"Node({self.number}, depth={self.depth}, score={self.score})"


def _state(node: Node) -> tuple[int, dict[str, Any]]:
    return node.number, {
        "action": node.action,
        "score": node.score,
        "scores": node.scores,
        "value": node.value,
        "data": node.data,
    }


def _restore(path: list[tuple[int, dict[str, Any]]]) -> Node:
    node: Node | None = None
    for number, fields in path:
        node = Node(number, node, **fields)
    assert node is not None
    return node
