"""Changes: what becomes a commit, staged and told in one question; what differs between trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.repository.git import GitError, durable, git
from treewright.tree.repository.listing import Change

ASKED = (
    "diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv",
    "--ignore-submodules=none", "--raw", "--no-abbrev", "-z", "--stat",
)  # fmt: skip
"""Which files differ, for us, and then how much, for people."""

_RENAMED, _COPIED = "R", "C"
_NOTHING = "000000"


@dataclass(frozen=True, slots=True)
class Staged:
    """What an index holds that a commit does not."""

    changes: tuple[Change, ...]
    stat: str

    @property
    def paths(self) -> list[str]:
        return [change.path for change in self.changes]

    @classmethod
    def read(cls, said: str) -> Staged:
        """What git answers to `ASKED`. Names of files end with a NUL, which they cannot have."""
        changes, stat = read_raw(said)
        shown = stat.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return cls(tuple(changes), shown.rstrip("\n"))


def read_raw(said: str) -> tuple[list[Change], str]:
    """What `--raw -z` tells, and what comes after it."""
    changes: list[Change] = []
    while said.startswith(":"):
        facts, path, said = said.split("\0", 2)
        _, mode, _, name, status = facts.split(" ")
        if status[0] in (_RENAMED, _COPIED):
            if status[0] == _RENAMED:
                changes.append(Change(path, None))
            path, _, said = said.partition("\0")
        changes.append(Change(path, None if mode == _NOTHING else (mode, name)))
    return changes, said


def differences(repo: Path, pairs: Sequence[tuple[str, str]]) -> list[list[Change]]:
    """In what trees differ, for any number of pairs of them."""
    if not pairs:
        return []
    asked = ("diff-tree", "--stdin", "-r", "--raw", "--no-abbrev", "-z", "--no-renames")
    lines = "".join(f"{older} {newer}\n" for older, newer in pairs)
    said = git(repo, *asked, "--ignore-submodules=none", stdin=lines)
    found: list[list[Change]] = []
    for older, newer in pairs:
        head, _, said = said.partition("\n")
        if head != f"{older} {newer}":
            raise GitError(f"git diff-tree in {repo} did not answer what it was asked")
        changes, said = read_raw(said)
        found.append(changes)
    return found


def stage_all(worktree: Path) -> Staged:
    """Stages every change, and says what differs from HEAD."""
    git(worktree, "add", "--all", env=durable())
    return Staged.read(git(worktree, *ASKED, "HEAD", "--"))
