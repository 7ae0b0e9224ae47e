"""Looking at a search: what everybody may ask of it, from any thread, at any time."""

from __future__ import annotations

import threading
from typing import Any

from treewright.search import records, scores
from treewright.search.book import Book
from treewright.search.history import History
from treewright.search.policies import Policy
from treewright.search.scores import Comparison
from treewright.search.tree import Node


class Looking:
    """The part of a `Search` that changes nothing."""

    _book: Book
    _changed: threading.Condition

    @property
    def settings(self) -> records.Settings:
        """What the choices depend on; fixed once the search has begun."""
        return self._book.history.settings

    @property
    def policy(self) -> Policy:
        return self._book.history.policy

    @property
    def budget(self) -> int | None:
        """The most evaluations; None is no limit. Changed by `set_budget`, which records it."""
        return self._book.history.budget

    @property
    def root(self) -> Node:
        return self._book.history.root

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way and nothing will be chosen."""
        with self._changed:
            return self._book.history.is_over

    @property
    def nodes(self) -> list[Node]:
        """Every node with a score, in the order of choosing; the root first if it has one."""
        with self._changed:
            return self._book.history.scored

    @property
    def best(self) -> Node | None:
        """The best node so far, the older of equals; None before the first score."""
        with self._changed:
            return self._book.history.best

    @property
    def evaluations(self) -> int:
        """How many tasks have an outcome."""
        with self._changed:
            return self._book.history.evaluations

    @property
    def under_way(self) -> int:
        """How many tasks were asked for and have no outcome."""
        with self._changed:
            return self._book.history.sequencer.under_way

    @property
    def failures(self) -> dict[int, str]:
        """Why tasks failed, by their numbers."""
        with self._changed:
            return dict(self._book.history.failures)

    def compare(self, node: Node, other: Node) -> Comparison:
        """How much better `node` is than `other`: pair by pair where scores are by config."""
        return scores.compare(node, other, self.settings.direction)

    def columns(self) -> dict[str, list[Any]]:
        """Every task by column, in the order of choosing, for `pandas.DataFrame` and the like.

        `state` is `complete`, `failed` or `under way`; `attempts` counts how often it was handed
        out. Scores by config have a column each beside their mean: `score[config]`.
        """
        with self._changed:
            rows = [_row(self._book.history, number) for number in self._book.history.numbers()]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in (names or dict.fromkeys(_NAMES))}


_NAMES = (
    "number", "parent", "depth", "action", "state", "score", "attempts", "reason", "data",
)  # fmt: skip


def _row(history: History, number: int) -> dict[str, Any]:
    branch, node = history.sequencer.tree.branches[number], history.nodes.get(number)
    reason = history.failures.get(number)
    state = "complete" if node is not None else "failed" if reason is not None else "under way"
    assert branch.parent is not None
    values = (
        number, branch.parent.number, branch.depth, branch.action, state,
        node.score if node is not None else None, history.attempts.get(number, 1), reason,
        node.data if node is not None else None,
    )  # fmt: skip
    row = dict(zip(_NAMES, values, strict=True))
    by_config = node.scores if node is not None else None
    return row | {f"score[{name}]": value for name, value in (by_config or {}).items()}
