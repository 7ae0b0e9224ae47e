"""Several files at once: all there and whole, or nothing but the old ones and no debris."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import atomic


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "f003").write_text("old")
    files = {f"f{i:03d}": b"x" * i for i in range(50)}
    atomic.write_many(tmp_path, files)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_every_file_is_synced_before_any_is_renamed(
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


def test_a_full_disk_leaves_the_old_files_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="no space left"):
        atomic.write_many(tmp_path, {"a": b"new", "b": b"new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}
