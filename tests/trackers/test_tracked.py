"""Metrics that a tracker receives: sums that only grow, and points that never change."""

from __future__ import annotations

from pathlib import Path

import pytest

import treewright as package
from tests.toy import ToyRepository, diff_of_line, idea, set_parameter
from tests.tree.test_extending import DRY, go_on
from tests.two_runs import spending
from treewright.trackers.tracked_run import TrackedRun, track_run


def told(run: Path) -> TrackedRun:
    return track_run(package.load_run(run))


def test_failures_are_counted(toy: ToyRepository) -> None:
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    toy.write("ideas/00_help.md", set_parameter("A", 2.5))
    toy.write("ideas/01_break.md", idea("Break it", diff_of_line("nope.txt", "a", "b", 1)))
    toy.commit("one idea that helps and one that cannot be applied")
    go_on(toy.path, ideas_per_node=2, max_depth=2, sweep_config_limit=8, dedupe_scope="none")
    run = told(toy.run_dir("run"))
    failed = [child.params["depth"] for child in run.children if child.state == "failed"]
    assert set(failed) == {1, 2}
    assert [numbers["failed"] for numbers in run.series.values()] == [1, len(failed)]


def test_the_best_score_of_a_search_starts_at_its_root(tmp_path: Path) -> None:
    scores = iter([2.0, 4.0])
    with package.open_search(tmp_path / "s", budget=2, root_score=3.0) as search:
        search.run(lambda _: next(scores))
    series = told(tmp_path / "s").series
    assert {step: numbers["best_score"] for step, numbers in series.items()} == {0: 3, 1: 3, 2: 4}


def test_points_of_a_run_without_a_barrier_never_change(
    toy: ToyRepository,
) -> None:
    shape = DRY | {"ideas_per_node": 2, "max_depth": 2}
    go_on(toy.path, "best-first", max_total_idea_evals=3, **shape)
    early = told(toy.run_dir("run")).series
    go_on(toy.path, max_total_idea_evals=6)
    run = package.load_run(toy.run_dir("run"))
    assert isinstance(run, package.TreeRun)
    late = track_run(run).series
    assert list(late) == [1, 2, 3, 4, 5, 6]
    assert early == {step: late[step] for step in (1, 2, 3)}
    assert late[6]["best_score"] == run.best["score"]
    assert late[6]["promoted"] == len(run.nodes["node_id"]) - 1


@pytest.mark.xdist_group("two-runs")
def test_the_cost_covers_the_whole_run(two_runs: ToyRepository, tmp_path: Path) -> None:
    cent = {"prompt_tokens": 9, "cost_usd": 0.01}
    paid = spending(two_runs.run_dir("one"), tmp_path / "paid", cent)
    run = package.load_run(paid)
    assert isinstance(run, package.TreeRun)
    (numbers,) = track_run(run).series.values()
    assert numbers["cost_usd"] == pytest.approx(0.5 + 3 * 0.01), "its ideas, and evaluations"
    assert numbers["cost_usd"] == pytest.approx(run.manifest.spent.cost_usd)
    free = spending(two_runs.run_dir("one"), tmp_path / "free", cent | {"unpriced_tokens": 1})
    (numbers,) = told(free).series.values()
    assert "cost_usd" not in numbers, "what has no price is not free"
