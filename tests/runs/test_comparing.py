"""Comparing runs: real runs with the command, and the rules on constructed curves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import treewright as package
from tests.dashboard.samples import HOSTILE_TITLE
from tests.toy import ToyRepository
from tests.two_runs import spending
from treewright.kernel.errors import UsageError
from treewright.runs.comparison import (
    ComparedRun,
    Spending,
    Tried,
    at_equal,
    curve,
    difference,
    shared_and_alone,
)
from treewright.runs.comparison_views import charts

pytestmark = pytest.mark.xdist_group("two-runs")
SAMPLES = Path(__file__).parents[1] / "proving" / "sample_runs"


def test_two_searches_of_one_repository_are_compared(treewright, two_runs: ToyRepository) -> None:
    told = treewright("compare", "one", "two", cwd=two_runs.path)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0].split()[:3] == ["run", "best", "score"]
    assert any(line.startswith("  two against one, loss: +") for line in lines)
    assert "ideas: 3 shared, 0 only in one, 5 only in two" in lines
    found = json.loads(treewright("compare", "one", "two", "--json", cwd=two_runs.path).stdout)
    assert found["format_version"] == 1
    one, two = found["runs"]
    assert [one["evaluations"], two["evaluations"]] == [3, 8]
    assert one["points"][0]["best"] == 0
    for run in (one, two):
        assert run["points"][-1]["best"] == run["best"]
        assert [point["evaluations"] for point in run["points"]] == list(
            range(run["evaluations"] + 1)
        )
    equal = {one["axis"]: one for one in found["at_equal"]}
    assert equal["evaluations"]["amount"] == 3
    assert equal["evaluations"]["best"]["one"] == one["best"]
    loss = next(d for d in found["differences"] if d["what"] == "loss")
    assert loss["pairs"] == 8
    assert loss["low"] <= loss["difference"] <= loss["high"]
    heldout = next(d for d in found["differences"] if d["what"] == "loss, held-out configs")
    assert heldout["pairs"] == 4
    assert heldout["difference"] > 0


def test_a_dry_run_is_not_compared_with_a_real_run(two_runs: ToyRepository, tmp_path: Path) -> None:
    one = two_runs.run_dir("one")
    dry = tmp_path / "rehearsal"
    shutil.copytree(one, dry)
    (dry / "manifest.json").unlink()
    events = (dry / "events.jsonl").read_text()
    assert '"dry_run":false' in events
    (dry / "events.jsonl").write_text(events.replace('"dry_run":false', '"dry_run":true'))
    compared = package.compare(one, dry)
    assert compared.differences == ()
    name = compared.runs[1].name
    assert compared.notes == (f"{name} is a dry run: its scores are simulated",)


def test_the_difference_is_computed_from_the_kept_files(
    two_runs: ToyRepository, tmp_path: Path
) -> None:
    """The best commit of `two` is compared with the root, as in its own evaluation."""
    two = package.load_run(two_runs.run_dir("two"))
    assert isinstance(two, package.TreeRun)
    alone = tmp_path / "root only"
    shutil.copytree(two.path, alone)
    lines = (alone / "events.jsonl").read_bytes().splitlines(keepends=True)
    (alone / "manifest.json").unlink()
    (alone / "events.jsonl").write_bytes(b"".join(lines[:4]))
    compared = package.compare(alone, two)
    loss = next(d for d in compared.differences if d.what == "loss")
    best = two.best
    assert loss.difference == pytest.approx(best["primary_gain"])
    assert loss.low == pytest.approx(best["primary_gain_low"])
    assert loss.verdict == "better"
    names = [run.name for run in compared.runs]  # the same id twice
    assert names[0].endswith("root only")
    assert names[1].endswith("tree_runs/two")
    assert not {alone.anchor, two.path.anchor} & {name[:1] for name in names}


def test_equal_cost_includes_all_spending(two_runs: ToyRepository, tmp_path: Path) -> None:
    cent = {"prompt_tokens": 9, "cost_usd": 0.01}
    paid = [spending(two_runs.run_dir(name), tmp_path / name, cent) for name in ("one", "two")]
    compared = package.compare(*paid)
    one, two = compared.runs
    assert one.points[1].cost_usd == pytest.approx(0.51), "with its ideas, which came before"
    for run, total in ((one, 0.53), (two, 0.58)):
        assert [run.cost_usd, run.points[-1].cost_usd] == pytest.approx([total, total])
    (equal,) = [at for at in compared.at_equal if at.axis == "cost_usd"]
    assert equal.amount == pytest.approx(0.53)
    unpriced = spending(two_runs.run_dir("two"), tmp_path / "u", cent | {"unpriced_tokens": 1})
    compared = package.compare(paid[0], unpriced)
    assert compared.runs[1].cost_usd is None
    assert "cost_usd" not in {at.axis for at in compared.at_equal}


def test_a_changed_file_is_not_compared(two_runs: ToyRepository, tmp_path: Path) -> None:
    copy = tmp_path / "two"
    shutil.copytree(two_runs.run_dir("two"), copy)
    run = package.load_run(copy)
    assert isinstance(run, package.TreeRun)
    kept = run.manifest.nodes[run.best["node_id"]].artifacts.baseline
    assert kept is not None
    (copy / kept.path).chmod(0o644)
    (copy / kept.path).write_text("config_id,status,loss,cost\n0,ok,-99,0\n1,ok,-99,0\n")
    compared = package.compare(two_runs.run_dir("one"), run)
    assert {one.what for one in compared.differences} == {
        "loss, held-out configs", "cost, held-out configs",
    }  # fmt: skip
    assert any("missing or were changed" in note for note in compared.notes)


def test_the_html_of_a_comparison_is_escaped(
    treewright, two_runs: ToyRepository, tmp_path: Path
) -> None:
    page, picture = tmp_path / "c.html", tmp_path / "c.svg"
    done = treewright(
        "compare", "one", "two", "--html", str(page), "--svg", str(picture), cwd=two_runs.path
    )
    assert done.returncode == 0, done.stderr
    assert "<script" not in page.read_text()
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    compared = package.compare(two_runs.run_dir("one"), two_runs.run_dir("two"))
    assert "two against one" in str(compared)
    assert HOSTILE_TITLE in {one.title for one in compared.shared} | {
        tried.title for alone in compared.alone.values() for tried in alone
    }
    assert list(charts(compared)) == ["evaluations", "seconds"]


def test_proof_runs_are_compared_by_closed_goals(treewright, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "centralized", tmp_path / "a")
    shutil.copytree(SAMPLES / "centralized", tmp_path / "b")
    trace = tmp_path / "b" / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(lines[:-1]))  # killed before its verdict
    (tmp_path / "b" / "result.json").unlink()
    compared = package.compare(tmp_path / "a", tmp_path / "b")
    assert [run.best for run in compared.runs] == [1.0, 0.0]
    assert [run.is_finished for run in compared.runs] == [True, False]
    assert [run.name for run in compared.runs] == ["a", "b"], "not by their whole paths"
    (shared,) = compared.shared
    assert list(shared.outcomes.values()) == ["proved", "open"]
    (closed,) = compared.differences
    assert (closed.difference, closed.pairs, closed.verdict) == (-1.0, 1, "unknown")
    told = treewright("compare", str(tmp_path / "a"), str(tmp_path / "b")).stdout
    assert "(not finished)" in told


def test_searches_are_compared_by_scores_per_config(tmp_path: Path) -> None:
    for name, better in (("a", 0.0), ("b", 1.0)):
        with package.open_search(tmp_path / name, budget=2, direction="minimize") as search:
            search.run(lambda task, by=better: {f"c{n}": n - by + task.number for n in range(5)})
    compared = package.compare(tmp_path / "a", tmp_path / "b")
    (found,) = compared.differences
    assert (found.difference, found.pairs, found.verdict) == (1.0, 5, "better")
    assert compared.runs[0].better == "lower"
    assert compared.runs[0].points[-1].best == 3.0
    with package.open_search(tmp_path / "c", budget=2) as search:
        search.run(lambda task: float(task.number))
    assert "different directions" in package.compare(tmp_path / "a", tmp_path / "c").notes[0]


def test_an_impossible_comparison_is_a_one_line_error(treewright, two_runs: ToyRepository) -> None:
    for arguments, message in (
        (["one"], "at least two"),
        (["one", str(SAMPLES / "centralized")], "one kind"),
        (["one", "one"], "given twice"),
        (["one", "three"], "no run at three"),
    ):
        done = treewright("compare", *arguments, cwd=two_runs.path)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


# -- the rules -----------------------------------------------------------------------------


def contender(name: str, *events: Spending, tried: tuple[Tried, ...] = ()) -> ComparedRun:
    points = curve(events, start=0.0)
    last = points[-1]
    return ComparedRun(
        name, name, name, last.best, None, points, tried, len(events), last.seconds,
        last.cost_usd, True,
    )  # fmt: skip


def test_a_curve_is_in_time_order_and_never_gets_worse() -> None:
    points = curve(
        [Spending(3.0, 0.5, 0.1), Spending(1.0, 0.0, 0.2), Spending(2.0, 0.25, None)], start=0.0
    )
    assert [(p.evaluations, p.seconds, p.best, p.cost_usd) for p in points] == [
        (0, 0.0, 0.0, 0.0), (1, 1.0, 0.2, 0.0), (2, 2.0, 0.2, 0.25), (3, 3.0, 0.2, 0.75),
    ]  # fmt: skip
    assert [p.best for p in curve([Spending(1, None, 3), Spending(2, None, 2)], higher=False)] == [
        3,
        2,
    ]
    assert [p.best for p in curve([Spending(1, None, 1), Spending(2, None, 1)], adds=True)] == [
        1,
        2,
    ]
    assert curve([Spending(1, None, None)]) == ()


def test_all_spending_counts_and_an_unknown_price_is_not_zero() -> None:
    ideas = Spending(1.0, 0.5, None, counts=False)
    points = curve([ideas, Spending(2.0, 0.25, 0.1), ideas._replace(seconds=3.0)], start=0.0)
    assert [(p.evaluations, p.best, p.cost_usd) for p in points] == [
        (0, 0.0, 0.0), (1, 0.1, 0.75), (1, 0.1, 1.25),
    ]  # fmt: skip
    points = curve([ideas, Spending(2.0, None, 0.1)], start=0.0)
    assert {p.cost_usd for p in points} == {None}


def test_equal_spending_is_the_least_of_all_runs() -> None:
    fast = contender("fast", Spending(1.0, None, 0.3), Spending(2.0, None, 0.4))
    slow = contender("slow", Spending(10.0, None, 0.5))
    by_count, by_time = at_equal([fast, slow], "evaluations"), at_equal([fast, slow], "seconds")
    assert by_count is not None
    assert by_time is not None
    assert by_count.best == {"fast": 0.3, "slow": 0.5}
    assert by_time.best == {"fast": 0.4, "slow": 0.0}
    assert at_equal([fast, slow], "cost_usd") is None


def test_shared_ideas_were_tried_by_several_runs() -> None:
    a = contender(
        "a", Spending(1, None, 1), tried=(Tried("k", "K", "won"), Tried("x", "X", "lost"))
    )
    b = contender("b", Spending(1, None, 1), tried=(Tried("k", "K", "lost"),))
    shared, alone = shared_and_alone([a, b])
    assert [one.outcomes for one in shared] == [{"a": "won", "b": "lost"}]
    assert {name: [one.key for one in tried] for name, tried in alone.items()} == {
        "a": ["x"], "b": [],
    }  # fmt: skip


def test_a_difference_within_noise_or_tolerance_does_not_count() -> None:
    names = ("b", "a")
    assert difference("m", names, 5, 1.0, (0.5, 1.5)).verdict == "better"
    assert difference("m", names, 5, -1.0, (-1.5, -0.5)).verdict == "worse"
    assert difference("m", names, 5, 1.0, (-0.5, 2.5)).verdict == "no_difference"
    assert difference("m", names, 5, 0.1, (0.05, 0.15), tolerance=0.2).verdict == "no_difference"
    assert difference("m", names, 1, 9.0, None).verdict == "unknown"


def test_a_comparison_needs_two_runs() -> None:
    with pytest.raises(UsageError, match="at least two"):
        package.compare(SAMPLES / "centralized")
