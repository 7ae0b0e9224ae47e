"""The editable blocks of a file: the lines between two markers.

The markers are those of OpenEvolve and ShinkaEvolve, in a comment of the file's language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from treewright.tree.repository.git import try_git

START = "EVOLVE-BLOCK-START"
END = "EVOLVE-BLOCK-END"


def block_rules(editable: Iterable[str]) -> list[str]:
    """Return the rules about editable blocks, for prompts."""
    return [
        f"Of `{path}` change only what stands between the lines with {START} and {END}, and no "
        "other file."
        for path in editable
    ]


def has_block(text: str) -> bool:
    """Return whether the text has a block with both markers."""
    return START in text and END in text[text.index(START) :]


def outside(text: str) -> str:
    """Return the text without the lines inside its blocks; the markers stay."""
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
    """Return the first and the last byte of the inside of every block."""
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
    """Return the staged paths that differ from HEAD outside of the blocks of editable files."""
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
