"""A picture of the times at which the evaluations of a depth waited and ran, by phase.

Each evaluation has a row. If there are too many evaluations, each slot of a worker has a row
instead, so that the height of the picture is bounded by the number of slots.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from treewright.kernel.text import numbers, svg
from treewright.kernel.text.svg import ticks
from treewright.tree.records.model import DepthRecord, Evaluation
from treewright.tree.report import reasons
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.tables import PHASES

_WIDTH = 900.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 150.0, 28.0, 58.0, 34.0
_MOST_ROWS = 100
_MOST_TOOLTIPS = 1000
_ROW = 20.0
_BAR = 12.0


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of an evaluation: its times in seconds since the depth began, and its row."""

    evaluation: Evaluation
    queued: float
    started: float
    finished: float
    row: int
    label: str


def draw_gantt(facts: Facts, record: DepthRecord) -> str | None:
    """Return an SVG document; None if no evaluation of the depth has run."""
    evaluations = [facts.manifest.evaluations[eval_id] for eval_id in record.eval_ids]
    bars = _bars([e for e in evaluations if e.started_at and e.finished_at])
    if not bars:
        return None
    rows = max(bar.row for bar in bars) + 1
    marks = ticks(0.0, max(bar.finished for bar in bars), 8)
    height = _TOP + rows * _ROW + _BOTTOM
    title = f"Evaluations of depth {record.depth}, run {facts.manifest.tree_run_id}"
    drawing = _Drawing(marks[-1], height, with_marks=len(bars) <= _MOST_ROWS)
    parts = [*drawing.axis(marks), *_legend(record.depth), *drawing.labels(bars)]
    tooltips = len(bars) <= _MOST_TOOLTIPS
    parts += [drawing.bar(bar, facts.title(bar.evaluation) if tooltips else "") for bar in bars]
    return svg.document(_WIDTH, height, title, parts)


def _bars(evaluations: Sequence[Evaluation]) -> list[Bar]:
    spans = []
    for evaluation in evaluations:
        started, finished = _instant(evaluation.started_at), _instant(evaluation.finished_at)
        queued = min(_instant(evaluation.queued_at or evaluation.started_at), started)
        spans.append((evaluation, queued, started, max(started, finished)))
    if not spans:
        return []
    zero = min(queued for _, queued, _, _ in spans)
    rows = [
        (row, f"{evaluation.eval_id}  {evaluation.worker or ''}".rstrip())
        for row, (evaluation, *_) in enumerate(spans)
    ]
    if len(spans) > _MOST_ROWS:
        rows = _slots(spans)
    return [
        Bar(evaluation, queued - zero, started - zero, finished - zero, *row)
        for (evaluation, queued, started, finished), row in zip(spans, rows, strict=True)
    ]


def _slots(spans: Sequence[tuple[Evaluation, float, float, float]]) -> list[tuple[int, str]]:
    """Each worker's evaluations on as few rows as never overlap."""
    by_worker: dict[str, list[int]] = {}
    for index, (evaluation, *_) in enumerate(spans):
        by_worker.setdefault(evaluation.worker or "", []).append(index)
    placed: dict[int, tuple[int, str]] = {}
    base = 0
    for worker in sorted(by_worker):
        free: list[tuple[float, int]] = []
        used = 0
        for index in sorted(by_worker[worker], key=lambda i: (spans[i][2], i)):
            _, _, started, finished = spans[index]
            if free and free[0][0] <= started:
                slot = heapq.heappop(free)[1]
            else:
                slot, used = used, used + 1
            heapq.heappush(free, (finished, slot))
            placed[index] = (base + slot, worker if used == 1 else f"{worker} / {slot + 1}")
        base += used
    return [placed[index] for index in range(len(spans))]


