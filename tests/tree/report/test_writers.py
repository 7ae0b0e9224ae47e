"""The small writers: Markdown, SVG, layout, numbers."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tree.report.sample import small
from treewright.tree.report import axis, markdown, numbers, svg
from treewright.tree.report.facts import Facts
from treewright.tree.report.gantt import gantt
from treewright.tree.report.score_chart import score_chart
from treewright.tree.report.tree_layout import settle
from treewright.tree.report.tree_picture import tree_picture


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    run_dir: Path = tmp_path_factory.mktemp("sample")
    return Facts.of(run_dir, small(run_dir))


any_text = st.text(st.characters(codec=None), max_size=200)


@given(any_text)
def test_svg_is_well_formed_for_any_text(text: str) -> None:
    parts = [svg.text(1, 2, text), svg.group([], text), svg.tag("a", href=text)]
    document = svg.document(10, 10, text, parts)
    ElementTree.fromstring(document.encode("utf-8"))


@given(st.lists(any_text, min_size=1, max_size=5))
def test_pictures_are_well_formed_for_any_titles(sample: Facts, texts: list[str]) -> None:
    titles = {path: texts[place % len(texts)] for place, path in enumerate(sorted(sample.titles))}
    facts = dataclasses.replace(sample, titles=titles)
    pictures = [tree_picture(facts), score_chart(facts)]
    pictures += [picture for d in facts.manifest.depths if (picture := gantt(facts, d))]
    for picture in pictures:
        ElementTree.fromstring(picture.encode("utf-8"))


@given(any_text)
def test_escaped_markdown_stays_in_its_cell(text: str) -> None:
    for cell in (markdown.escape(text), markdown.code(text)):
        row = markdown.table(["a", "b"], [[cell, "x"]]).split("\n")[2:]
        assert len(row) == 1
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row[0])) == 3
        cell.encode("utf-8")


@given(any_text)
def test_escaped_markdown_has_no_html(text: str) -> None:
    assert not set("<>") & set(markdown.escape(text))


@given(st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(1, 500)), max_size=40))
def test_settled_groups_do_not_overlap(groups: list[tuple[float, float]]) -> None:
    wanted, heights = [g[0] for g in groups], [g[1] for g in groups]
    tops = settle(wanted, heights)
    for (top, height), below in pairwise([*zip(tops, heights, strict=True), (math.inf, 0)]):
        assert top + height <= below[0] + 1e-6


def test_groups_that_do_not_meet_stay_where_they_want_to_be() -> None:
    assert settle([0.0, 50.0, 200.0], [10.0, 10.0, 10.0]) == [0.0, 50.0, 200.0]


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ticks_cover_the_range(low: float, span: float) -> None:
    marks = axis.ticks(low, low + span)
    assert marks[0] <= low + 1e-6 * abs(low)
    assert marks[-1] >= low + span - 1e-6 * (abs(low) + span)
    assert 2 <= len(marks) <= 16


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.00 s"), (9.99, "9.99 s"), (59.6, "1 min 00 s"), (7_830, "2 h 10 min"), (None, "–")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert numbers.seconds(seconds) == text
