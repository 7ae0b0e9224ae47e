"""Patches for files with CRLF line endings.

Markdown editors and chat models write LF. A patch whose every line is LF would never
match a CRLF file, so its hunks are given the line ending of the file they are for.
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import untrusted

_HUNK = ("+", "-", " ")


def uses_crlf(data: bytes) -> bool:
    """Whether every line of a file ends in CRLF (and there is at least one)."""
    lines = data.count(b"\n")
    return lines > 0 and lines == data.count(b"\r\n")


def adapt(patch: str, worktree: Path) -> str:
    """The patch with CRLF in the hunks of CRLF files; a patch that has any is left alone."""
    if "\r" in patch:
        return patch
    crlf = in_hunk = False
    lines = patch.split("\n")
    for index, line in enumerate(lines[:-1]):
        # A removed line can look like a header ("--- x"), but no "+++ " follows it.
        if line.startswith("--- ") and lines[index + 1].startswith("+++ "):
            crlf, in_hunk = _is_crlf(worktree, line[4:]), False
        elif line.startswith("@@"):
            in_hunk = True
        elif line.startswith("diff "):
            in_hunk = False
        elif in_hunk and crlf and (line.startswith(_HUNK) or not line):
            lines[index] = line + "\r"
    return "\n".join(lines)


def _is_crlf(worktree: Path, header: str) -> bool:
    name = header.split("\t")[0]
    path = worktree / name.removeprefix("a/")
    try:
        inside = path.resolve().is_relative_to(worktree.resolve())
        return inside and uses_crlf(untrusted.read(path, untrusted.LARGEST_TEXT))
    except OSError:
        return False
