"""A scored state of a search, as evaluations see it: it knows the way to the root and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Node:
    """A scored state of the search. Refers upwards only, so a path can be sent elsewhere.

    `data` is made anew whenever it is looked at: an evaluation that changes what it was given
    changes nothing for the next, as after a crash or on another machine.
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
        return self._data if self._json is None else msgspec.json.decode(self._json)

    def path(self) -> list[Node]:
        """From the root to this node."""
        upwards: list[Node] = []
        node: Node | None = self
        while node is not None:
            upwards.append(node)
            node = node.parent
        return upwards[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Its path as a list: pickled as they refer, a deep one would be too much recursion."""
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
