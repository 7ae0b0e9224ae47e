"""The part of a file that may change: what stands between two marked lines.

The markers are those that OpenEvolve and ShinkaEvolve use, in whatever comments the language has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from treewright.tree.repository.git import try_git

START = "EVOLVE-BLOCK-START"
END = "EVOLVE-BLOCK-END"


def block_rules(editable: Iterable[str]) -> list[str]:
    """For those who propose or write a change."""
    return [
        f"Of `{path}` change only what stands between the lines with {START} and {END}, and no "
        "other file."
        for path in editable
    ]


def has_block(text: str) -> bool:
    """Whether there is a block that is closed."""
    return START in text and END in text[text.index(START) :]


def outside(text: str) -> str:
    """The text without what its blocks hold; the marked lines stay."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if END in line:
            inside = False
        if not inside:
            kept.append(line)
        if START in line:
            inside = True
    return "".join(kept)


def spans(source: bytes) -> list[tuple[int, int]]:
    """Where the insides of the blocks are: from byte, to byte."""
    found: list[tuple[int, int]] = []
    at, start = 0, None
    for line in source.splitlines(keepends=True):
        if END.encode() in line and start is not None:
            found.append((start, at))
            start = None
        at += len(line)
        if START.encode() in line:
            start = at
    return found


def changed_outside(worktree: Path, changed: Iterable[str], editable: Sequence[str]) -> list[str]:
    """Those of the staged paths that differ from HEAD in more than the blocks of editable files."""
    return [path for path in changed if path not in editable or not _differs_inside(worktree, path)]


def _differs_inside(worktree: Path, path: str) -> bool:
    modes = try_git(worktree, "diff", "--cached", "--raw", "--no-renames", "HEAD", "--", path)
    fields = modes.stdout.split()
    if len(fields) < 2 or fields[0].removeprefix(":") != fields[1]:  # made, deleted, a link now
        return False
    before = try_git(worktree, "show", f"HEAD:{path}")
    after = try_git(worktree, "show", f":{path}")
    readable = before.returncode == 0 and after.returncode == 0
    return readable and outside(before.stdout) == outside(after.stdout)
