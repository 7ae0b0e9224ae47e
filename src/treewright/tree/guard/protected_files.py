"""Protected files of a candidate: which these are, and whether they still hold the commit's bytes.

The check compares bytes with the object names of the commit. It asks neither the worktree's index
nor its `.git` nor its attributes, because a candidate may have changed them. Submodules are fetched
into the candidate's worktree, where its code can write to their repositories; only objects whose
content has their name are believed there.

A root checkout, which a sweep runs from, is compared when the sweep has ended. Files that the sweep
adds there are ignored, unless an interpreter would load them as code: such code can have measured
the later configs.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.text.printable import format_paths
from treewright.tree.repository import objects, private_repository, refs
from treewright.tree.repository.git import NO_FETCHING, GitError, git, try_git
from treewright.tree.repository.objects import Listing, listing, parse_listing

CODE_SUFFIXES = frozenset(
    {
        ".py", ".pyc", ".pyd", ".pth", ".so", ".dylib", ".js", ".cjs", ".mjs", ".node", ".rb",
        ".pl", ".pm", ".lua", ".jl", ".r", ".sh",
    }
)  # fmt: skip
"""Suffixes of files that interpreters find by name when they load code."""

Snapshot = Mapping[str, tuple[int, ...]]
"""The mode, inode, size and times of every file, by path."""
_PLAIN, _EXECUTABLE, _LINK = "100644", "100755", "120000"


def match_protected(paths: Iterable[str], protected: Sequence[str]) -> list[str]:
    """Return those of `paths` that a protected file, directory or pattern covers."""
    return [path for path in paths if any(_covers(pattern, path) for pattern in protected)]


def find_changed(repo: Path, worktree: Path, commit: str, protected: Sequence[str]) -> list[str]:
    """Return the protected files that differ from the commit as git checks it out."""
    expected = _expected(repo, commit, tuple(protected))
    root = worktree.resolve()
    changed = set(_find_different(root, expected.files, expected.are_modes_kept))
    for path, submodule_commit in expected.submodules.items():
        if not _is_submodule_unchanged(
            repo, worktree, worktree / path, submodule_commit, expected.are_modes_kept
        ):
            changed.add(path)
    return sorted(changed)


def _covers(pattern: str, path: str) -> bool:
    plain = pattern.removeprefix("./").strip("/")
    if path == plain or path.startswith(f"{plain}/") or fnmatch.fnmatchcase(path, plain):
        return True
    return plain.startswith("**/") and _covers(plain.removeprefix("**/"), path)


@dataclass(frozen=True, slots=True)
class _Expected:
    files: Mapping[str, tuple[str, str]]
    """By path: the mode, and the object name that the bytes have as they are checked out."""
    submodules: Mapping[str, str]
    """The commit by path."""
    are_modes_kept: bool
    """Whether the file system keeps the executable bit: git's core.fileMode."""


@functools.lru_cache(maxsize=32)
def _expected(repo: Path, commit: str, protected: tuple[str, ...]) -> _Expected:
    found = listing(repo, commit)
    paths = match_protected(found.entries, protected)
    submodules = {path: found.entries[path][1] for path in sorted({*paths} & {*found.submodules})}
    files = {path: found.entries[path] for path in paths if path not in submodules}
    # `.git/info/attributes` can convert files too; where `.git` is a file, it lies elsewhere.
    is_plain = (repo / ".git").is_dir() and not (repo / ".git/info/attributes").exists()
    disabled = _disabled_settings(repo) if paths else set[str]()
    if files and (found.attributes or not is_plain or "core.symlinks" in disabled):
        files = _as_checked_out(repo, commit, files)
    return _Expected(files, submodules, "core.filemode" not in disabled)


def _disabled_settings(repo: Path) -> set[str]:
    """Return which of core.symlinks and core.fileMode are false; git's last value counts."""
    asked = ("config", "--type=bool", "--get-regexp", r"^core\.(symlinks|filemode)$")
    pairs = (line.partition(" ") for line in try_git(repo, *asked).stdout.splitlines())
    last = {name: value for name, _, value in pairs}
    return {name for name, value in last.items() if value == "false"}


def _as_checked_out(
    repo: Path,
    commit: str,
    files: Mapping[str, tuple[str, str]],
    environment: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, str]]:
    """Return the files with the object names of the bytes that git writes for them.

    These differ from the commit's where attributes convert a file.
    """
    with tempfile.TemporaryDirectory(prefix="treewright-protected-") as directory:
        scratch = Path(directory).resolve() / "files"
        scratch.mkdir()
        env = {
            "GIT_DIR": str(refs.git_directories(repo)[0].absolute()),
            "GIT_WORK_TREE": str(scratch),
            "GIT_INDEX_FILE": str(Path(directory) / "index"),
            "GIT_LITERAL_PATHSPECS": "1",
            **(environment or {}),
        }
        git(scratch, "read-tree", commit, env=env)
        wanted = "".join(f"{path}\0" for path in files)
        git(scratch, "checkout-index", "--quiet", "-z", "--stdin", env=env, stdin=wanted)
        found: dict[str, tuple[str, str]] = {}
        for path, (mode, name) in files.items():
            is_link = (scratch / path).is_symlink()
            written = mode if is_link == (mode == _LINK) else _PLAIN
            found[path] = written, objects.file_name(scratch / path, is_link, len(name))
        return found


