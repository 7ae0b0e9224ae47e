"""The estimate on the terminal, and times and workers in the report."""

from __future__ import annotations

import pytest

from tests.parallel.harness import REAL, search
from treewright.cli.tree_progress import Pace
from treewright.tree.records.store import load
from treewright.tree.report import write_report
from treewright.tree.run.parallelism import Parallelism


def test_no_estimate_before_the_first_outcome():
    assert Pace().estimate([3.0], 7) is None


@pytest.mark.parametrize(
    ("elapsed", "waiting", "left"),
    [
        ([], 0, 0.0),
        ([2.0, 2.0], 0, 8.0),  # both need another eight seconds
        ([0.0, 0.0], 4, 30.0),  # three rounds of ten
        ([25.0], 0, 0.0),  # overdue: expected at any moment
    ],
)
def test_the_estimate_counts_running_and_queued_evaluations(elapsed, waiting, left):
    pace = Pace(most_at_once=2)
    pace.add(8.0)
    pace.add(12.0)
    assert pace.estimate(elapsed, waiting) == left


def test_the_report_has_times_attempts_wait_worker_and_a_picture_of_each_depth(toy):
    run_dir = search(toy.path, "run", REAL, parallelism=Parallelism(3))
    text = write_report(run_dir, load(run_dir)).read_text()
    for column in ("attempts", "waited", "took", "worker"):
        assert column in text
    assert "thread-" in text
    pictures = sorted(path.name for path in run_dir.rglob("gantt_depth_*.svg"))
    assert pictures == ["gantt_depth_1.svg", "gantt_depth_2.svg"]
