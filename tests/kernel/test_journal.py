"""The journal: torn tails, damage, stale owners, offsets."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readonly import bound_by_permissions
from treewright.kernel.errors import LeaseLost, StorageError
from treewright.kernel.storage import journal
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease

_names = itertools.count()


def line(kind: str, epoch: int, **more) -> bytes:
    return json.dumps({"type": kind, "epoch": epoch, **more}).encode()


def write(path: Path, epoch: int, *lines: bytes) -> int:
    writer = Journal(path, epoch, lambda: None)
    writer.append([line(journal.LEASE, epoch)])
    for data in lines:
        writer.append([data])
    writer.close()
    return writer.end


def kinds(path: Path, offset: int = 0, epoch: int = 0) -> list[tuple[str, int]]:
    return [(found.type, found.epoch) for found in journal.read(path, offset, epoch)]


@pytest.fixture(scope="module", autouse=True)
def _quick_disk() -> Iterator[None]:
    """Thousands of small journals need not reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("journals")


def fresh(place: Path) -> Path:
    return place / f"{next(_names)}.jsonl"


def test_appended_lines_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    end = write(path, 1, line("a", 1), line("b", 1, text="ü\n"))
    found = list(journal.read(path))
    assert [one.type for one in found] == ["lease", "a", "b"]
    assert json.loads(found[2].raw)["text"] == "ü\n"
    assert found[-1].end == end == path.stat().st_size


def test_no_file_is_an_empty_history(tmp_path: Path) -> None:
    assert list(journal.read(tmp_path / "none.jsonl")) == []


@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=4), cut=st.integers(1, 2000))
def test_a_tail_torn_at_any_byte_is_ignored_before_and_after_a_takeover(
    place: Path, sizes: list[int], cut: int
) -> None:
    path = fresh(place)
    lines = [line("fact", 1, number=i, text="x" * size) for i, size in enumerate(sizes)]
    write(path, 1, *lines)
    whole = path.read_bytes()
    cut = max(1, len(whole) - cut)
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    assert len(list(journal.read(path))) == complete
    write(path, 2, line("after", 2))
    found = kinds(path)
    # A line that lost only its newline is whole once the next owner has ended it.
    assert len(found) - 2 in (complete, complete + (whole[cut : cut + 1] == b"\n"))
    assert found[-2:] == [("lease", 2), ("after", 2)]


@given(position=st.integers(0, 10_000), garbage=st.binary(min_size=1, max_size=20))
def test_damage_in_the_middle_is_an_error_that_says_where(
    place: Path, position: int, garbage: bytes
) -> None:
    path = fresh(place)
    write(path, 1, *(line("fact", 1, number=i) for i in range(5)))
    rows = path.read_bytes().split(b"\n")
    index = position % (len(rows) - 2)
    rows[index] = b"{" + garbage.replace(b"\n", b"?").replace(b"}", b"?")
    path.write_bytes(b"\n".join(rows))
    end_of_damage = sum(len(row) + 1 for row in rows[: index + 1]) - 1
    with pytest.raises(StorageError, match=f"byte {end_of_damage};"):
        list(journal.read(path))


@given(
    epochs=st.lists(st.integers(1, 6), min_size=1, max_size=30),
)
def test_lines_of_replaced_owners_are_ignored(place: Path, epochs: list[int]) -> None:
    path = fresh(place)
    path.write_bytes(b"".join(line("fact", epoch) + b"\n" for epoch in epochs))
    highest = 0
    expected = []
    for epoch in epochs:
        if epoch >= highest:
            highest = epoch
            expected.append(("fact", epoch))
    assert kinds(path) == expected


@given(count=st.integers(1, 12), at=st.integers(0, 11))
def test_reading_from_any_offset_gives_the_rest(place: Path, count: int, at: int) -> None:
    path = fresh(place)
    write(path, 3, *(line("fact", 3, number=i, text="é" * i) for i in range(count)))
    everything = list(journal.read(path))
    at = min(at, len(everything) - 1)
    rest = list(journal.read(path, everything[at].end, everything[at].epoch))
    assert rest == everything[at + 1 :]


def test_an_owner_without_lease_line_does_not_excuse_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, 1, line("a", 1))
    with path.open("ab") as file:
        file.write(b'{"type": "b", "ep')
    writer = Journal(path, 1, lambda: None)
    writer.append([line("c", 1)])
    writer.close()
    with pytest.raises(StorageError, match="damaged"):
        list(journal.read(path))


def test_torn_tails_of_two_owners_in_a_row(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, 1, line("a", 1))
    for torn in (b'{"type": "b", "ep', b"\n" + line("lease", 2)[:-4]):
        with path.open("ab") as file:
            file.write(torn)
    write(path, 3, line("c", 3))
    assert kinds(path) == [("lease", 1), ("a", 1), ("lease", 3), ("c", 3)]


def test_zeros_that_a_power_cut_left_are_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, 1, line("a", 1))
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    write(path, 2)
    assert kinds(path) == [("lease", 1), ("a", 1), ("lease", 2)]


