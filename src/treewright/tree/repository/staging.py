"""Changes: those staged in an index, and those between trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.repository.git import GitError, durable, git

STAGED_CHANGES = (
    "diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv",
    "--ignore-submodules=none", "--raw", "--no-abbrev", "-z", "--stat",
)  # fmt: skip
"""The git command whose output `Staged.parse` reads: changed files, then a summary for people."""

_RENAMED, _COPIED = "R", "C"
_MISSING = "000000"


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs in a commit: its new mode and object name, or None if it is removed."""

    path: str
    entry: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Staged:
    """The changes of an index against a commit, and their summary as `git diff --stat` shows it."""

    changes: tuple[Change, ...]
    stat: str

    @property
    def paths(self) -> list[str]:
        return [change.path for change in self.changes]

    @classmethod
    def parse(cls, text: str) -> Staged:
        """Return the changes from the output of `STAGED_CHANGES`."""
        changes, stat = _parse_raw(text)
        shown = stat.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return cls(tuple(changes), shown.rstrip("\n"))


def differences(repo: Path, pairs: Sequence[tuple[str, str]]) -> list[list[Change]]:
    """Return the changes between the two trees of each pair, from one git command."""
    if not pairs:
        return []
    asked = ("diff-tree", "--stdin", "-r", "--raw", "--no-abbrev", "-z", "--no-renames")
    lines = "".join(f"{older} {newer}\n" for older, newer in pairs)
    text = git(repo, *asked, "--ignore-submodules=none", stdin=lines)
    found: list[list[Change]] = []
    for older, newer in pairs:
        head, _, text = text.partition("\n")
        if head != f"{older} {newer}":
            raise GitError(f"git diff-tree in {repo} answered for other trees than asked")
        changes, text = _parse_raw(text)
        found.append(changes)
    return found


def stage_all(worktree: Path) -> Staged:
    """Stage every change of a worktree and return the changes against HEAD."""
    git(worktree, "add", "--all", env=durable())
    return Staged.parse(git(worktree, *STAGED_CHANGES, "HEAD", "--"))


def _parse_raw(text: str) -> tuple[list[Change], str]:
    """Return the changes of a `--raw -z` output, and the text behind them."""
    changes: list[Change] = []
    while text.startswith(":"):
        facts, path, text = text.split("\0", 2)
        _, mode, _, name, status = facts.split(" ")
        if status[0] in (_RENAMED, _COPIED):
            if status[0] == _RENAMED:
                changes.append(Change(path, None))
            path, _, text = text.partition("\0")
        changes.append(Change(path, None if mode == _MISSING else (mode, name)))
    return changes, text
