"""What the lines of a search add up to: its tree, its nodes, its failures, its budget.

The same when lines are written and when they are read again, so that a search is after a crash
what it was before. Touches no file, clock or thread; `book.py` and `study.py` own those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from treewright.kernel.errors import StorageError, UsageError
from treewright.search import policies, records, scores
from treewright.search.policies import Choice
from treewright.search.sequencer import Outcome, Sequencer
from treewright.search.tree import Branch, Node, Tree


class History:
    """`attempts` counts how often a task was handed out, where that was more than once."""

    def __init__(self, settings: records.Settings, budget: int | None = None) -> None:
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
    def of(cls, lines: Sequence[records.Line]) -> Self:
        """Of a search that was begun. Raises StorageError where lines do not fit together."""
        created = next(line for line in lines if isinstance(line, records.Created))
        history = cls(created.settings)
        history.apply_all(lines)
        return history

    # -- questions ------------------------------------------------------------------------

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
        """Whether nothing is under way and nothing will be chosen."""
        return not self.sequencer.under_way and (self.is_spent or self.sequencer.is_over)

    def numbers(self) -> range:
        """Of all tasks that were chosen."""
        return range(1, self.sequencer.made + 1)

    def has_outcome(self, number: int) -> bool:
        return number in self.nodes or number in self.failures

    def pending(self) -> Iterator[Branch]:
        """Choices without an outcome."""
        for branch in self.sequencer.tree.branches[1:]:
            if not self.has_outcome(branch.number):
                yield branch

    def check_pending(self, number: int) -> None:
        if not 1 <= number <= self.sequencer.made:
            raise UsageError(f"there is no task {number}")
        if self.has_outcome(number):
            raise UsageError(f"task {number} has an outcome already")

    def check_configs(self, by_config: Mapping[str, float] | None) -> None:
        """A search's scores are all of one kind, with the same configs."""
        if self._configs is not None:
            if by_config is None:
                raise UsageError("the scores of this search are by config")
            scores.check_configs(by_config, self._configs)
        elif by_config is not None and self.best is not None:
            raise UsageError("the scores of this search are single numbers")

    # -- lines ----------------------------------------------------------------------------

    def apply_all(self, lines: Iterable[records.Line]) -> None:
        for line in lines:
            try:
                self.apply(line)
            except (UsageError, ValueError) as error:
                raise StorageError(
                    f"the search's journal does not fit together at {records.name_of(line)}: "
                    f"{error}; it was edited: restore it from a backup"
                ) from None

    def apply(self, line: records.Line) -> None:
        """Makes a line true. A choice is taken as it was made: the policy is not asked."""
        match line:
            case records.Chosen():
                branch = self.sequencer.take(Choice(line.parent, line.action), line.seen)
                if branch.number != line.number:
                    raise ValueError(f"it is choice {branch.number}, not {line.number}")
            case records.Told():
                self.check_pending(line.number)
                self._told(line)
            case records.Failed():
                self.check_pending(line.number)
                self.failures[line.number] = line.reason
                outcome = Outcome(None, exhausts_parent=line.exhausts_parent)
                self.sequencer.tell(line.number, outcome)
            case records.Retried():
                self.attempts[line.number] = line.attempt
            case records.BudgetSet():
                self.budget = line.evaluations
            case _:
                pass

    def _told(self, line: records.Told) -> None:
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
        """The gate: whether a node may be grown further."""
        parent = node.parent
        if self.settings.gate == "none" or parent is None or parent.score is None:
            return True
        return scores.compare(node, parent, self.settings.direction).is_better


def _root_node(settings: records.Settings) -> Node:
    if settings.root_score is None:
        return Node(0, None, data=settings.root_data)
    score, by_config = scores.check(settings.root_score)
    value = scores.value(score, settings.direction)
    return Node(0, None, score=score, scores=by_config, value=value, data=settings.root_data)


def _rank(node: Node) -> tuple[float, int]:
    return (-node.value, node.number)
