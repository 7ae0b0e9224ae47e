"""The records that git keeps of worktrees in `.git/worktrees`: gitrepository-layout(5).

Records of a run are removed here and not by git. Code under test can reach them, and git would
follow a link in place of a record and wait at a pipe in it. `git worktree prune` would also forget
worktrees of the user that lie on an unplugged disk.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

from treewright.kernel.storage import untrusted

_RECORDS = "worktrees"
_NOT_OF_GIT = frozenset({"annex", "lfs", "modules"})
"""Directories in a repository that git itself does not read there."""
_LARGEST_POINTER = 1 << 16
_RUN_DIRECTORY_DEPTH = 3
"""The last names of a run's directory, `.treewright/tree_runs/<run>`, survive a move of the
repository."""


def remove_pipes(common: Path) -> None:
    """Remove pipes and devices from a repository: git would wait at them, or read for ever.

    A git command that waits at a pipe already goes on, as if the file were empty.
    """
    pending = [common]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _NOT_OF_GIT:
                        pending.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    _remove_pipe(entry.path)


def _remove_pipe(path: str) -> None:
    """Remove a pipe, a device or a link to one."""
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode  # noqa: PTH116
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return
        if not stat.S_ISFIFO(mode):
            os.unlink(path)  # noqa: PTH108
            return
        opened = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            os.unlink(path)  # noqa: PTH108
        finally:
            os.close(opened)


def is_record_of(common: Path, record: Path, worktree: Path) -> bool:
    """Return whether `worktree` is a directory and `record` is this repository's record of it.

    Code under test may have led the worktree's `.git` to another record.
    """
    if worktree.is_symlink() or not worktree.is_dir():
        return False
    if os.path.realpath(record.parent) != os.path.realpath(common / _RECORDS):
        return False
    try:
        return _worktree(record) == _recorded_path(worktree)
    except OSError:
        return False


def remove_dead_records(common: Path, below: Path) -> None:
    """Remove the records of missing worktrees below a directory, and unfinished records.

    Locked records stay: git is making them, or the user has locked them. Records that cannot be
    read stay too.
    """
    below = Path(os.path.realpath(below))
    for record in _records(common):
        try:
            worktree = _worktree(record)
        except OSError:
            continue
        if worktree is None:
            is_dead = not os.path.lexists(record / "gitdir")
        else:
            is_dead = _was_below(worktree, below) and not os.path.lexists(worktree / ".git")
        if is_dead and not _is_locked(record) and not record.is_symlink():
            _remove(record)


def remove_records(common: Path, missing: Collection[Path]) -> bool:
    """Remove the records of worktrees whose directories are missing.

    Returns False if git has to remove them, because one is locked or cannot be read. A record
    without a `gitdir` file stays, because git may be about to write it.
    """
    # Git names a record after its worktree, with a number behind it if the name is taken.
    names = tuple(path.name for path in missing)
    paths = {_recorded_path(path) for path in missing}
    try:
        for record in _records(common):
            worktree = _worktree(record) if record.name.startswith(names) else None
            if worktree not in paths or os.path.lexists(worktree / ".git"):
                continue
            if _is_locked(record) or os.path.lexists(worktree) or record.is_symlink():
                return False
            _remove(record)
    except OSError:
        return False
    return True


def _records(common: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(common / _RECORDS))  # noqa: PTH208 - names are enough
    except FileNotFoundError:
        return []
    return [common / _RECORDS / name for name in names]


def _worktree(record: Path) -> Path | None:
    """Return the path of the worktree that a record belongs to; None if the record has none."""
    try:
        text = os.fsdecode(untrusted.read(record / "gitdir", _LARGEST_POINTER))
    except FileNotFoundError:
        return None
    # Since git 2.48 the path may be relative to the record.
    pointer = Path(os.path.normpath(Path(os.path.realpath(record)) / text.removesuffix("\n")))
    return pointer.parent if pointer.name == ".git" else None


def _recorded_path(worktree: Path) -> Path:
    """Return the path of a worktree as git writes it into a record."""
    return Path(os.path.realpath(worktree.parent)) / worktree.name


def _was_below(worktree: Path, directory: Path) -> bool:
    """Return whether a worktree is below a directory, or was before the repository was moved."""
    if worktree.is_relative_to(directory):
        return True
    ends = -2 - _RUN_DIRECTORY_DEPTH
    return worktree.parts[ends:-2] == directory.parts[-_RUN_DIRECTORY_DEPTH:]


def _is_locked(record: Path) -> bool:
    return os.path.lexists(record / "locked")


def _remove(record: Path) -> None:
    untrusted.remove_small_tree(record)
    if os.path.lexists(record):
        raise PermissionError(f"{record} cannot be removed")
