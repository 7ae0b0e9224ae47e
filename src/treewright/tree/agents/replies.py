"""The edits in a chat model's reply: read them, then make all of them or none.

Three forms, described to the model in `prompts/edit_in_reply.md`: SEARCH/REPLACE
blocks, whole files, and unified diffs. Diffs are git's business and are not mixed with
the other two, so that either way is atomic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import untrusted
from treewright.tree.agents import patch
from treewright.tree.agents.base import AgentFailure
from treewright.tree.agents.edits import FileEdit, confine, write_all
from treewright.tree.agents.line_endings import uses_crlf
from treewright.tree.ideas.text import blocks, patches

_SEARCH = re.compile(r"<{5,9} ?SEARCH\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} ?REPLACE\s*")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_PATH_IN_INFO = re.compile(r"""(?:^|\s)path=(?:"([^"]+)"|(\S+))""")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Whole lines to find, exactly once, and what to put there. An empty search makes a
    new file."""

    path: str
    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Edits in the order of the reply."""

    edits: tuple[Replacement | FileEdit, ...]
    diff: str


def apply(text: str, worktree: Path) -> None:
    """Makes the edits of a reply, or raises and leaves the worktree as it was."""
    reply = parse(text)
    if reply.diff and reply.edits:
        raise AgentFailure("edits_invalid", "diffs are mixed with other edits; use one form")
    if reply.diff:
        patch.apply(reply.diff, worktree)
    elif reply.edits:
        write_all(_resolve(reply.edits, worktree), worktree)
    else:
        raise AgentFailure("edits_missing", "the reply contains no edit")


def parse(text: str) -> Reply:
    """Code blocks without a path and prose are not edits."""
    found: list[tuple[int, Replacement | FileEdit]] = list(_replacements(text))
    for block in blocks(text):
        named = _PATH_IN_INFO.search(block.info)
        if named and not any(_SEARCH.fullmatch(line) for line in block.body.split("\n")):
            found.append((block.line, FileEdit(named[1] or named[2], block.body)))
    found.sort(key=lambda item: item[0])
    return Reply(tuple(edit for _, edit in found), "".join(patches(text)))


def _replacements(text: str) -> Iterator[tuple[int, Replacement]]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    index = 0
    while index < len(lines):
        if not _SEARCH.fullmatch(lines[index]):
            index += 1
            continue
        start = index
        path = _path_above(lines, start)
        divider = _next(_DIVIDER, lines, start + 1, path)
        end = _next(_REPLACE, lines, divider + 1, path)
        yield (
            start,
            Replacement(path, _join(lines[start + 1 : divider]), _join(lines[divider + 1 : end])),
        )
        index = end + 1


def _next(marker: re.Pattern[str], lines: list[str], start: int, path: str) -> int:
    for index in range(start, len(lines)):
        if marker.fullmatch(lines[index]):
            return index
    raise AgentFailure("edits_invalid", f"a SEARCH/REPLACE block for {path} is not closed")


def _path_above(lines: list[str], start: int) -> str:
    """The path in the fence's info string, or on the nearest line with text above it."""
    for line in reversed(lines[max(0, start - 4) : start]):
        named = _PATH_IN_INFO.search(line) if _FENCE.match(line) else None
        if named:
            return named[1] or named[2]
        if line.strip() and not _FENCE.match(line):
            name = line.strip().strip("`*# ").removesuffix(":").strip("`* ")
            if name and not _REPLACE.fullmatch(line):
                return name
            break
    raise AgentFailure("edits_invalid", "a SEARCH/REPLACE block has no path on the line above it")


def _join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _resolve(edits: tuple[Replacement | FileEdit, ...], worktree: Path) -> list[FileEdit]:
    """The new text of every file, computed before anything is written."""
    texts: dict[Path, tuple[str, str | None]] = {}
    for edit in edits:
        target = confine(edit.path, worktree)
        _, current = texts[target] if target in texts else ("", _read(target, edit.path))
        if isinstance(edit, FileEdit):
            new = _like(current, edit.text or "")
        else:
            new = _replaced(current, edit)
        texts[target] = (edit.path, new)
    return [FileEdit(path, text) for path, text in texts.values()]


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
    if len(at) != 1:
        times = f"stands {len(at)} times" if at else "does not stand"
        raise AgentFailure(
            "edits_failed", f"the SEARCH text {wanted[0].strip()!r}... {times} in {edit.path}"
        )
    lines[at[0] : at[0] + len(wanted)] = edit.replace.split("\n")[:-1]
    return _like(current, "\n".join(lines) + ("\n" if ends_with_newline and lines else ""))


def _like(current: str | None, new: str) -> str:
    """`new` with the line endings of `current`."""
    if current is not None and _crlf(current):
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new


def _crlf(text: str) -> bool:
    return uses_crlf(text.encode("utf-8"))
