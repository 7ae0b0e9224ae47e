"""A run made by version 0.1.0, as it was left: it opens, reports and validates as it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.records import store
from treewright.tree.records.description import best_node, describe
from treewright.tree.report import write_report
from treewright.tree.validation import validate

RELEASED = Path(__file__).with_name("released_run")


@pytest.fixture
def released(toy: ToyRepository) -> Path:
    run_dir = toy.run_dir("run")
    shutil.copytree(RELEASED, run_dir)
    return run_dir


def test_it_validates_by_the_rule_it_was_made_with(toy: ToyRepository, released: Path) -> None:
    assert "scoring_rule" not in json.loads((released / "manifest.json").read_text())
    assert store.load(released).scoring_rule == 1
    assert validate(released, toy.path) == []


def test_its_journal_alone_gives_the_same(toy: ToyRepository, released: Path) -> None:
    before = describe(store.load(released), released)
    (released / "manifest.json").unlink()
    assert describe(store.load(released), released) == before


def test_its_report_can_be_written(toy: ToyRepository, released: Path, treewright) -> None:
    done = treewright("tree", "--report-only", "--tree-run-id", "run", "--repo", str(toy.path))
    assert done.returncode == 0, done.stderr
    best = best_node(store.load(released))
    assert best.node_id in write_report(released, store.load(released)).read_text()
