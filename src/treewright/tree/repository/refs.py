"""Branches, tags and HEAD of a repository and its worktrees, as git reports them.

Two things are read from files instead. The git directory of a worktree is, because code under test
may have changed the worktree's `.git`. HEAD is opened first, because git would wait at a pipe.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.tree.repository.git import GitError, git, try_git

_LARGEST_POINTER = 1 << 16
_SHA256_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Head:
    """HEAD of a worktree: the commit, and the branch unless HEAD is detached."""

    commit: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class Refs:
    """HEAD of a worktree, and every ref of its repository by name."""

    head: Head
    named: Mapping[str, str]

    @property
    def is_sha256(self) -> bool:
        """Whether the repository names objects by SHA-256."""
        return len(self.head.commit) == _SHA256_LENGTH


def git_directories(worktree: Path) -> tuple[Path, Path]:
    """Return the git directory of a worktree, and the one that it shares with other worktrees."""
    try:
        own = worktree / ".git"
        if not own.is_dir():
            pointer = untrusted.read(own, _LARGEST_POINTER)
            own = worktree / os.fsdecode(pointer.removeprefix(b"gitdir: ").removesuffix(b"\n"))
        return own, common_directory(own)
    except (OSError, ValueError) as problem:
        raise GitError(f"{worktree} is not a worktree made by git: {problem}") from None


def common_directory(own: Path) -> Path:
    """Return the directory that a worktree with the git directory `own` shares with others."""
    with contextlib.suppress(FileNotFoundError):
        other = untrusted.read(own / "commondir", _LARGEST_POINTER).removesuffix(b"\n")
        return own / os.fsdecode(other)
    return own


def read_head(worktree: Path) -> Head:
    """Return HEAD of a worktree; a GitError if it is not readable or has no commit."""
    own, _ = git_directories(worktree)
    try:
        untrusted.read(own / "HEAD", _LARGEST_POINTER)
    except OSError as problem:
        raise GitError(f"HEAD of {worktree} cannot be read: {problem}") from None
    # Not `rev-parse --symbolic-full-name`, which says nothing where a tag is called HEAD.
    branch = try_git(worktree, "symbolic-ref", "-q", "HEAD").stdout.strip()
    return Head(git(worktree, "rev-parse", "--verify", "HEAD").strip(), branch or None)


def read_refs(worktree: Path) -> Refs:
    """Return HEAD of a worktree and all refs of its repository."""
    return Refs(read_head(worktree), refs_below(worktree, "refs/"))


def refs_below(worktree: Path, prefix: str) -> dict[str, str]:
    """Return the object of every ref whose name begins with `prefix`, which ends with a slash."""
    lines = git(worktree, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
    pairs = [line.partition(" ") for line in lines.splitlines()]
    return {name: object_name for object_name, _, name in pairs}


def remove_locks(worktree: Path, prefix: str) -> None:
    """Remove the lock files of refs below `prefix` that killed git commands have left behind.

    Only for refs that one run owns: a lock may otherwise belong to a git command that is running.
    """
    _, common = git_directories(worktree)
    top = common / prefix
    if Path(os.path.realpath(top)) != Path(os.path.realpath(common)) / prefix:
        return  # `top` is reached through a link, and the locks there may be the user's
    with contextlib.suppress(OSError):
        for directory, _, names in os.walk(top):
            for name in names:
                if name.endswith(".lock"):
                    (Path(directory) / name).unlink()