class _Drawing:
    def __init__(self, longest: float, height: float, with_marks: bool) -> None:
        self._scale = (_WIDTH - _LEFT - _RIGHT) / longest
        self._height = height
        self._with_marks = with_marks

    def _x(self, moment: float) -> float:
        return _LEFT + moment * self._scale

    def axis(self, marks: list[float]) -> Iterator[str]:
        for mark in marks:
            x = svg.number(self._x(mark))
            line = f"M{x} {_TOP - 8:g}V{svg.number(self._height - _BOTTOM)}"
            yield svg.tag("path", class_="axis", d=line)
            place = (self._x(mark), self._height - _BOTTOM + 16)
            yield svg.text(*place, _time(mark, marks[-1]), "soft small middle")

    def labels(self, bars: list[Bar]) -> Iterator[str]:
        seen: dict[int, str] = {}
        for bar in bars:
            seen[bar.row] = max(seen.get(bar.row, ""), bar.label)
        for row, label in sorted(seen.items()):
            y = _TOP + row * _ROW + _ROW / 2 + 4
            yield svg.text(_LEFT - 10, y, svg.clip(label, 22), "soft small end")

    def bar(self, bar: Bar, title: str) -> str:
        y = _TOP + bar.row * _ROW + (_ROW - _BAR) / 2
        parts = []
        if self._with_marks and bar.started > bar.queued:
            middle = svg.number(y + _BAR / 2)
            line = f"M{svg.number(self._x(bar.queued))} {middle}H{svg.number(self._x(bar.started))}"
            parts.append(svg.tag("path", class_="wait", d=line))
        parts += self._segments(bar, y)
        if self._with_marks and bar.evaluation.status == "failed":
            x = svg.number(self._x(bar.finished) + 7)
            cross = f"translate({x} {svg.number(y + _BAR / 2)})"
            parts.append(svg.tag("path", class_="cross", d="M-3 -3L3 3M-3 3L3 -3", transform=cross))
        return svg.group(parts, _tooltip(bar, title) if title else "")

    def _segments(self, bar: Bar, y: float) -> Iterator[str]:
        """Yield the phases in order, then the rest of the time as overhead."""
        at = bar.started
        timings = bar.evaluation.timings
        for index, phase in enumerate(PHASES):
            taken = min(timings.get(phase, 0.0), bar.finished - at)
            if taken > 0:
                yield self._rectangle(at, taken, y, f"p{index}")
                at += taken
        if bar.finished > at or at == bar.started:
            yield self._rectangle(at, bar.finished - at, y, "p4")

    def _rectangle(self, start: float, taken: float, y: float, class_: str) -> str:
        """Return a rectangle without `svg.tag`, which is slow for ten thousand evaluations."""
        n = svg.number
        width = max(taken * self._scale, 0.6)
        place = f'x="{n(self._x(start))}" y="{n(y)}" width="{n(width)}" height="{n(_BAR)}"'
        return f'<rect class="{class_}" {place}/>'


def _tooltip(bar: Bar, title: str) -> str:
    evaluation = bar.evaluation
    phases = ", ".join(
        f"{name} {numbers.seconds(taken)}" for name, taken in evaluation.timings.items()
    )
    fate = reasons.describe_fate(evaluation)
    return (
        f"{evaluation.eval_id}: {title}\n{fate}, attempt {evaluation.attempt}\n"
        f"waited {numbers.seconds(bar.started - bar.queued)}, "
        f"took {numbers.seconds(bar.finished - bar.started)}" + (f" ({phases})" if phases else "")
    )


def _legend(depth: int) -> Iterator[str]:
    yield svg.text(16, 22, f"depth {depth}", "strong")
    x = _LEFT
    for index, name in enumerate((*PHASES, "other")):
        box = svg.tag("rect", class_=f"p{index}", x=0.0, y=-9.0, width=10.0, height=10.0)
        place = f"translate({svg.number(x)} 22)"
        yield svg.group([box, svg.text(15, 0, name, "soft small")], transform=place)
        x += 90
    line = svg.tag("path", class_="wait", d="M0 -4H14")
    yield svg.group(
        [line, svg.text(20, 0, "waiting", "soft small")], transform=f"translate({x:g} 22)"
    )
    cross = svg.tag("path", class_="cross", d="M-3 -7L3 -1M-3 -1L3 -7")
    place = f"translate({x + 90:g} 22)"
    yield svg.group([cross, svg.text(10, 0, "failed", "soft small")], transform=place)


def _time(mark: float, longest: float) -> str:
    if longest >= 600:
        return f"{mark / 60:g} min"
    return f"{mark:.3g} s" if mark else "0"


def _instant(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