def test_a_guard_that_raises_stops_the_write(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    def guard() -> None:
        raise LeaseLost("replaced")

    writer = Journal(path, 1, guard)
    with pytest.raises(LeaseLost):
        writer.append([line("a", 1)])
    writer.close()
    assert path.read_bytes() == b""


def test_after_a_failed_append_nothing_more_is_written(tmp_path: Path, monkeypatch) -> None:
    """What follows a torn line in the same epoch would make the history unreadable."""
    path = tmp_path / "events.jsonl"
    writer = Journal(path, 1, lambda: None)
    writer.append([line("lease", 1), line("a", 1)])
    end, real = writer.end, os.write
    budget = [10]

    def write_until_full(fd: int, data) -> int:
        if not budget:
            raise OSError(28, "No space left on device")
        return real(fd, data[: budget.pop()])

    monkeypatch.setattr(os, "write", write_until_full)
    with pytest.raises(StorageError, match="no space left"):
        writer.append([line("b", 1)])
    monkeypatch.setattr(os, "write", real)
    assert writer.end == end
    with pytest.raises(StorageError):
        writer.append([line("c", 1)])
    writer.close()
    assert kinds(path) == [("lease", 1), ("a", 1)]
    write(path, 2, line("d", 2))
    assert kinds(path) == [("lease", 1), ("a", 1), ("lease", 2), ("d", 2)]


def test_the_last_epoch_is_found_at_the_tail(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert journal.last_epoch(path) == 0
    write(path, 1, line("a", 1))
    write(path, 4, *(line("b", 4, text="x" * 5000) for _ in range(40)))
    with path.open("ab") as file:
        file.write(line("late", 2) + b"\n" + b'{"type": "torn')
    assert journal.last_epoch(path) == 4


def test_a_pipe_instead_of_the_journal_is_an_error_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "events.jsonl")
    with pytest.raises(StorageError, match="not a file any more"):
        list(journal.read(tmp_path / "events.jsonl"))
    with pytest.raises(StorageError, match="not a file any more"):
        journal.last_epoch(tmp_path / "events.jsonl")


INSTEAD = {
    "nothing": lambda path: None,
    "a pipe": os.mkfifo,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
    "another file": lambda path: path.write_bytes(line("forged", 1) + b"\n"),
}


@pytest.mark.parametrize("what", INSTEAD)
def test_a_journal_removed_while_it_is_written_is_restored(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All that came after that went with the process that wrote it."""
    path, lease = tmp_path / "events.jsonl", Lease.acquire(tmp_path / "lease")
    writer = Journal(path, lease.epoch, lease.check, lease.is_in_place)
    writer.append([line(journal.LEASE, 1)])
    for number in range(3):
        writer.append([line(f"kind {number}", 1)])
        path.unlink()
        INSTEAD[what](path)
    writer.append([line("last", 1)])
    end = writer.end
    writer.close()
    lease.release()
    expected = [journal.LEASE, "kind 0", "kind 1", "kind 2", "last"]
    assert kinds(path) == [(kind, 1) for kind in expected]
    assert end == path.stat().st_size
    assert caplog.text.count("it was put back") == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "lease"]


def test_a_directory_instead_of_the_journal_is_an_error(tmp_path: Path) -> None:
    path, lease = tmp_path / "events.jsonl", Lease.acquire(tmp_path / "lease")
    writer = Journal(path, lease.epoch, lease.check, lease.is_in_place)
    path.unlink()
    path.mkdir()
    for _ in range(2):
        with pytest.raises(StorageError, match="cannot write"):
            writer.append([line("kind", 1)])
    writer.close()
    lease.release()


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_writer_of_a_removed_run_stops(tmp_path: Path, begun_again: bool) -> None:
    """Another may have begun one in its place, which is not to be overwritten."""
    run_dir = tmp_path / "run"
    lease = Lease.acquire(run_dir / "lease")
    writer = Journal(run_dir / "events.jsonl", lease.epoch, lease.check, lease.is_in_place)
    writer.append([line("kind", 1)])
    shutil.rmtree(run_dir)
    if begun_again:
        other = Lease.acquire(run_dir / "lease")
        write(run_dir / "events.jsonl", other.epoch, line("theirs", 1))
    with pytest.raises(StorageError, match="stops here"):
        writer.append([line("kind", 1)])
    writer.close()
    if begun_again:
        other.release()
        assert kinds(run_dir / "events.jsonl") == [(journal.LEASE, 1), ("theirs", 1)]
    else:
        assert not run_dir.exists()


SHUT = """
import sys
from pathlib import Path
from treewright.kernel.storage.journal import Journal
run_dir = Path(sys.argv[1])
writer = Journal(run_dir / "events.jsonl", 1, lambda: None)
run_dir.chmod(0)
writer.append([b'{"type":"kind","epoch":1}'])
run_dir.chmod(0o755)
"""


def test_a_directory_that_is_shut_stops_no_writer(tmp_path: Path) -> None:
    """Code under test may make the directory unreadable; the file is open."""
    tmp_path.chmod(0o777)
    command = bound_by_permissions([sys.executable, "-c", SHUT, str(tmp_path)])
    subprocess.run(command, check=True)
    assert kinds(tmp_path / "events.jsonl") == [("kind", 1)]


@pytest.mark.parametrize("what", INSTEAD)
def test_a_journal_replaced_while_it_is_restored(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that was reopened by its name could be redirected to another file by code under
    test."""
    path, lease = tmp_path / "events.jsonl", Lease.acquire(tmp_path / "lease")
    (tmp_path / "nowhere").write_text("somebody's\n")
    writer = Journal(path, lease.epoch, lease.check, lease.is_in_place)
    writer.append([line("first", 1)])
    path.unlink()
    with monkeypatch.context() as only:

        def replaced(_: Path) -> None:
            path.unlink()
            INSTEAD[what](path)

        only.setattr("treewright.kernel.storage.atomic.fsync_directory", replaced)
        writer.append([line("second", 1)])
    writer.append([line("third", 1)])
    writer.close()
    lease.release()
    assert kinds(path) == [("first", 1), ("second", 1), ("third", 1)]
    assert (tmp_path / "nowhere").read_text() == "somebody's\n"
