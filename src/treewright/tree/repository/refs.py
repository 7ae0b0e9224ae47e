"""HEAD, branches and tags, read from git's own files: gitrepository-layout(5).

An evaluation looks at them again and again, and a process for each look costs more than the
look. Only what is plain is read; whatever is not (another format, a link, a ref that is
changed at this moment) git is asked for.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.tree.repository.git import GitError, git

_LARGEST_POINTER = 1 << 16
_LARGEST_PACKED = 1 << 30
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^\.|\.$")
"""Of a file that lies among the refs and is none: git-check-ref-format(1)."""
_SYMBOLIC = "ref: "
_MOST_STEPS = 5
"""So often does git follow a ref that names another."""
_OF_ONE_WORKTREE = frozenset({"refs/bisect", "refs/rewritten", "refs/worktree"})


class _NotPlain(Exception):
    """Here only git knows."""


@dataclass(frozen=True, slots=True)
class Refs:
    """All refs of a repository, and where HEAD of one of its worktrees is."""

    head: str
    """As the file says it: `ref: <branch>`, or a commit."""
    named: Mapping[str, str]
    """Name -> object."""

    @property
    def branch(self) -> str | None:
        """The ref that HEAD names; None where it is a commit."""
        on = self.head.removeprefix(_SYMBOLIC)
        return on if on != self.head else None

    @property
    def commit(self) -> str:
        """Where HEAD is."""
        if self.branch is None:
            return self.head
        if self.branch not in self.named:
            raise GitError(f"{self.branch} has no commit")
        return self.named[self.branch]

    @property
    def sha256(self) -> bool:
        """Whether objects have the longer names."""
        return len(next(iter(self.named.values()), self.head)) == 64


def directories(worktree: Path) -> tuple[Path, Path]:
    """Where git keeps what is the worktree's own, and what it shares."""
    try:
        own = worktree / ".git"
        if not own.is_dir():
            pointer = untrusted.read(own, _LARGEST_POINTER)
            own = worktree / os.fsdecode(pointer.removeprefix(b"gitdir: ").removesuffix(b"\n"))
        return own, shared(own)
    except (OSError, ValueError) as problem:
        raise GitError(f"{worktree} is no worktree that git made: {problem}") from None


def shared(own: Path) -> Path:
    """The directory that the worktree with this one of its own shares with others."""
    with contextlib.suppress(FileNotFoundError):
        other = untrusted.read(own / "commondir", _LARGEST_POINTER).removesuffix(b"\n")
        return own / os.fsdecode(other)
    return own


def read(worktree: Path) -> Refs:
    own, common = directories(worktree)
    try:
        head = _read(own / "HEAD")
        loose = dict(_loose(common))
        # After the loose ones: a ref that is packed meanwhile is in one of the two.
        return Refs(head, dict(sorted(_resolved(dict(_packed(common)) | loose))))
    except (OSError, _NotPlain):
        return _asked(worktree)


