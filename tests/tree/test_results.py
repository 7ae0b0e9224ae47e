"""Reading a sweep's CSV: no value is repaired, and every error is named."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.tree.deciding.results import Results, read_results

HEADER = "config_id,status,loss"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("results")


def read(place: Path, text: str | bytes, limit: int | None = None, metrics=("loss",)) -> Results:
    path = place / "results.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    wanted = (lambda _: True) if limit is None else (lambda i: i < limit)
    return read_results(path, metrics, wanted)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n0,ok,1.5\n1,ok,2\n",
        f"\ufeff{HEADER}\n0,ok,1.5\n1,ok,2\n",
        f"{HEADER}\r\n0,ok,1.5\r\n1,ok,2\r\n",
        f"{HEADER}\n\n0,ok,1.5\n\n\n1,ok,2",
        '"config_id","status","loss"\n"0","ok","1.5"\n"1","ok","2"\n',
        'status,note,loss,config_id\nok,"a, ""b""\nc",15e-1,0\nok,,2.0,1\n',
        f"{HEADER}\n1, ok ,2\n 0 ,ok, 1.5 \n",
    ],
    ids=["plain", "bom", "crlf", "blank lines", "quoted", "other columns", "blanks"],
)
def test_equivalent_forms_of_a_csv_give_the_same_results(place: Path, text: str) -> None:
    found = read(place, text)
    assert found.problems.counts == {}
    assert found.sound_ids == found.all_ids == {0, 1}
    assert found.values == {"loss": {0: 1.5, 1: 2.0}}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("0,ok,nan", "non_finite_metric"),
        ("0,ok,NaN", "non_finite_metric"),
        ("0,ok,inf", "non_finite_metric"),
        ("0,ok,-Infinity", "non_finite_metric"),
        ("0,ok,1e999", "non_finite_metric"),
        ("0,ok,", "non_numeric_metric"),
        ("0,ok", "non_numeric_metric"),
        ("0,ok,good", "non_numeric_metric"),
        ("0,ok,1_0", "non_numeric_metric"),
        ("0,ok,0x1p3", "non_numeric_metric"),
        ("0,failed,1.0", "incomplete_rows"),
        ("0,,1.0", "incomplete_rows"),
        ("0", "incomplete_rows"),
        ("0,OK,1.0", "incomplete_rows"),
        ("-1,ok,1.0", "bad_config_id"),
        ("1.0,ok,1.0", "bad_config_id"),
        ("1_0,ok,1.0", "bad_config_id"),
        ("x,ok,1.0", "bad_config_id"),
        (",ok,1.0", "bad_config_id"),
        ("9" * 5000 + ",ok,1.0", "bad_config_id"),
        ("0,ok,1.0\n0,ok,1.0", "duplicate_config_id"),
        ("0,ok,1.0\n0,failed,1.0", "duplicate_config_id"),
        ("0,ok,1.0\n00,ok,1.0", "duplicate_config_id"),
    ],
)
def test_a_wrong_row_is_named_and_not_used(place: Path, row: str, code: str) -> None:
    found = read(place, f"{HEADER}\n{row}\n5,ok,3.0\n")
    assert set(found.problems.counts) == {code}
    assert found.problems.examples[0].startswith(f"{code}: ")
    assert found.sound_ids == {5}
    assert found.values == {"loss": {5: 3.0}}


def test_a_row_is_sound_only_if_every_metric_is(place: Path) -> None:
    text = "config_id,status,loss,cost\n0,ok,1.0,nan\n1,ok,1.0,2.0\n"
    found = read(place, text, metrics=("loss", "cost"))
    assert found.values == {"loss": {1: 1.0}, "cost": {1: 2.0}}


@pytest.mark.parametrize("text", ["", "\n", "loss\n1\n", "config_id,loss\n0,1\n"])
def test_missing_columns_are_named(place: Path, text: str) -> None:
    found = read(place, text)
    assert set(found.problems.counts) == {"missing_column"}
    assert "missing_column: status" in found.problems.examples
    assert found.sound_ids == set()


def test_a_duplicate_column_is_an_error(place: Path) -> None:
    found = read(place, "config_id,status,loss,loss\n0,ok,1,2\n")
    assert found.problems.counts
    assert found.sound_ids == set()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"config_id,status,loss\n0,ok,\xff\n"])
def test_bytes_that_are_not_text_are_unreadable(place: Path, data: bytes) -> None:
    assert "unreadable_results" in read(place, data).problems.counts


def test_a_missing_file_is_an_error(place: Path) -> None:
    found = read_results(place / "none.csv", ["loss"])
    assert found.problems.examples == ["unreadable_results: the sweep wrote no results CSV"]


def test_an_endless_field_is_unreadable(place: Path) -> None:
    found = read(place, f'{HEADER}\n0,ok,1\n1,ok,"{"x" * (2 << 20)}"\n')
    assert found.problems.examples == [
        "unreadable_results: row 3: a field has more than 1,048,576 characters"
    ]


def test_rows_beyond_the_limit_are_not_checked(place: Path) -> None:
    found = read(place, f"{HEADER}\n0,ok,1\n7,failed,nan\n7,ok,inf\n", limit=5)
    assert found.problems.counts == {}
    assert found.all_ids == {0}


def test_many_problems_are_counted_but_not_all_listed(place: Path) -> None:
    rows = "\n".join(f"{i},ok,nan" for i in range(1000))
    found = read(place, f"{HEADER}\n{rows}\n")
    assert found.problems.counts == {"non_finite_metric": 1000}
    assert len(found.problems.examples) == 5


cells = st.sampled_from(
    ["0", "1", "2", "-1", "", "nan", "inf", "1e400", "x", "ok", "failed", " 1 ", "1.5", '"', "\0"]
)


@given(st.lists(st.lists(cells, max_size=4).map(",".join), max_size=8))
def test_sound_rows_of_any_file_are_finite_unique_and_ok(place: Path, rows) -> None:
    found = read(place, "\n".join([HEADER, *rows]))
    assert found.sound_ids <= found.all_ids
    assert set(found.values["loss"]) == found.sound_ids
    assert all(math.isfinite(value) for value in found.values["loss"].values())
    ok_rows = [row for row in rows if ",ok," in row]
    assert len(found.sound_ids) <= len(ok_rows)


def test_50_megabytes_are_read_in_seconds(place: Path) -> None:
    path = place / "large.csv"
    with path.open("w") as file:
        file.write(f"{HEADER}\n")
        for start in range(0, 1_600_000, 100_000):
            file.write(
                "".join(f"{i},ok,{i}.123456789012345\n" for i in range(start, start + 100_000))
            )
    assert path.stat().st_size > 45_000_000
    started = time.process_time()
    found = read_results(path, ["loss"], range(25).__contains__)
    assert time.process_time() - started < 30
    assert found.sound_ids == set(range(25))
    assert found.problems.counts == {}
