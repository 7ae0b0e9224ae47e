"""A search of `treewright.open_search` as columns and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from treewright.kernel.clock import seconds_between
from treewright.kernel.text.charts import Series, line_chart
from treewright.runs.columns import Columns, Picture, page
from treewright.search import search_journal
from treewright.search.history import History

_NODE = ("number", "parent", "depth", "action", "score", "status", "reason", "data", "at")


@dataclass(frozen=True)
class SearchRun:
    """A search at the time of reading."""

    path: Path
    history: History
    lines: tuple[search_journal.Line, ...]
    kind: Literal["search"] = "search"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the search in a directory."""
        lines = search_journal.read(path)
        return cls(path, History.of(lines), tuple(lines))

    @property
    def run_id(self) -> str:
        """Return the name of the search's directory."""
        return self.path.name

    @property
    def is_finished(self) -> bool:
        """Return whether the budget is used up or the search was ended."""
        return self.history.is_over

    @property
    def best(self) -> dict[str, Any] | None:
        """Return the row of `nodes` with the best score, or None."""
        best = self.history.best
        if best is None:
            return None
        return next(row for row in self.nodes.rows() if row["number"] == best.number)

    @cached_property
    def nodes(self) -> Columns:
        """Return a row for the root and for each task, in the order of choosing."""
        history = self.history
        ends = dict(self.outcomes())
        rows: list[tuple[Any, ...]] = []
        for branch in history.sequencer.tree.branches:
            number, node = branch.number, history.nodes.get(branch.number)
            if number == 0:
                node = history.root
            reason = history.failures.get(number)
            status = "scored" if node else "failed" if reason is not None else "under way"
            parent = branch.parent
            rows.append(
                (
                    number, parent.number if parent else None, branch.depth, branch.action,
                    node.score if node else None, status if number else "root", reason,
                    node.data if node else None, ends.get(number),
                )
            )  # fmt: skip
        return Columns.of(_NODE, rows)

    def outcomes(self) -> list[tuple[int, str]]:
        """Return the tasks with the times of their outcomes, in the order of the outcomes."""
        ended = (search_journal.Told, search_journal.Failed)
        return [(line.number, line.at) for line in self.lines if isinstance(line, ended)]

    @property
    def began(self) -> str:
        """Return the time at which the search was created."""
        return next(line.at for line in self.lines if isinstance(line, search_journal.Created))

    def seconds(self, at: str) -> float:
        """Return the seconds from the start of the search to a time."""
        return seconds_between(self.began, at) or 0.0

    def scores(self) -> Picture:
        """Return a chart of the best score by outcome."""
        sign = 1.0 if self.history.settings.direction == "maximize" else -1.0
        points: list[tuple[float, float]] = []
        best: float | None = self.history.root.score
        for count, (number, _) in enumerate(self.outcomes(), 1):
            node = self.history.nodes.get(number)
            if node is not None and node.score is not None:
                better = best is None or sign * node.score > sign * best
                best = node.score if better else best
            if best is not None:
                points.append((float(count), best))
        series = [Series("best so far", points, steps=True)]
        return Picture(line_chart(f"Best score, {self.run_id}", series, "evaluations", "score"))

    def _repr_html_(self) -> str:
        return page(f"search {self.run_id}", self._shown(), self.scores())

    def __repr__(self) -> str:
        return f"SearchRun({self.run_id!r}, {self._shown()})"

    def _shown(self) -> dict[str, Any]:
        best = self.history.best
        return {
            "policy": self.history.settings.policy,
            "evaluations": self.history.evaluations,
            "failed": len(self.history.failures),
            "best": f"{best.score:.6g}" if best is not None and best.score is not None else "none",
        }
