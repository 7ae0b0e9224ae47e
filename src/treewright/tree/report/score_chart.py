"""A chart of score by depth: every measured candidate, the promoted ones, and the best so far."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.kernel.text import numbers, svg
from treewright.kernel.text.svg import ticks
from treewright.tree.records.model import Evaluation, Recommendation
from treewright.tree.report.run_facts import Facts

_WIDTH = 720.0
_HEIGHT = 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 24.0, 56.0, 44.0
_SPREAD = 0.3


def draw_score_chart(facts: Facts) -> str:
    """Return an SVG document."""
    chart = _Chart(facts)
    title = f"Root-relative score by depth, run {facts.manifest.tree_run_id}"
    parts = [
        *chart.axes(),
        chart.candidates(),
        chart.best_so_far(),
        *chart.promoted(),
        *_legend(),
    ]
    return svg.document(_WIDTH, _HEIGHT, title, parts)


class _Chart:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._depths = max(1, len(facts.manifest.depths))
        nodes = facts.manifest.nodes.values()
        scores = [0.0, *(score for _, score in self._measured())]
        scores += [node.root_relative.score for node in nodes if node.root_relative]
        self._ticks = ticks(min(scores), max(max(scores), min(scores) + 0.01))

    def _measured(self) -> Iterator[tuple[float, float]]:
        """Yield depth and score of every measured candidate that is not a node.

        The depth is shifted by a deterministic offset, so that dots do not overlap.
        """
        for record in self._facts.manifest.depths:
            count = len(record.eval_ids)
            for index, eval_id in enumerate(record.eval_ids):
                found = measured(self._facts.manifest.evaluations[eval_id])
                if found is not None:
                    offset = (index + 0.5) / count - 0.5
                    yield record.depth + 2 * _SPREAD * offset, found.score

    def _x(self, depth: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (depth + 0.2) / (self._depths + 0.6)

    def _y(self, score: float) -> float:
        low, high = self._ticks[0], self._ticks[-1]
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (score - low) / (high - low)

    def axes(self) -> Iterator[str]:
        for tick in self._ticks:
            y = self._y(tick)
            class_ = "edge" if tick == 0 else "axis"
            yield svg.tag(
                "path", class_=class_, d=f"M{_LEFT:g} {svg.number(y)}H{_WIDTH - _RIGHT:g}"
            )
            yield svg.text(_LEFT - 8, y + 4, _percent(tick, self._ticks), "soft small end")
        every = -(-(self._depths + 1) // 24)
        for depth in range(0, self._depths + 1, every):
            name = "root" if depth == 0 else str(depth)
            yield svg.text(self._x(depth), _HEIGHT - _BOTTOM + 18, name, "soft small middle")
        yield svg.text((_WIDTH + _LEFT) / 2, _HEIGHT - 8, "depth", "soft small middle")
        yield svg.text(_LEFT - 46, 20, "root-relative score", "strong")

    def candidates(self) -> str:
        """Return one path for all dots, because ten thousand elements would be slow to draw."""
        dots = "".join(
            f"M{svg.number(self._x(depth))} {svg.number(self._y(score))}h0"
            for depth, score in self._measured()
        )
        return svg.tag("path", class_="dots", d=dots) if dots else ""

    def best_so_far(self) -> str:
        points = [(0.0, 0.0)]
        best = 0.0
        nodes = self._facts.manifest.nodes
        for record in self._facts.manifest.depths:
            for node_id in record.promoted:
                found = nodes[node_id].root_relative
                best = max(best, found.score) if found else best
            points.append((float(record.depth), best))
        path = "L".join(f"{svg.number(self._x(d))} {svg.number(self._y(s))}" for d, s in points)
        return svg.tag("path", class_="bestline", d=f"M{path}")

    def promoted(self) -> Iterator[str]:
        on_path = self._facts.on_path
        for node in self._facts.manifest.nodes.values():
            score = node.root_relative.score if node.root_relative else 0.0
            yield svg.group(
                [
                    svg.tag(
                        "circle",
                        class_="best" if node.node_id in on_path else "good",
                        cx=self._x(node.depth),
                        cy=self._y(score),
                        r=5.0,
                    )
                ],
                f"{node.node_id}: {self._facts.node_title(node)}\nscore {numbers.percent(score)}",
            )


def measured(evaluation: Evaluation) -> Recommendation | None:
    """Return the root-relative result of a candidate that was measured and not promoted."""
    found = evaluation.root_relative
    promoted = evaluation.decision is not None and evaluation.decision.fate == "promoted"
    if promoted or evaluation.error is not None or found is None or found.primary_gain is None:
        return None
    return found


def _percent(tick: float, all_ticks: list[float]) -> str:
    step = 100 * (all_ticks[1] - all_ticks[0])
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 3
    return f"{100 * tick:.{digits}f} %".replace("-", "−")


def _legend() -> Iterator[str]:
    x = _LEFT + 130
    marks = (
        (svg.tag("path", class_="bestline", d="M-10 0H10"), "best so far", 100),
        (svg.tag("circle", class_="best", r=5.0), "best path", 88),
        (svg.tag("circle", class_="good", r=5.0), "promoted", 88),
        (svg.tag("path", class_="dots", d="M0 0h0"), "measured", 80),
    )
    for mark, label, width in marks:
        place = f"translate({svg.number(x)} 16)"
        yield svg.group([mark, svg.text(14, 4, label, "soft small")], transform=place)
        x += width
