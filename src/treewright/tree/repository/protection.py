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

from treewright.tree.repository.git import git, try_git
from treewright.tree.repository.listing import listing

_MOST_PATHSPECS = 500
_PLAIN, _EXECUTABLE, _LINK = "100644", "100755", "120000"
_SHA1 = 40
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
    """Protected files that are not as the commit is checked out, after commands have run in the
    worktree.

    Neither the worktree's index, its `.git` nor its attributes are asked: what ran there may have
    committed, marked files as unchanged, or said how git is to read them.
    """
    guarded = _guarded(repo, commit, tuple(protected))
    root = worktree.resolve()
    real = functools.cache(_is_real)
    changed = {
        path
        for path, expected in guarded.files.items()
        if not (real((root / path).parent) and _is(root / path, *expected, guarded.trusts_modes))
    }
    if guarded.submodules:
        changed |= _changed_submodules(repo, worktree, commit, guarded.submodules)
    return sorted(changed)


@dataclass(frozen=True, slots=True)
class _Guarded:
    files: Mapping[str, tuple[str, str]]
    """Path -> mode, and the object name that its bytes would have as they are checked out."""
    submodules: Sequence[str]
    trusts_modes: bool


@functools.lru_cache(maxsize=32)
def _guarded(repo: Path, commit: str, protected: tuple[str, ...]) -> _Guarded:
    """A commit never changes, and is looked at after its tests and after every sweep."""
    found = listing(repo, commit)
    paths = protected_changes(found.entries, protected)
    submodules = sorted(set(paths) & set(found.submodules))
    files = {path: found.entries[path] for path in paths if path not in submodules}
    plain = (repo / ".git").is_dir() and not (repo / ".git/info/attributes").exists()
    if files and (found.attributes or not plain or not _is_on(repo, "core.symlinks")):
        files = _as_checked_out(repo, commit, files)
    return _Guarded(files, submodules, _is_on(repo, "core.fileMode"))


def _is_on(repo: Path, setting: str) -> bool:
    """Unless it says otherwise."""
    return try_git(repo, "config", "--type=bool", setting).stdout.strip() != "false"


def _as_checked_out(
    repo: Path, commit: str, files: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """The files with the object names of what git writes for them, by the commit's attributes."""
    with tempfile.TemporaryDirectory(prefix="treewright-protected-") as directory:
        place = Path(directory).resolve() / "files"
        place.mkdir()
        env = _apart(repo, Path(directory), place)
        git(place, "read-tree", commit, env=env)
        wanted = "".join(f"{path}\0" for path in files)
        git(place, "checkout-index", "--quiet", "-z", "--stdin", env=env, stdin=wanted)
        found: dict[str, tuple[str, str]] = {}
        for path, (mode, name) in files.items():
            is_link = (place / path).is_symlink()
            written = mode if is_link == (mode == _LINK) else _PLAIN
            found[path] = written, _object_name(place / path, is_link, len(name))
        return found


def _changed_submodules(
    repo: Path, worktree: Path, commit: str, submodules: Sequence[str]
) -> set[str]:
    with tempfile.TemporaryDirectory(prefix="treewright-index-") as directory:
        env = _apart(repo, Path(directory), worktree)
        git(worktree, "read-tree", commit, env=env)
        compare = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z")
        paths = submodules if len(submodules) <= _MOST_PATHSPECS else ["."]
        changed = git(worktree, *compare, "--", *paths, env=env).split("\0")
    return set(changed) & set(submodules)


def _apart(repo: Path, directory: Path, worktree: Path) -> dict[str, str]:
    """For git: the repository, with another index and another worktree."""
    return {
        "GIT_DIR": git(repo, "rev-parse", "--absolute-git-dir").rstrip("\n"),
        "GIT_WORK_TREE": str(worktree),
        "GIT_INDEX_FILE": str(directory / "index"),
        "GIT_LITERAL_PATHSPECS": "1",
    }


def _is_real(directory: Path) -> bool:
    """Whether it is there, and not reached through a link."""
    try:
        return directory.resolve(strict=True) == directory
    except OSError:
        return False


def _is(path: Path, mode: str, name: str, trusts_modes: bool) -> bool:
    """Whether a file is there with its bytes and mode."""
    try:
        found = path.lstat().st_mode
        if mode == _LINK:
            return stat.S_ISLNK(found) and _object_name(path, True, len(name)) == name
        runs = _EXECUTABLE if found & stat.S_IXUSR else _PLAIN
        if not stat.S_ISREG(found) or (trusts_modes and runs != mode):
            return False
        return _object_name(path, False, len(name)) == name
    except OSError:
        return False


def _object_name(path: Path, is_link: bool, length: int) -> str:
    """What git would call the bytes of a file, or of where a link leads."""
    kind = "sha1" if length == _SHA1 else "sha256"
    if is_link:
        data = os.fsencode(path.readlink())
        whole = b"blob %d\0" % len(data) + data
        return hashlib.new(kind, whole, usedforsecurity=False).hexdigest()
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        digest = hashlib.new(kind, b"blob %d\0" % size, usedforsecurity=False)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
