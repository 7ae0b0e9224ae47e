"""The edits in a chat model's reply: read them, then make all of them or none.

Three forms, described to the model in `prompts/edit_in_reply.md`: SEARCH/REPLACE
blocks, whole files, and unified diffs. Diffs are git's business and are not mixed with
the other two, so that either way is atomic.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.tree.agents import patch_coder
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.edits import FileEdit, confine, write_all
from treewright.tree.agents.line_endings import uses_crlf
from treewright.tree.ideas.idea_text import blocks, fence_for, patches

_SEARCH = re.compile(r"(?:<{5,9}|-{5,9}) ?SEARCH\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r"(?:>{5,9}|\+{5,9}) ?REPLACE\s*")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_PATH_IN_INFO = re.compile(r"""(?:^|\s)path=(?:"([^"]+)"|(\S+))""")
_PATH = re.compile(r"[^\s`*\"'()<>|:,;]*(?:/[^\s`*\"'()<>|:,;/]+|\.[A-Za-z]\w*)")
"""A name with a directory or an ending. Names without either are known only if they are files."""
_LABELS = re.compile(r"(?:file|path|filename)\s*:\s*", re.IGNORECASE)
_AROUND_NEAREST = 2


@dataclass(frozen=True, slots=True)
class Replacement:
    """Whole lines to find, exactly once, and what to put there. An empty search makes a
    new file. Without a path it is for the only file that may change."""

    path: str
    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Edits in the order of the reply."""

    edits: tuple[Replacement | FileEdit, ...]
    diff: str


def apply(text: str, worktree: Path, editable: Sequence[str] = ()) -> None:
    """Makes the edits of a reply, or raises and leaves the worktree as it was.

    `editable` are the files that may change: edits whose path is missing or shortened are
    attributed to them.
    """
    reply = parse(text, editable)
    if reply.diff and reply.edits:
        raise AgentFailure("edits_invalid", "diffs are mixed with other edits; use one form")
    if reply.diff:
        patch_coder.apply(reply.diff, worktree)
    elif reply.edits:
        write_all(_resolve(reply.edits, worktree, editable), worktree)
    else:
        raise AgentFailure("edits_missing", "the reply contains no edit")


def parse(text: str, editable: Sequence[str] = ()) -> Reply:
    """Code blocks without a path and prose are not edits."""
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
        divider = _next(_DIVIDER, lines, start + 1, number, path)
        end = _next(_REPLACE, lines, divider + 1, number, path)
        yield (
            start,
            Replacement(path, _join(lines[start + 1 : divider]), _join(lines[divider + 1 : end])),
        )
        index = end + 1


def _next(marker: re.Pattern[str], lines: list[str], start: int, number: int, path: str) -> int:
    for index in range(start, len(lines)):
        if marker.fullmatch(lines[index]):
            return index
    where = f" for {path}" if path else ""
    raise AgentFailure("edits_invalid", f"SEARCH/REPLACE block {number}{where} is not closed")


def _path_above(lines: list[str], start: int, editable: Sequence[str]) -> str:
    """The path in the fence's info string, or on the nearest line with text above it; none if
    that line is commentary, unless it names exactly one of the editable files."""
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
    """The new text of every file, computed before anything is written."""
    texts: dict[Path, tuple[str, str | None]] = {}
    for number, edit in enumerate(edits, start=1):
        which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            path = edit.path
            if isinstance(edit, Replacement) and (edit.search or not path):
                path = _meant(path, worktree, editable)
            target = confine(path, worktree)
            _, current = texts[target] if target in texts else ("", _read(target, path))
            if isinstance(edit, FileEdit):
                new = _like(current, edit.text or "")
            else:
                new = _replaced(current, Replacement(path, edit.search, edit.replace))
        except AgentFailure as failure:
            raise AgentFailure(
                failure.code, which + failure.message, detail=failure.detail
            ) from None
        texts[target] = (path, new)
    return [FileEdit(path, text) for path, text in texts.values()]


def _meant(path: str, worktree: Path, editable: Sequence[str]) -> str:
    """The file that an edit is for: the one it names; else the editable file whose path ends so;
    else the only editable file, whose lines have to match all the same."""
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
    text = current.replace("\r\n", "\n") if _crlf(current) else current
    ends_with_newline = text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    wanted = edit.search.split("\n")[:-1]
    at = [i for i in range(len(lines) - len(wanted) + 1) if lines[i : i + len(wanted)] == wanted]
    if len(at) > 1:
        raise AgentFailure(
            "edits_failed",
            f"the SEARCH text {wanted[0].strip()!r}... stands {len(at)} times in {edit.path}: at "
            f"the lines {', '.join(str(i + 1) for i in at[:5])}; give more lines around it",
        )
    if not at:
        raise _no_match(edit.path, lines, wanted)
    lines[at[0] : at[0] + len(wanted)] = edit.replace.split("\n")[:-1]
    return _like(current, "\n".join(lines) + ("\n" if ends_with_newline and lines else ""))


def _no_match(path: str, lines: list[str], wanted: list[str]) -> AgentFailure:
    """Says where the text came nearest: most lines that are the same but for blanks, or else the
    line most like the first one."""
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
            said = f"the SEARCH text {wanted[0].strip()!r}... does not stand in {path}"
            return AgentFailure("edits_failed", f"{said}, and no line there is like it")
        best = bare.index(close[0])
    end = min(best + len(wanted), len(lines))
    shown = "\n".join(lines[max(0, best - _AROUND_NEAREST) : end + _AROUND_NEAREST])
    fence = fence_for(shown)
    return AgentFailure(
        "edits_failed",
        f"the SEARCH text {wanted[0].strip()!r}... does not stand in {path}; the nearest lines are "
        f"{best + 1}-{end}, which begin {lines[best].strip()!r}",
        detail=f"The lines there, in {path}:\n{fence}\n{shown}\n{fence}\n",
    )


def _like(current: str | None, new: str) -> str:
    """`new` with the line endings of `current`."""
    if current is not None and _crlf(current):
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new


def _crlf(text: str) -> bool:
    return uses_crlf(text.encode("utf-8"))
