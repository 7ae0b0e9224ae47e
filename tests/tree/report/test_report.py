"""TREE_SUMMARY.md and its pictures: exact for a fixed manifest, safe for hostile texts."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treewright.tree
from tests.tree.report.sample import GOLDEN, NASTY, Sample, golden_files, large, small
from tests.tree.runs import RUN_ID, make_target, search
from treewright.tree.deciding.results import ProblemCode
from treewright.tree.records import layout, store
from treewright.tree.records.model import Fate, Manifest, StopReason
from treewright.tree.report import reasons, write_report
from treewright.tree.report.gantt import draw_gantt
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import draw_score_chart
from treewright.tree.report.tree_picture import draw_tree, spread_tops
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run

PICTURES = ("tree.svg", "score.svg")


def test_golden_files() -> None:
    made = golden_files()
    assert sorted(made) == sorted(path.name for path in GOLDEN.iterdir())
    for name, text in made.items():
        assert text == (GOLDEN / name).read_text(), (
            f"{name}: if meant, python -m tests.tree.report.sample"
        )


def with_metrics(run_dir: Path, manifest: Manifest, *others: dict[str, object]) -> str:
    """The report's first lines, if the best node was measured by these metrics too."""
    best = Facts.of(run_dir, manifest)
    evaluation = best.origin(best.best)
    assert evaluation is not None
    path = run_dir / layout.summary(evaluation.experiment_dir)
    document = json.loads(path.read_text())
    document["scoring_summary"]["root_relative"]["metrics"] += others
    path.write_text(json.dumps(document))
    return write_report(run_dir, manifest).read_text().partition("## ")[0]


def test_the_first_lines_say_what_the_best_costs_in_other_metrics(tmp_path: Path) -> None:
    size = {"name": "bytes", "direction": "minimize", "primary": False, "verdict": "regressed"}
    size |= {"baseline_mean": 140.5, "candidate_mean": 447.0}
    accuracy = {"name": "acc", "direction": "maximize", "primary": False, "verdict": "unchanged"}
    accuracy |= {"baseline_mean": 0.5, "candidate_mean": 0.51}
    unknown = {"name": "other", "baseline_mean": None, "candidate_mean": None}
    assert (
        "\nIn addition, `bytes` went from 140.5 to 447 (lower is better: worse), "
        "`acc` went from 0.5 to 0.51 (higher is better: no clear difference).\n"
    ) in with_metrics(tmp_path, small(tmp_path), size, accuracy, unknown)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({}, "over pairs of the same config."),
        ({"repeats": 5}, "over 5 repeats of the sweep."),
        ({"deterministic": True}, "compared exactly, so its interval has no width."),
    ],
)
def test_the_first_lines_say_what_intervals_are_made_of(
    tmp_path: Path, setting: dict[str, object], words: str
) -> None:
    manifest = small(tmp_path)
    manifest.agent_config["metrics"][0] |= setting
    assert words in with_metrics(tmp_path, manifest)


def test_hostile_titles_break_neither_tables_nor_html(tmp_path: Path) -> None:
    text = write_report(tmp_path, small(tmp_path)).read_text()
    assert "<script>" not in text
    row = next(line for line in text.splitlines() if "script" in line and "`e000002`" in line)
    assert row.replace(r"\|", "").count("|") == 7, "six cells"
    assert "\x07" not in text
    assert "\u202e" not in text


def test_unknown_codes_are_shown_raw(tmp_path: Path) -> None:
    assert "`a_code_of_2030`" in write_report(tmp_path, small(tmp_path)).read_text()


def test_every_rejected_candidate_has_its_reason(tmp_path: Path) -> None:
    manifest = small(tmp_path)
    text = write_report(tmp_path, manifest).read_text()
    rejections = text.partition("## Why candidates were rejected")[2].partition("## Time")[0]
    for evaluation in manifest.evaluations.values():
        rejected = evaluation.decision is not None and evaluation.decision.fate != "promoted"
        assert (f"`{evaluation.eval_id}`" in rejections) == rejected


