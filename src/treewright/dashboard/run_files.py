"""Read files of a run, and none outside it. The paths come from records and are not trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from treewright.kernel.operating_system import BINARY, NO_FOLLOW, NON_BLOCK

Signature = tuple[int, int, int]


def resolve(base: Path, relative: str) -> Path | None:
    """Return the regular file of this name below `base`, with links resolved, or None."""
    if not relative or "\0" in relative:
        return None
    try:
        real_base = base.resolve(strict=True)
        path = (real_base / relative).resolve(strict=True)
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        return None
    return path if regular and path.is_relative_to(real_base) else None


def read(base: Path, relative: str, limit: int, offset: int = 0) -> tuple[str, int, int] | None:
    """Return at most `limit` bytes from `offset` as text, the end offset, and the file's size."""
    path = resolve(base, relative)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | NON_BLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, offset))
        data = file.read(limit)
    return data.decode("utf-8", "replace"), max(0, offset) + len(data), size


def list_directories(base: Path, relative: str) -> list[str]:
    """Return the sorted names of the directories in a directory below `base`, without links."""
    return sorted(e.name for e in _entries(base, relative) if e.is_dir(follow_symlinks=False))


def list_files(base: Path, relative: str, suffixes: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return the sorted names and sizes of the regular files in a directory below `base`."""
    try:
        found = [
            (entry.name, entry.stat(follow_symlinks=False).st_size)
            for entry in _entries(base, relative)
            if entry.name.endswith(suffixes) and entry.is_file(follow_symlinks=False)
        ]
    except OSError:
        return []
    return sorted(found)


def _entries(base: Path, relative: str) -> list[os.DirEntry[str]]:
    try:
        real_base = base.resolve(strict=True)
        directory = (real_base / relative).resolve(strict=True)
        if not directory.is_relative_to(real_base):
            return []
        with os.scandir(directory) as entries:
            return list(entries)
    except (OSError, RuntimeError, ValueError):
        return []


def signature(path: Path) -> Signature:
    """Return the inode, the size and the time of change of a file."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)