def below(worktree: Path, prefix: str) -> dict[str, str]:
    """Name -> object, of all refs whose names begin with `prefix`, which ends with a slash."""
    try:
        _, common = directories(worktree)
        loose = dict(_loose(common, prefix.rstrip("/")))
        found = {name: at for name, at in _packed(common) if name.startswith(prefix)} | loose
        if any(at.startswith(_SYMBOLIC) for at in found.values()):
            raise _NotPlain
        return dict(sorted(found.items()))
    except (OSError, _NotPlain):
        lines = git(worktree, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
        split = [line.partition(" ") for line in lines.splitlines()]
        return {name: at for at, _, name in split}


def forget_locks(worktree: Path, prefix: str) -> None:
    """Removes what git commands that were killed have left beside the refs that they were about to
    change. Only for refs that nobody else changes: no name of a ref ends like that."""
    _, common = directories(worktree)
    top = common / prefix
    if Path(os.path.realpath(top)) != Path(os.path.realpath(common)) / prefix:
        return  # through a link, where locks may be the user's: of packages, for one
    with contextlib.suppress(OSError):
        for directory, _, names in os.walk(top):
            for name in names:
                if name.endswith(".lock"):
                    (Path(directory) / name).unlink()


def is_free(worktree: Path, branch: str) -> bool:
    """Whether there is for certain no such ref, and none in the way of it; if not, git knows."""
    try:
        _, common = directories(worktree)
        if not (common / "refs" / "heads").is_dir() or os.path.lexists(common / branch):
            return False
        if _read(common / "HEAD") == f"{_SYMBOLIC}{branch}":  # somebody is about to make it
            return False
        above = [str(name) for name in PurePosixPath(branch).parents][:-2]  # not `refs`, not `.`
        if any(os.path.lexists(common / name) and not (common / name).is_dir() for name in above):
            return False
        # After the loose ones. Searched, not read: a large repository has many.
        with contextlib.suppress(FileNotFoundError):
            packed = untrusted.read(common / "packed-refs", _LARGEST_PACKED)
            names = [f" {branch}/", *(f" {name}\n" for name in (branch, *above))]
            return not any(os.fsencode(name) in packed for name in names)
        return True
    except (OSError, GitError, _NotPlain):
        return False


def commit_of(worktree: Path, branch: str) -> str | None:
    """Where a worktree's HEAD is, if it is on that branch for certain; else git knows."""
    try:
        own, common = directories(worktree)
        if _read(own / "HEAD") != f"{_SYMBOLIC}{branch}" or not (common / "refs/heads").is_dir():
            return None
        found = _read(common / branch)
    except (OSError, GitError, _NotPlain):
        return None
    return None if found.startswith(_SYMBOLIC) else found


def is_on(worktree: Path, branch: str) -> bool:
    """Whether HEAD is on that branch; what git writes to HEAD moves it."""
    try:
        own, common = directories(worktree)
        head = _read(own / "HEAD")  # a pipe there would make git wait
        if (common / "refs/heads").is_dir():
            return head == f"{_SYMBOLIC}{branch}"
    except (OSError, _NotPlain):
        return False
    return git(worktree, "symbolic-ref", "-q", "HEAD").strip() == branch


def is_at(worktree: Path, branch: str | None, commit: str) -> bool:
    """Whether HEAD is there for certain; if not, it may be, and git knows."""
    try:
        if branch is not None:
            return commit_of(worktree, branch) == commit
        return _read(directories(worktree)[0] / "HEAD") == commit
    except (OSError, GitError, _NotPlain):
        return False


def _read(path: Path) -> str:
    """What a file says that holds one ref."""
    said = os.fsdecode(untrusted.read(path, _LARGEST_POINTER)).rstrip("\n")
    if not said.startswith(_SYMBOLIC) and not _OBJECT.fullmatch(said):
        raise _NotPlain
    return said


def _loose(common: Path, below: str = "refs") -> Iterator[tuple[str, str]]:
    if not (common / "refs" / "heads").is_dir():  # in a repository with reftables it is a file
        raise _NotPlain
    directories = [below] if (common / below).is_dir() else []
    while directories:
        directory = directories.pop()
        with os.scandir(common / directory) as entries:
            for entry in entries:
                name = f"{directory}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if name not in _OF_ONE_WORKTREE:
                        directories.append(name)
                elif not name.endswith(".lock"):
                    if _NO_NAME.search(entry.name):
                        raise _NotPlain
                    yield name, _read(Path(entry.path))


def _packed(common: Path) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(FileNotFoundError):
        listed = untrusted.read(common / "packed-refs", _LARGEST_PACKED)
        for line in os.fsdecode(listed).split("\n"):
            if line and line[0] not in "#^":
                found, _, name = line.partition(" ")
                if not _OBJECT.fullmatch(found):
                    raise _NotPlain
                yield name, found


def _resolved(refs: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Without those that lead to no commit."""
    for name, found in refs.items():
        for _ in range(_MOST_STEPS):
            if found.startswith(_SYMBOLIC):
                found = refs.get(found.removeprefix(_SYMBOLIC), "")
        if _OBJECT.fullmatch(found):
            yield name, found


def _asked(worktree: Path) -> Refs:
    lines = git(worktree, "for-each-ref", "--format=%(HEAD)%(objectname) %(refname)").splitlines()
    split = [line[1:].partition(" ") for line in lines]
    on = [line.partition(" ")[2] for line in lines if line.startswith("*")]
    head = f"{_SYMBOLIC}{on[0]}" if on else git(worktree, "rev-parse", "HEAD").strip()
    return Refs(head, {name: found for found, _, name in split})
