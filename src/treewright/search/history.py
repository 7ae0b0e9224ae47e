"""The state of a search that its lines add up to: tree, nodes, failures, budget.

Lines have the same effect when they are written and when they are read again, so a search has the
same state before and after a crash. Nothing here touches a file, a clock or a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from treewright.kernel.errors import StorageError, UsageError
from treewright.search import policies, scores
from treewright.search.node import Node
from treewright.search.policies import Choice
from treewright.search.search_journal import (
    BudgetSet,
    Chosen,
    Created,
    Failed,
    Line,
    Retried,
    Settings,
    Told,
    name_of,
)
from treewright.search.sequencer import Outcome, Sequencer
from treewright.search.tree import Branch, Tree

_COLUMNS = (
    "number", "parent", "depth", "action", "state", "score", "attempts", "reason", "data",
)  # fmt: skip


class History:
    """The state of a search.

    Attributes:
        nodes: The node of each scored task, by number.
        failures: The reason of each failed task, by number.
        attempts: How often a task was handed out, for tasks handed out more than once.
    """

    def __init__(self, settings: Settings, budget: int | None = None) -> None:
        self.settings = settings
        self.budget = budget
        self.policy = policies.make(settings.policy, settings.options)
        self.root = _root_node(settings)
        self.best: Node | None = self.root if self.root.score is not None else None
        self.nodes: dict[int, Node] = {}
        self.failures: dict[int, str] = {}
        self.attempts: dict[int, int] = {}
        self._configs = self.root.scores
        tree = Tree(
            self.root,
            branching=settings.branching,
            actions=settings.actions,
            sums_subtrees=self.policy.sums_subtrees,
        )
        self.sequencer = Sequencer(
            tree, self.policy, settings.seed, settings.order, settings.lookahead
        )

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Self:
        """Return the state of a search that was begun.

        Raises:
            StorageError: The lines contradict each other.
        """
        created = next(line for line in lines if isinstance(line, Created))
        history = cls(created.settings)
        history.apply_all(lines)
        return history

    # -- state ----------------------------------------------------------------------------

    @property
    def scored(self) -> list[Node]:
        """Every node with a score, in the order of choosing; the root first if it has one."""
        first = [self.root] if self.root.score is not None else []
        return first + [self.nodes[number] for number in sorted(self.nodes)]

    @property
    def evaluations(self) -> int:
        """How many tasks have an outcome."""
        return len(self.nodes) + len(self.failures)

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no further choice."""
        return self.budget is not None and self.sequencer.made >= self.budget

    @property
    def is_over(self) -> bool:
        """Whether no task is under way and no further one will be chosen."""
        return not self.sequencer.under_way and (self.is_spent or self.sequencer.is_over)

    def has_outcome(self, number: int) -> bool:
        """Return whether a task has a node or a failure."""
        return number in self.nodes or number in self.failures

    def pending(self) -> Iterator[Branch]:
        """Yield the choices without an outcome."""
        for branch in self.sequencer.tree.branches[1:]:
            if not self.has_outcome(branch.number):
                yield branch

    def check_pending(self, number: int) -> None:
        """Raise UsageError unless a task exists and has no outcome."""
        if not 1 <= number <= self.sequencer.made:
            raise UsageError(f"there is no task {number}")
        if self.has_outcome(number):
            raise UsageError(f"task {number} has an outcome already")

    def check_configs(self, by_config: Mapping[str, float] | None) -> None:
        """Raise UsageError if a score is of another kind than those before."""
        if self._configs is not None:
            if by_config is None:
                raise UsageError("the scores of this search are by config")
            scores.check_configs(by_config, self._configs)
        elif by_config is not None and self.best is not None:
            raise UsageError("the scores of this search are single numbers")

    def columns(self) -> dict[str, list[Any]]:
        """Return every task as a row of a table by columns; see `Search.columns`."""
        rows = [self._row(number) for number in range(1, self.sequencer.made + 1)]
        names = dict.fromkeys(name for row in rows for name in row) or dict.fromkeys(_COLUMNS)
        return {name: [row.get(name) for row in rows] for name in names}

    def _row(self, number: int) -> dict[str, Any]:
        branch, node = self.sequencer.tree.branches[number], self.nodes.get(number)
        reason = self.failures.get(number)
        state = "complete" if node is not None else "failed" if reason is not None else "under way"
        assert branch.parent is not None
        values = (
            number, branch.parent.number, branch.depth, branch.action, state,
            node.score if node is not None else None, self.attempts.get(number, 1), reason,
            node.data if node is not None else None,
        )  # fmt: skip
        row = dict(zip(_COLUMNS, values, strict=True))
        by_config = node.scores if node is not None else None
        return row | {f"score[{name}]": value for name, value in (by_config or {}).items()}

    # -- lines ----------------------------------------------------------------------------

    def apply_all(self, lines: Iterable[Line]) -> None:
        """Apply the lines of a journal.

        Raises:
            StorageError: The lines contradict each other.
        """
        for line in lines:
            try:
                self.apply(line)
            except (UsageError, ValueError) as error:
                raise StorageError(
                    f"the search's journal does not fit together at {name_of(line)}: "
                    f"{error}; it was edited: restore it from a backup"
                ) from None

    def apply(self, line: Line) -> None:
        """Apply a line. A recorded choice is applied as it is; the policy is not asked."""
        match line:
            case Chosen():
                branch = self.sequencer.take(Choice(line.parent, line.action), line.seen)
                if branch.number != line.number:
                    raise ValueError(f"it is choice {branch.number}, not {line.number}")
            case Told():
                self.check_pending(line.number)
                self._apply_score(line)
            case Failed():
                self.check_pending(line.number)
                self.failures[line.number] = line.reason
                outcome = Outcome(None, exhausts_parent=line.exhausts_parent)
                self.sequencer.tell(line.number, outcome)
            case Retried():
                self.attempts[line.number] = line.attempt
            case BudgetSet():
                self.budget = line.evaluations
            case _:  # a returned task is handed out again; settings and owners change no state
                pass

    def _apply_score(self, line: Told) -> None:
        branch = self.sequencer.tree.branches[line.number]
        assert branch.parent is not None
        score, by_config = scores.check(line.score)
        node = Node(
            line.number,
            branch.parent.node,
            action=branch.action,
            score=score,
            scores=by_config,
            value=scores.value(score, self.settings.direction),
            data=line.data,
        )
        self.nodes[line.number] = node
        self._configs = self._configs or by_config
        if self.best is None or _rank(node) < _rank(self.best):
            self.best = node
        outcome = Outcome(node, line.expandable and self._passes(node), line.prior)
        self.sequencer.tell(line.number, outcome)

    def _passes(self, node: Node) -> bool:
        """Return whether a node passes the gate of the search, so that it may get children."""
        parent = node.parent
        if self.settings.gate == "none" or parent is None or parent.score is None:
            return True
        return scores.compare(node, parent, self.settings.direction).is_better


def _root_node(settings: Settings) -> Node:
    if settings.root_score is None:
        return Node(0, None, data=settings.root_data)
    score, by_config = scores.check(settings.root_score)
    value = scores.value(score, settings.direction)
    return Node(0, None, score=score, scores=by_config, value=value, data=settings.root_data)


def _rank(node: Node) -> tuple[float, int]:
    return (-node.value, node.number)
