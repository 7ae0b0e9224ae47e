"""Files that others may have written, read whole: those that change meanwhile, and their size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treewright.kernel.storage import untrusted


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for size in (0, 1, 7, 8):
        path.write_bytes(b"x" * size)
        assert untrusted.read(path, 8) == b"x" * size
    path.write_bytes(b"x" * 9)
    with pytest.raises(untrusted.NotPlain, match="file"):
        untrusted.read(path, 8)


@pytest.mark.parametrize(("becomes", "largest"), [(3, 8), (0, 8), (8, 8), (9, 8), (4000, 8000)])
def test_a_file_that_changes_while_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: int, largest: int
) -> None:
    """A file is read to its end, and never beyond the limit."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5)
    real = os.fstat

    def fstat(fd: int) -> os.stat_result:
        found = real(fd)
        path.write_bytes(b"y" * becomes)
        return found

    monkeypatch.setattr(untrusted.os, "fstat", fstat)
    if becomes > largest:
        with pytest.raises(untrusted.NotPlain, match="file"):
            untrusted.read(path, largest)
    else:
        assert untrusted.read(path, largest) == b"y" * becomes
