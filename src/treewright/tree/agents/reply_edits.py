"""The edits in a chat model's reply: all of them are applied, or none.

`prompts/edit_in_reply.md` describes three forms to the model: SEARCH/REPLACE blocks, whole files,
and unified diffs. Git applies diffs. A reply must not mix diffs with the other two forms, so that
either way is atomic.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.edits import FileEdit, apply_patch, confine, uses_crlf, write_all
from treewright.tree.ideas.idea_text import blocks, fence_for, patches

_SEARCH = re.compile(r"(?:<{5,9}|-{5,9}) ?SEARCH\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r"(?:>{5,9}|\+{5,9}) ?REPLACE\s*")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_PATH_IN_INFO = re.compile(r"""(?:^|\s)path=(?:"([^"]+)"|(\S+))""")
_PATH = re.compile(r"[^\s`*\"'()<>|:,;]*(?:/[^\s`*\"'()<>|:,;/]+|\.[A-Za-z]\w*)")
"""Matches a name with a directory or an ending. Other names count only if they are files."""
_LABELS = re.compile(r"(?:file|path|filename)\s*:\s*", re.IGNORECASE)
_CONTEXT_LINES = 2
"""Lines shown before and after the nearest lines of a SEARCH text that does not match."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Lines that a file contains exactly once, and the lines that replace them.

    An empty search creates a file. An empty path means the only file that may change.
    """

    path: str
    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The edits of a reply, in order, or its diff."""

    edits: tuple[Replacement | FileEdit, ...]
    diff: str


def apply_edits(text: str, worktree: Path, editable: Sequence[str] = ()) -> None:
    """Apply the edits of a reply, or raise and leave the worktree unchanged.

    Args:
        text: The reply.
        worktree: The checkout to change.
        editable: The files that may change. An edit with a missing or shortened path is matched
            to one of them.

    Raises:
        AgentFailure: there is no edit, or an edit is invalid or does not fit its file.
    """
    reply = parse_edits(text, editable)
    if reply.diff and reply.edits:
        raise AgentFailure("edits_invalid", "diffs are mixed with other edits; use one form")
    if reply.diff:
        apply_patch(reply.diff, worktree)
    elif reply.edits:
        write_all(_resolve(reply.edits, worktree, editable), worktree)
    else:
        raise AgentFailure("edits_missing", "the reply contains no edit")


def parse_edits(text: str, editable: Sequence[str] = ()) -> Reply:
    """Return the edits of a reply. Prose and code blocks without a path are not edits."""
    found: list[tuple[int, Replacement | FileEdit]] = list(_replacements(text, editable))
    for block in blocks(text):
        named = _PATH_IN_INFO.search(block.info)
        if named and not _has_search(block.body):
            found.append((block.line, FileEdit(named[1] or named[2], block.body)))
    found.sort(key=lambda item: item[0])
    diff = "".join(body for body in patches(text) if not _has_search(body))
    return Reply(tuple(edit for _, edit in found), diff)


def _has_search(body: str) -> bool:
    return any(_SEARCH.fullmatch(line) for line in body.split("\n"))


def _replacements(text: str, editable: Sequence[str]) -> Iterator[tuple[int, Replacement]]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    index, path, number = 0, "", 0
    while index < len(lines):
        if not _SEARCH.fullmatch(lines[index]):
            index += 1
            continue
        start, number = index, number + 1
        path = _path_above(lines, start, editable) or path
        divider = _find_marker(_DIVIDER, lines, start + 1, number, path)
        end = _find_marker(_REPLACE, lines, divider + 1, number, path)
        yield (
            start,
            Replacement(path, _join(lines[start + 1 : divider]), _join(lines[divider + 1 : end])),
        )
        index = end + 1


def _find_marker(
    marker: re.Pattern[str], lines: list[str], start: int, number: int, path: str
) -> int:
    for index in range(start, len(lines)):
        if marker.fullmatch(lines[index]):
            return index
    where = f" for {path}" if path else ""
    raise AgentFailure("edits_invalid", f"SEARCH/REPLACE block {number}{where} is not closed")


def _path_above(lines: list[str], start: int, editable: Sequence[str]) -> str:
    """Return the path in the fence's info string, or on the nearest line with text above it.

    Return "" if that line is commentary. Commentary counts if it names one editable file only.
    """
    for line in reversed(lines[max(0, start - 4) : start]):
        if _FENCE.match(line):
            named = _PATH_IN_INFO.search(line)
            if named:
                return named[1] or named[2]
            words = re.split(r"[\s:]+", line.strip("`~ \t"))
            path = next((word for word in words[1:] if _PATH.fullmatch(word)), "")
            if path:
                return path
        elif line.strip():
            name = _LABELS.sub("", line.strip().strip("`*# "), count=1).strip("`*: ")
            if name in editable or _PATH.fullmatch(name):
                return name
            named = {path for path in editable if path in re.split(r"[\s`*\"'(),:;]+", line)}
            return named.pop() if len(named) == 1 else ""
    return ""


def _join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _resolve(
    edits: tuple[Replacement | FileEdit, ...], worktree: Path, editable: Sequence[str]
) -> list[FileEdit]:
    """Return the new text of every file, without writing any."""
    texts: dict[Path, tuple[str, str | None]] = {}
    for number, edit in enumerate(edits, start=1):
        prefix = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            path = edit.path
            if isinstance(edit, Replacement) and (edit.search or not path):
                path = _resolve_path(path, worktree, editable)
            target = confine(path, worktree)
            _, current = texts[target] if target in texts else ("", _read(target, path))
            if isinstance(edit, FileEdit):
                new = _with_line_endings(current, edit.text or "")
            else:
                new = _replaced(current, Replacement(path, edit.search, edit.replace))
        except AgentFailure as failure:
            raise AgentFailure(
                failure.code, prefix + failure.message, detail=failure.detail
            ) from None
        texts[target] = (path, new)
    return [FileEdit(path, text) for path, text in texts.values()]


def _resolve_path(path: str, worktree: Path, editable: Sequence[str]) -> str:
    """Return the file that an edit changes.

    This is the file with that path; else the editable file with that ending; else the only
    editable file. The lines of the edit must match in every case.
    """
    if path and (path in editable or os.path.lexists(worktree / path)):
        return path
    ends = [
        name for name in editable if f"/{name}".endswith(f"/{path}") or path.endswith(f"/{name}")
    ]
    if path and len(ends) == 1:
        return ends[0]
    leads_outside = PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
    if len(editable) == 1 and not leads_outside:
        return editable[0]
    if not path:
        known = f" (the files that may change are {', '.join(editable[:5])})" if editable else ""
        raise AgentFailure(
            "edits_invalid", f"a SEARCH/REPLACE block has no path on the line above it{known}"
        )
    return path


def _read(target: Path, path: str) -> str | None:
    try:
        return untrusted.read(target, untrusted.LARGEST_TEXT).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise AgentFailure("edits_failed", f"{path} is not a text file in UTF-8") from None


def _replaced(current: str | None, edit: Replacement) -> str:
    if not edit.search:
        if current:
            raise AgentFailure(
                "edits_failed", f"{edit.path} exists: an empty SEARCH makes new files"
            )
        return edit.replace
    if current is None:
        raise AgentFailure("edits_failed", f"{edit.path} does not exist")
    text = current.replace("\r\n", "\n") if _has_crlf(current) else current
    ends_with_newline = text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    wanted = edit.search.split("\n")[:-1]
    at = [i for i in range(len(lines) - len(wanted) + 1) if lines[i : i + len(wanted)] == wanted]
    if len(at) > 1:
        raise AgentFailure(
            "edits_failed",
            f"the SEARCH text {wanted[0].strip()!r}... occurs {len(at)} times in {edit.path}: at "
            f"lines {', '.join(str(i + 1) for i in at[:5])}; give more lines around it",
        )
    if not at:
        raise _no_match(edit.path, lines, wanted)
    lines[at[0] : at[0] + len(wanted)] = edit.replace.split("\n")[:-1]
    return _with_line_endings(
        current, "\n".join(lines) + ("\n" if ends_with_newline and lines else "")
    )


def _no_match(path: str, lines: list[str], wanted: list[str]) -> AgentFailure:
    """Return a failure that shows the nearest lines.

    These are the lines with the most matches, ignoring blanks; else the line most similar to the
    first one that the edit searches for.
    """
    bare = [re.sub(r"\s+", "", line) for line in lines]
    sought = [re.sub(r"\s+", "", line) for line in wanted]

    def alike(start: int) -> int:
        window = bare[start : start + len(sought)]
        return sum(a == b and bool(a) for a, b in zip(window, sought, strict=False))

    best = max(range(len(lines)), key=alike, default=0)
    if not lines or not alike(best):
        first = next((line for line in sought if line), "")
        close = difflib.get_close_matches(first, bare, n=1, cutoff=0.5)
        if not close:
            missing = f"the SEARCH text {wanted[0].strip()!r}... is not in {path}"
            return AgentFailure("edits_failed", f"{missing}, and no line there is similar")
        best = bare.index(close[0])
    end = min(best + len(wanted), len(lines))
    shown = "\n".join(lines[max(0, best - _CONTEXT_LINES) : end + _CONTEXT_LINES])
    fence = fence_for(shown)
    return AgentFailure(
        "edits_failed",
        f"the SEARCH text {wanted[0].strip()!r}... is not in {path}; the nearest lines are "
        f"{best + 1}-{end}, which begin {lines[best].strip()!r}",
        detail=f"The lines there, in {path}:\n{fence}\n{shown}\n{fence}\n",
    )


def _with_line_endings(current: str | None, new: str) -> str:
    """Return `new` with the line endings of `current`."""
    if current is not None and _has_crlf(current):
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new


def _has_crlf(text: str) -> bool:
    return uses_crlf(text.encode("utf-8"))
