"""Worktrees in git's own files: gitrepository-layout(5), and "DETAILS" of git-worktree(1).

They are looked at again and again. What cannot be read is an OSError: then git has to be asked.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from treewright.kernel.storage import untrusted

_RECORDS = "worktrees"
_LARGEST_POINTER = 1 << 16
_KEPT_WHEN_MOVED = 3
"""So many names at the end of a run's directory are the same in a repository that was moved."""


def registered(common: Path) -> Iterator[tuple[Path, Path | None]]:
    """Every record, and the worktree that it is of; None if it does not say."""
    for record in _records(common):
        yield record, _worktree(record)


def _records(common: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(common / _RECORDS))  # noqa: PTH208 - names are all it takes
    except FileNotFoundError:
        return []
    return [common / _RECORDS / name for name in names]


def _worktree(record: Path) -> Path | None:
    try:
        said = os.fsdecode(untrusted.read(record / "gitdir", _LARGEST_POINTER))
    except FileNotFoundError:
        return None
    # Since git 2.48 it may be relative to the record.
    pointer = Path(os.path.normpath(Path(os.path.realpath(record)) / said.removesuffix("\n")))
    return pointer.parent if pointer.name == ".git" else None


def is_of(common: Path, record: Path, worktree: Path) -> bool:
    """Whether a worktree is a directory there, and the record one of this repository and its own:
    what runs beside it may have put another in its place."""
    if worktree.is_symlink() or not worktree.is_dir():
        return False
    if os.path.realpath(record.parent) != os.path.realpath(common / _RECORDS):
        return False
    try:
        return _worktree(record) == _place(worktree)
    except OSError:
        return False


def forget_dead(common: Path, below: Path) -> None:
    """Removes the records of worktrees below a directory that are gone, and those that whoever
    removed them left unfinished. Not as `git worktree prune` any other: a worktree of the user may
    lie on a disk that is not there now. What cannot be read stays."""
    inside = Path(os.path.realpath(below))
    for record in _records(common):
        try:
            worktree = _worktree(record)
        except OSError:
            continue
        if worktree is None:
            is_dead = not os.path.lexists(record / "gitdir")
        else:
            is_dead = _was_below(worktree, inside) and not os.path.lexists(worktree / ".git")
        if is_dead and not _is_locked(record) and not record.is_symlink():
            _remove(record)


def _was_below(worktree: Path, directory: Path) -> bool:
    """Or was before the whole repository was moved: git has it where nothing is any more."""
    if worktree.is_relative_to(directory):
        return True
    return worktree.parts[-2 - _KEPT_WHEN_MOVED : -2] == directory.parts[-_KEPT_WHEN_MOVED:]


def _is_locked(record: Path) -> bool:
    """By the user, or git is making it now."""
    return os.path.lexists(record / "locked")


def _place(worktree: Path) -> Path:
    """As a record has it."""
    return Path(os.path.realpath(worktree.parent)) / worktree.name


def unregister(common: Path, gone: Collection[Path]) -> bool:
    """Removes the records of worktrees whose directories are gone; as `git worktree prune`, in a
    process, which would look at all of them. False if that is for git to do, since something is not
    plain.

    Git calls a record as the worktree, with a number behind it where there are several. One that
    has no `gitdir` is left alone: somebody may be about to write it.
    """
    names = tuple(path.name for path in gone)
    places = {_place(path) for path in gone}
    try:
        for record in _records(common):
            worktree = _worktree(record) if record.name.startswith(names) else None
            if worktree not in places or os.path.lexists(worktree / ".git"):
                continue
            if _is_locked(record) or os.path.lexists(worktree) or record.is_symlink():
                return False
            _remove(record)
    except OSError:
        return False
    return True


def _remove(record: Path) -> None:
    untrusted.remove_small_tree(record)
    if os.path.lexists(record):
        raise PermissionError(f"{record} cannot be removed")