def test_written_twice_is_the_same_and_writes_nothing(tmp_path: Path) -> None:
    manifest = small(tmp_path)
    first = write_report(tmp_path, manifest)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write_report(tmp_path, manifest) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    leftover = tmp_path / "report" / ".tw-tmp-1-aa"
    leftover.touch()
    write_report(tmp_path, small(tmp_path))
    assert not leftover.exists()


def test_a_run_without_evaluations(tmp_path: Path) -> None:
    text = write_report(tmp_path, Sample(tmp_path).manifest).read_text()
    assert "Nothing better than the root" in text
    for name in PICTURES:
        ElementTree.parse(tmp_path / "report" / name)


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry"])
def test_a_report_at_every_event_of_a_run(tmp_path: Path, dry_run: bool) -> None:
    repo = make_target(tmp_path / "repo").path
    run_dir = repo / ".treewright" / "tree_runs" / RUN_ID
    shape = Shape(ideas_per_node=3, max_depth=2, sweep_config_limit=8, dry_run=dry_run)

    def report(_: object) -> None:
        if store.exists(run_dir):
            write_report(run_dir, store.load(run_dir))

    with open_run(RunRequest(repo=repo, run_id=RUN_ID, shape=shape), report) as coordinator:
        coordinator.finish()
    text = (run_dir / "TREE_SUMMARY.md").read_text()
    assert ("Dry run" in text) == dry_run
    assert ("git checkout --detach treewright/run/node/n" in text) == (not dry_run)


def test_the_command_to_look_at_the_best_works(tmp_path: Path) -> None:
    toy = make_target(tmp_path / "repo")
    run_dir = search(toy.path, ideas_per_node=5, max_depth=1, sweep_config_limit=8)
    text = write_report(run_dir, store.load(run_dir)).read_text()
    command = next(line.split() for line in text.splitlines() if line.startswith("    git "))
    toy.git(*command[1:])
    assert "B 3.0" in (toy.path / "params.txt").read_text()
    assert "11.82 % better" in text


def test_the_cost_of_a_report_is_linear(tmp_path: Path) -> None:
    """About a second for 10,000 evaluations on an idle core; a busy one gets more."""
    seconds = {}
    for count in (1_000, 10_000):
        run_dir = tmp_path / str(count)
        manifest = large(run_dir, count, 20)
        started = time.process_time()
        write_report(run_dir, manifest)
        seconds[count] = time.process_time() - started
        for name in PICTURES:
            ElementTree.parse(run_dir / "report" / name)
            assert (run_dir / "report" / name).stat().st_size < 1_000_000
    assert seconds[10_000] < 5.0
    assert seconds[10_000] < 20 * max(seconds[1_000], 0.05)


def test_many_depths(tmp_path: Path) -> None:
    write_report(tmp_path, large(tmp_path, 120, 30))
    ElementTree.parse(tmp_path / "report" / "tree.svg")
    assert (tmp_path / "report" / "gantt_depth_30.svg").is_file()


def test_nasty_is_nasty() -> None:
    assert {"|", "<", "&", "`", "*", "_", "[", "$"} <= set(NASTY)


ROOT = Path(__file__).parents[3]


def test_stable_codes_of_the_program_are_known() -> None:
    """Codes in the source are literals behind AgentFailure, EvalError and Rejected."""
    source = "".join(
        path.read_text() for path in Path(treewright.tree.__file__).parent.rglob("*.py")
    )
    made = set(re.findall(r'(?:AgentFailure|EvalError|Rejected)\(\s*"([a-z_]+)"', source))
    assert made
    assert {*made, *get_args(ProblemCode)} <= set(reasons._REASONS)


def test_fates_and_stop_reasons_are_known() -> None:
    assert set(get_args(Fate)) == set(reasons._FATES)
    assert set(get_args(StopReason)) == set(reasons._STOP_REASONS)


def test_codes_are_documented() -> None:
    text = (ROOT / "docs" / "report.md").read_text()
    for code in (*reasons._REASONS, *reasons._FATES):
        family = code.split("_")[0]
        assert f"`{code}`" in text or f"`{family}_*`" in text, code


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
