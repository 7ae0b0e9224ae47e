"""Files that a candidate must leave as they are: which these are, and whether they still are."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.repository.git import git
from treewright.tree.repository.listing import listing

_MOST_PATHSPECS = 500
_FILE_MODES = {"100644": 0, "100755": stat.S_IXUSR}
_CHUNK = 1 << 20


def protected_changes(paths: Iterable[str], protected: Sequence[str]) -> list[str]:
    """Those of `paths` that a protected file, directory or pattern covers."""
    return [path for path in paths if any(_covers(pattern, path) for pattern in protected)]


def _covers(pattern: str, path: str) -> bool:
    plain = pattern.removeprefix("./").strip("/")
    if path == plain or path.startswith(f"{plain}/") or fnmatch.fnmatchcase(path, plain):
        return True
    return plain.startswith("**/") and _covers(plain.removeprefix("**/"), path)


def tampered(repo: Path, worktree: Path, commit: str, protected: Sequence[str]) -> list[str]:
    """Protected files that differ from the commit after commands have run in the worktree.

    Neither the worktree's index nor its `.git` is asked: what ran there may have committed,
    marked files as unchanged, or removed them.
    """
    guarded = _guarded(repo, commit, tuple(protected))
    if not guarded.files or (guarded.stored_as_checked_out and _untouched(worktree, guarded.files)):
        return []
    paths = list(guarded.files) if len(guarded.files) <= _MOST_PATHSPECS else ["."]
    with tempfile.TemporaryDirectory(prefix="treewright-index-") as directory:
        env = {
            "GIT_DIR": git(repo, "rev-parse", "--absolute-git-dir").rstrip("\n"),
            "GIT_WORK_TREE": str(worktree),
            "GIT_INDEX_FILE": str(Path(directory) / "index"),
            "GIT_LITERAL_PATHSPECS": "1",
        }
        git(worktree, "read-tree", commit, env=env)
        compare = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z")
        changed = git(worktree, *compare, "--", *paths, env=env).split("\0")
    return sorted(set(changed) & guarded.files.keys())


@dataclass(frozen=True, slots=True)
class _Guarded:
    files: Mapping[str, tuple[str, str]]
    """Path -> mode and object name, as git lists them."""
    stored_as_checked_out: bool
    """No attribute makes git write other bytes than it keeps."""


@functools.lru_cache(maxsize=32)
def _guarded(repo: Path, commit: str, protected: tuple[str, ...]) -> _Guarded:
    found = listing(repo, commit)
    plain = (repo / ".git").is_dir() and not (repo / ".git/info/attributes").exists()
    files = {path: found.entries[path] for path in protected_changes(found.entries, protected)}
    return _Guarded(files, plain and not found.attributes)


def _untouched(worktree: Path, files: Mapping[str, tuple[str, str]]) -> bool:
    """Whether every file is there with its bytes and mode. If not, git says which are not."""
    root = worktree.resolve()
    try:
        for directory in {(root / path).parent for path in files}:
            if directory.resolve(strict=True) != directory:  # reached through a link
                return False
        return all(_is(root / path, mode, name) for path, (mode, name) in files.items())
    except OSError:
        return False


def _is(path: Path, mode: str, name: str) -> bool:
    if mode not in _FILE_MODES:
        return False
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_mode & stat.S_IXUSR != _FILE_MODES[mode]:
            return False
        kind = "sha1" if len(name) == 40 else "sha256"
        digest = hashlib.new(kind, b"blob %d\0" % found.st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == name
