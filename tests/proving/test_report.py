"""report.md and its pictures: exact for a fixed trace, safe for hostile texts, at any moment."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proving.report_sample import GOLDEN, golden_files, two_goals, write_sample
from tests.proving.traces import SOLVED, iterations, search
from treewright.kernel.errors import UsageError
from treewright.kernel.text.charts import Series, line_chart, thin
from treewright.proving.records import GoalResult, Iteration
from treewright.proving.report import write_report


def test_golden_files() -> None:
    made = golden_files()
    assert sorted(made) == sorted(path.name for path in GOLDEN.iterdir())
    for name, text in made.items():
        assert text == (GOLDEN / name).read_text("utf-8"), (
            f"{name}: if meant, python -m tests.proving.report_sample"
        )


def test_hostile_names_break_neither_tables_nor_html() -> None:
    text = golden_files()["report.md"]
    row = next(line for line in text.splitlines() if "script" in line and "| proved |" in line)
    assert row.replace(r"\|", "").count("|") == 9, "eight cells"
    assert "\u202e" not in text
    heading = next(line for line in text.splitlines() if line.startswith("## &lt;"))
    assert "<" not in heading


@settings(max_examples=40)
@given(st.text(st.characters(codec=None), max_size=60))
def test_pictures_are_well_formed_for_any_name(name: str) -> None:
    picture = line_chart(name, [Series(name, [(1, 0.5), (2, 0.25)])], name, name)
    ElementTree.fromstring(picture.encode("utf-8"))


def test_written_twice_is_the_same_and_writes_nothing(tmp_path: Path) -> None:
    write_sample(tmp_path, two_goals())
    first = write_report(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write_report(tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_report_after_every_line_of_a_run(tmp_path: Path) -> None:
    """Also while a line is being written."""
    lines = search(4, agents=2, blocked=0.3)
    for count in range(len(lines) + 1):
        write_sample(tmp_path, lines[:count])
        with (tmp_path / "trace.jsonl").open("ab") as trace:
            trace.write(b'{"type":"iteration","epo')
        text = write_report(tmp_path).read_text("utf-8")
        assert ("without a verdict" in text) == (0 < count < len(lines))
        for picture in (tmp_path / "plots").iterdir():
            ElementTree.parse(picture)
    assert "1 of 1" in text


def test_a_centralized_run_has_no_agents(tmp_path: Path) -> None:
    write_sample(tmp_path, search(SOLVED), "centralized")
    text = write_report(tmp_path).read_text("utf-8")
    assert "Aggregation" not in text
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "growth_0.svg",
        "outcomes.svg",
        "root_value_0.svg",
    ]


def test_pictures_of_an_earlier_report_go_away(tmp_path: Path) -> None:
    write_sample(tmp_path, search(5, agents=4, blocked=0.3))
    write_report(tmp_path)
    assert (tmp_path / "plots" / "interventions.svg").exists()
    write_sample(tmp_path, search(5))
    write_report(tmp_path)
    assert not (tmp_path / "plots" / "interventions.svg").exists()


def test_the_share_of_time_in_lean(tmp_path: Path) -> None:
    lines = []
    for line in search(SOLVED):
        if isinstance(line, Iteration):
            attempts = tuple(msgspec.structs.replace(a, ms=1.0) for a in line.attempts)
            line = msgspec.structs.replace(line, attempts=attempts)
        lines.append(line)
    attempts = iterations(lines)[-1].counters.attempts
    share = round(100 * attempts * 0.001 / iterations(lines)[-1].elapsed)
    text = write_report(write_sample(tmp_path, lines)).read_text("utf-8")
    assert f"| {share} % | solved |" in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("proved", "Proof (axioms: `propext`):"),
        ("rejected", "Script, not accepted as a proof"),
        ("false", "Proof of the negation"),
    ],
)
def test_a_script_has_the_right_heading(tmp_path: Path, status: str, words: str) -> None:
    lines = search(SOLVED)
    last = lines[-1]
    assert isinstance(last, GoalResult)
    lines[-1] = msgspec.structs.replace(last, status=status, axioms=("propext",))
    assert words in write_report(write_sample(tmp_path, lines)).read_text("utf-8")


def test_a_directory_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no proof run"):
        write_report(tmp_path)


def test_a_goal_that_did_not_open_is_reported(tmp_path: Path) -> None:
    verdict = GoalResult(0, "goal", "ill_typed", "ill_typed", "unknown identifier 'x|y'", epoch=1)
    text = write_report(write_sample(tmp_path, [verdict])).read_text("utf-8")
    assert r"ill\_typed unknown identifier 'x\|y'" in text


def test_thinned_lines_keep_their_extremes() -> None:
    points = [(float(n), 0.5) for n in range(10_000)]
    points[4321] = (4321.0, 9.0)
    points[8765] = (8765.0, -9.0)
    kept = thin(points)
    assert len(kept) <= 1300
    assert {points[0], points[4321], points[8765], points[-1]} <= set(kept)
    assert kept == sorted(kept)
