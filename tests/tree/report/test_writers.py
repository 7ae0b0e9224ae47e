"""Pictures and the layout of the tree."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tree.report.sample import small
from treewright.tree.report.gantt import draw_gantt
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import draw_score_chart
from treewright.tree.report.tree_picture import draw_tree, spread_tops


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    run_dir: Path = tmp_path_factory.mktemp("sample")
    return Facts.of(run_dir, small(run_dir))


any_text = st.text(st.characters(codec=None), max_size=200)


@given(st.lists(any_text, min_size=1, max_size=5))
def test_pictures_are_well_formed_for_any_titles(sample: Facts, texts: list[str]) -> None:
    titles = {path: texts[place % len(texts)] for place, path in enumerate(sorted(sample.titles))}
    facts = dataclasses.replace(sample, titles=titles)
    pictures = [draw_tree(facts), draw_score_chart(facts)]
    pictures += [picture for d in facts.manifest.depths if (picture := draw_gantt(facts, d))]
    for picture in pictures:
        ElementTree.fromstring(picture.encode("utf-8"))


@given(st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(1, 500)), max_size=40))
def test_settled_groups_do_not_overlap(groups: list[tuple[float, float]]) -> None:
    wanted, heights = [g[0] for g in groups], [g[1] for g in groups]
    tops = spread_tops(wanted, heights)
    for (top, height), below in pairwise([*zip(tops, heights, strict=True), (math.inf, 0)]):
        assert top + height <= below[0] + 1e-6


def test_groups_that_do_not_meet_stay_where_they_want_to_be() -> None:
    assert spread_tops([0.0, 50.0, 200.0], [10.0, 10.0, 10.0]) == [0.0, 50.0, 200.0]
