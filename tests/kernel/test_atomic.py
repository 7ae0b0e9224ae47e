"""Files that are the old one or the new one, whatever happens in between."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from treewright.kernel.errors import StorageError
from treewright.kernel.storage import atomic

ENDLESS_WRITER = """
import sys
from pathlib import Path
from treewright.kernel.storage import atomic
path = Path(sys.argv[1])
for number in range(10**9):
    atomic.write_bytes(path, bytes([65 + number % 26]) * 200_000)
"""


@pytest.fixture
def file_size_limit() -> Iterator[None]:
    """Writes beyond 64 KiB fail, as they do on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_file_has_the_written_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic.write_bytes(path, b"one")
    atomic.write_text(path, "zwei ä")
    assert path.read_bytes() == "zwei ä".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_killed_anywhere_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(5):
        before = path.stat().st_ino if path.exists() else 0
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS_WRITER, str(path)])
        until(lambda before=before: path.exists() and path.stat().st_ino != before)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        data = path.read_bytes()
        assert len(data) == 200_000
        assert len(set(data)) == 1
    atomic.sweep_temporaries(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, file_size_limit: None) -> None:
    path = tmp_path / "file"
    atomic.write_bytes(path, b"old")
    with pytest.raises(StorageError) as caught:
        atomic.write_bytes(path, b"x" * 100_000)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


def test_a_failed_rename_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(StorageError):
        atomic.write_bytes(path, b"new")
    assert (path / "inside").is_dir()
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_inside_the_write_leaves_no_temporary(tmp_path: Path, monkeypatch) -> None:
    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(tmp_path / "file", b"data")
    assert list(tmp_path.iterdir()) == []


def test_exclusive_creation_has_one_winner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert atomic.create_exclusive(path, b"first")
    assert not atomic.create_exclusive(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_exclusive_creation_loses_when_its_temporary_was_swept(tmp_path: Path, monkeypatch) -> None:
    """The winner of a race sweeps; the loser must hear that it lost, not that disks fail."""
    real = os.link

    def link(source, target) -> None:
        real(source, target)
        atomic.sweep_temporaries(tmp_path)
        Path(target).unlink()
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    assert not atomic.create_exclusive(tmp_path / "file", b"data")


def test_sweeping_touches_only_temporaries_of_that_directory(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    kept = [tmp_path / "file", tmp_path / ".hidden", tmp_path / "below" / ".tw-tmp-1-a"]
    for path in kept:
        path.write_text("x")
    (tmp_path / ".tw-tmp-1-a").write_text("x")
    atomic.sweep_temporaries(tmp_path)
    assert not (tmp_path / ".tw-tmp-1-a").exists()
    assert all(path.exists() for path in kept)
    atomic.sweep_temporaries(tmp_path / "missing")


def test_directories_are_made_with_their_parents(tmp_path: Path) -> None:
    atomic.make_directory(tmp_path / "a" / "b")
    atomic.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        atomic.make_directory(tmp_path / "file")


def test_every_level_that_was_made_is_synced_and_none_that_was_there(
    tmp_path: Path, monkeypatch
) -> None:
    """An entry lives in its parent: each parent of a new directory is synced, outermost first."""
    synced: list[Path] = []
    real = os.fsync

    def record(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink())
        real(fd)

    monkeypatch.setattr(os, "fsync", record)
    atomic.make_directory(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    synced.clear()
    atomic.make_directory(tmp_path / "a" / "b" / "c")
    assert synced == []
    atomic.make_directory(tmp_path / "a" / "d")
    assert synced == [tmp_path / "a"]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "no space left"),
        (errno.EROFS, "writable"),
        (errno.EACCES, "writable"),
        (errno.EIO, "cannot write"),
    ],
)
def test_errors_say_what_to_do(number: int, words: str) -> None:
    said = str(atomic.describe(OSError(number, os.strerror(number)), Path("/run/manifest.json")))
    assert words in said
    assert "/run/manifest.json" in said
    assert "\n" not in said


def test_several_files_are_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "f003").write_text("old")
    files = {f"f{i:03d}": b"x" * i for i in range(50)}
    atomic.write_many(tmp_path, files)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_with_several_files_every_file_is_synced_before_any_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        done.append("sync")
        assert not (tmp_path / "a").exists() or len(done) == 3
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic.write_many(tmp_path, {"a": b"1", "b": b"2"})
    assert len(done) == 3, "two files and their directory"


def test_with_several_files_a_full_disk_leaves_the_old_files_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="no space left"):
        atomic.write_many(tmp_path, {"a": b"new", "b": b"new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}
