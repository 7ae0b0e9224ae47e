"""Budget, inline executor, run ids, artifacts, capped logs, clock, Student's t."""

from __future__ import annotations

import hashlib
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.kernel.budget import Budget, Spending
from treewright.kernel.clock import seconds_between, timestamp
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.procs.capped_log import CappedLog, last_lines
from treewright.kernel.stats import student_quantile
from treewright.kernel.storage import artifacts, run_directory


@given(
    limit=st.none() | st.integers(0, 50),
    spent=st.integers(0, 60),
    wanted=st.integers(0, 60),
    queued=st.integers(0, 60),
)
def test_a_budget_is_never_exceeded(limit, spent, wanted, queued) -> None:
    allowed = Budget(limit).allow(wanted, Spending(evals=spent), queued)
    assert 0 <= allowed <= wanted
    if limit is None:
        assert allowed == wanted
    else:
        assert allowed == 0 or spent + queued + allowed <= limit
        assert allowed == wanted or spent + queued + allowed >= limit


def test_the_inline_executor_hands_back_outcomes_and_exceptions_in_order() -> None:
    def work(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number * 10

    executor = InlineExecutor(work)
    for number in (1, 2, 3):
        executor.submit(number)
    done = [one for one in (executor.next_done() for _ in range(3)) if one is not None]
    assert [one.request for one in done] == [1, 2, 3]
    assert [one.outcome for one in done] == [10, None, 30]
    assert isinstance(done[1].error, ValueError)
    assert executor.next_done(0.0) is None
    executor.close()


def test_the_inline_executor_lets_an_interrupt_through() -> None:
    def work(_: int) -> int:
        raise KeyboardInterrupt

    executor = InlineExecutor(work)
    executor.submit(1)
    with pytest.raises(KeyboardInterrupt):
        executor.next_done()


def usable(run_id: str) -> bool:
    try:
        run_directory.validate_run_id(run_id)
    except UsageError:
        return False
    return True


@given(st.text(alphabet="ab09_-./@{~^:? \\*[\n\0é", max_size=12) | st.text(max_size=6))
def test_a_usable_run_id_is_a_git_ref_and_a_path_component(run_id: str) -> None:
    if not usable(run_id):
        return
    assert Path(run_id).name == run_id
    assert run_id not in (".", "..")
    ref = f"refs/heads/treewright/{run_id}/node/n0000"
    assert subprocess.run(["git", "check-ref-format", ref], check=False).returncode == 0


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", "a/b", "-a", ".a", "a.", "a..b", "a.lock", "a b", "a\n", "é", "a" * 81, "a@{b"],
)
def test_run_ids_that_are_refused(run_id: str) -> None:
    with pytest.raises(UsageError, match="is not usable"):
        run_directory.validate_run_id(run_id)


@pytest.mark.parametrize("run_id", ["a", "20260204_090000", "a.b", "A-1_b.2", "a" * 80])
def test_run_ids_that_are_taken(run_id: str) -> None:
    assert run_directory.validate_run_id(run_id) == run_id


def test_new_run_ids_are_new(tmp_path: Path) -> None:
    made = set()
    for _ in range(5):
        run_id = run_directory.validate_run_id(run_directory.new_run_id(tmp_path))
        (tmp_path / run_id).mkdir()
        made.add(run_id)
    assert len(made) == 5


def test_artifacts_are_copies_with_their_digest(tmp_path: Path) -> None:
    data = b"config_id,status\n" * 200_000
    run_dir = tmp_path / "run"
    kept = artifacts.keep(data, run_dir, "e1.csv", "a sweep")
    assert kept.path == "artifacts/e1.csv"
    assert (run_dir / kept.path).read_bytes() == data
    assert kept.sha256 == hashlib.sha256(data).hexdigest()
    assert kept.bytes == len(data)
    assert [path.name for path in (run_dir / "artifacts").iterdir()] == ["e1.csv"]
    assert artifacts.sha256_file(run_dir / kept.path) == kept.sha256


def test_an_artifact_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    kept = artifacts.keep(b"small", tmp_path, "e1.csv", "a sweep")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(StorageError, match=r"e1\.csv"):
            artifacts.keep(b"x" * 500_000, tmp_path, "e1.csv", "a sweep")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert artifacts.sha256_file(tmp_path / kept.path) == kept.sha256
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == ["e1.csv"]


def test_last_lines_leave_out_the_marks_of_a_traceback() -> None:
    output = 'File "a.py", line 1\n    x = 1 / 0\n        ~~^~~\nZeroDivisionError: division\n\n'
    assert last_lines(output) == 'File "a.py", line 1 | x = 1 / 0 | ZeroDivisionError: division'


@given(
    chunks=st.lists(st.text("abc", max_size=40).map(str.encode), max_size=30),
    limit=st.integers(2, 100),
)
def test_a_capped_log_keeps_head_and_tail_and_counts_the_rest(chunks, limit) -> None:
    written = bytearray()
    log = CappedLog(written.extend, limit)
    for chunk in chunks:
        log.feed(chunk)
    log.finish()
    stream = b"".join(chunks)
    assert log.seen == len(stream)
    head, marker, tail = bytes(written).partition(b"\n[... ")
    if not marker:
        assert bytes(written) == stream
        return
    dropped, _, tail = tail.partition(b" bytes left out ...]\n")
    assert stream.startswith(head)
    assert len(head) == limit // 2
    assert stream.endswith(tail)
    assert len(tail) >= limit - limit // 2
    assert len(head) + int(dropped) + len(tail) == len(stream)


def test_timestamps_are_utc_and_can_be_subtracted() -> None:
    first, second = "2026-02-04T09:00:00.250Z", "2026-02-04T09:00:02.000Z"
    assert seconds_between(first, second) == 1.75
    assert seconds_between(None, second) is None
    assert timestamp().endswith("Z")


@pytest.mark.parametrize(
    ("df", "table"),
    [
        (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (7, 2.365), (10, 2.228),
        (11, 2.201), (24, 2.064), (29, 2.045), (60, 2.000), (120, 1.980), (1000, 1.962),
    ],
)  # fmt: skip
def test_student_quantiles_are_those_of_the_printed_tables(df: int, table: float) -> None:
    assert round(student_quantile(0.975, df), 3) == table


@pytest.mark.parametrize(
    ("p", "df", "table"), [(0.9, 3, 1.638), (0.95, 8, 1.860), (0.99, 2, 6.965)]
)
def test_other_student_quantiles(p: float, df: int, table: float) -> None:
    assert round(student_quantile(p, df), 3) == table