def _find_different(
    root: Path, files: Mapping[str, tuple[str, str]], are_modes_kept: bool
) -> Iterator[str]:
    """Yield the files that are missing, differ, or are reached through a link."""
    is_real = functools.cache(_is_real_directory)
    for path, (mode, name) in files.items():
        file = root / path
        if not (is_real(file.parent) and _is_same_file(file, mode, name, are_modes_kept)):
            yield path


def _is_real_directory(directory: Path) -> bool:
    try:
        return directory.resolve(strict=True) == directory
    except OSError:
        return False


def _is_same_file(path: Path, mode: str, name: str, are_modes_kept: bool) -> bool:
    try:
        found = path.lstat().st_mode
        if mode == _LINK:
            return stat.S_ISLNK(found) and objects.file_name(path, True, len(name)) == name
        actual = _EXECUTABLE if found & stat.S_IXUSR else _PLAIN
        if not stat.S_ISREG(found) or (are_modes_kept and actual != mode):
            return False
        return objects.file_name(path, False, len(name)) == name
    except OSError:
        return False


def _is_submodule_unchanged(
    repo: Path, worktree: Path, place: Path, commit: str, are_modes_kept: bool
) -> bool:
    """Return whether a submodule holds its commit. One that was not fetched is empty."""
    try:
        expected = worktree.resolve() / place.relative_to(worktree)
        if place.is_symlink() or place.resolve(strict=True) != expected:
            return False
        if not os.listdir(place):  # noqa: PTH208
            return True
        found_stores = _object_stores(repo, worktree, place)
        stores = [str(path) for path in found_stores if (path / "pack").is_dir()]
        env = {**NO_FETCHING, "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(stores)}
        found = _verified_listing(repo, commit, env)
    except (OSError, GitError, ValueError, RecursionError):
        return False
    files = {path: entry for path, entry in found.entries.items() if path not in found.submodules}
    if found.attributes:
        files = _as_checked_out(repo, commit, files, env)
    if next(_find_different(place.resolve(), files, are_modes_kept), None) is not None:
        return False
    return all(
        _is_submodule_unchanged(
            repo, worktree, place / path, found.entries[path][1], are_modes_kept
        )
        for path in found.submodules
    )


def _verified_listing(repo: Path, commit: str, env: Mapping[str, str]) -> Listing:
    """Return the files of a commit; a GitError if an object's content has another name."""
    text = git(repo, "cat-file", "commit", commit, env=env)
    tree = text.partition("\n")[0].removeprefix("tree ")
    found = Listing.of(parse_listing(git(repo, "ls-tree", "-r", "-z", commit, env=env)))
    data = text.encode("utf-8", "surrogateescape")
    is_genuine = objects.commit_name(data, len(commit)) == commit
    if not is_genuine or objects.tree_name(found.entries, len(commit)) != tree:
        raise GitError(f"{commit} does not have the content of its name")
    return found


def _object_stores(repo: Path, worktree: Path, place: Path) -> Iterator[Path]:
    """Yield the directories where objects of submodules may lie."""
    own, _ = refs.git_directories(worktree)
    for modules in (refs.git_directories(repo)[1] / "modules", private_repository.modules(own)):
        for directory, inside, _ in os.walk(modules):
            if "objects" in inside:
                yield Path(directory).resolve() / "objects"
                inside[:] = [name for name in inside if name == "modules"]
    if os.path.lexists(place / ".git"):
        yield refs.git_directories(place)[1].resolve() / "objects"


@dataclass(frozen=True, slots=True)
class RootVersion:
    """The commit that a run started from, and the paths in it that are protected."""

    repo: Path
    commit: str
    protected: Sequence[str] = ()


def take_snapshot(directory: Path) -> Snapshot:
    """Return the state of every file below a directory, without following links.

    Directories and files that cannot be read count as missing.
    """
    found: dict[str, tuple[int, ...]] = {}
    pending = [directory]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                    continue
                at = entry.stat(follow_symlinks=False)
                path = Path(entry.path).relative_to(directory).as_posix()
                found[path] = (at.st_mode, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    return found


def describe_changes(root: RootVersion, directory: Path, before: Snapshot) -> str:
    """Return one line about changed files of the commit or added code; "" if there are none."""
    now = take_snapshot(directory)
    touched = [path for path, state in before.items() if now.get(path) != state]
    # Contents are compared: a file that was only touched has not changed.
    changed = find_changed(root.repo, directory, root.commit, [*root.protected, *touched])
    if changed:
        return f"{format_paths(changed)} of the sweep's own checkout changed while it ran"
    new = now.keys() - before.keys()
    added = [os.fsencode(path) for path in new if _is_code(directory / path, now[path][0])]
    if added:
        shown = format_paths([path.decode("utf-8", "replace") for path in sorted(added)])
        return f"{shown} was added to the sweep's own checkout while it ran, and is code"
    return ""


def _is_code(path: Path, mode: int) -> bool:
    """Return whether an added file is code. A link to a directory may be a whole package.

    A `.pyc` in `__pycache__` is not: Python loads it only beside its source.
    """
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        return False
    candidates = [path]
    if stat.S_ISLNK(mode):
        with contextlib.suppress(OSError):
            candidates += path.iterdir()
    return any(each.suffix.lower() in CODE_SUFFIXES for each in candidates)
