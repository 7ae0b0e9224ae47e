"""Files that a candidate must leave as they are: which these are, and whether they still are."""

from __future__ import annotations

import fnmatch
import functools
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.guard import protected_submodules
from treewright.tree.repository import objects, refs
from treewright.tree.repository.git import git, try_git
from treewright.tree.repository.listing import Listing, listing

_PLAIN, _EXECUTABLE, _LINK = "100644", "100755", "120000"


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

        def is_there(place: Path, found: Listing, commit: str, env: Mapping[str, str]) -> bool:
            files = {path: found.entries[path] for path in found.entries}
            for path in found.submodules:
                del files[path]
            if found.attributes:
                files = _as_checked_out(repo, commit, files, env)
            inside = place.resolve()
            return all(
                real((inside / path).parent) and _is(inside / path, *expected, guarded.trusts_modes)
                for path, expected in files.items()
            )

        changed |= protected_submodules.changed(repo, worktree, guarded.submodules, is_there)
    return sorted(changed)


@dataclass(frozen=True, slots=True)
class _Guarded:
    files: Mapping[str, tuple[str, str]]
    """Path -> mode, and the object name that its bytes would have as they are checked out."""
    submodules: Mapping[str, str]
    """Path -> commit."""
    trusts_modes: bool


@functools.lru_cache(maxsize=32)
def _guarded(repo: Path, commit: str, protected: tuple[str, ...]) -> _Guarded:
    """A commit never changes, and is looked at after its tests and after every sweep."""
    found = listing(repo, commit)
    paths = protected_changes(found.entries, protected)
    inside = {path: found.entries[path][1] for path in sorted({*paths} & {*found.submodules})}
    files = {path: found.entries[path] for path in paths if path not in inside}
    plain = (repo / ".git").is_dir() and not (repo / ".git/info/attributes").exists()
    off = _switched_off(repo) if paths else set[str]()
    if files and (found.attributes or not plain or "core.symlinks" in off):
        files = _as_checked_out(repo, commit, files)
    return _Guarded(files, inside, "core.filemode" not in off)


def _switched_off(repo: Path) -> set[str]:
    """Which of the settings that concern us somebody has set to false; the last word counts."""
    asked = ("config", "--type=bool", "--get-regexp", r"^core\.(symlinks|filemode)$")
    said = (line.partition(" ") for line in try_git(repo, *asked).stdout.splitlines())
    last = {name: value for name, _, value in said}
    return {name for name, value in last.items() if value == "false"}


def _as_checked_out(
    repo: Path,
    commit: str,
    files: Mapping[str, tuple[str, str]],
    given: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, str]]:
    """The files with the object names of what git writes for them, by the commit's attributes."""
    with tempfile.TemporaryDirectory(prefix="treewright-protected-") as directory:
        place = Path(directory).resolve() / "files"
        place.mkdir()
        env = {**_apart(repo, Path(directory), place), **(given or {})}
        git(place, "read-tree", commit, env=env)
        wanted = "".join(f"{path}\0" for path in files)
        git(place, "checkout-index", "--quiet", "-z", "--stdin", env=env, stdin=wanted)
        found: dict[str, tuple[str, str]] = {}
        for path, (mode, name) in files.items():
            is_link = (place / path).is_symlink()
            written = mode if is_link == (mode == _LINK) else _PLAIN
            found[path] = written, objects.file_name(place / path, is_link, len(name))
        return found


def _apart(repo: Path, directory: Path, worktree: Path) -> dict[str, str]:
    """For git: the repository, with another index and another worktree."""
    return {
        "GIT_DIR": str(refs.git_directories(repo)[0].absolute()),
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
            return stat.S_ISLNK(found) and objects.file_name(path, True, len(name)) == name
        runs = _EXECUTABLE if found & stat.S_IXUSR else _PLAIN
        if not stat.S_ISREG(found) or (trusts_modes and runs != mode):
            return False
        return objects.file_name(path, False, len(name)) == name
    except OSError:
        return False
