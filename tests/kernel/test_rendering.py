"""The small writers: Markdown, SVG, ticks, numbers."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.kernel.text import markdown, numbers, svg

any_text = st.text(st.characters(codec=None), max_size=200)


@given(any_text)
def test_svg_is_well_formed_for_any_text(text: str) -> None:
    parts = [svg.text(1, 2, text), svg.group([], text), svg.tag("a", href=text)]
    document = svg.document(10, 10, text, parts)
    ElementTree.fromstring(document.encode("utf-8"))


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


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ticks_cover_the_range(low: float, span: float) -> None:
    marks = svg.ticks(low, low + span)
    assert marks[0] <= low + 1e-6 * (abs(low) + span)
    assert marks[-1] >= low + span - 1e-6 * (abs(low) + span)
    assert 2 <= len(marks) <= 16


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.00 s"), (9.99, "9.99 s"), (59.6, "1 min 00 s"), (7_830, "2 h 10 min"), (None, "–")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert numbers.seconds(seconds) == text


@pytest.mark.parametrize(
    ("share", "shown"),
    [(-0.001, "0 %"), (0.0, "0 %"), (0.254, "25 %"), (-1.0, "-100 %"), (None, "–")],
)
def test_a_share_that_rounds_to_nothing_has_no_sign(share: float | None, shown: str) -> None:
    assert numbers.whole_percent(share) == shown
