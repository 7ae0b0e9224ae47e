"""The text of an idea: its key for comparisons, its title, and its patches.

An idea is a Markdown file; its fenced `diff` blocks are a patch. Only this module reads ideas, so
that every package finds the same patch.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from treewright.kernel.storage.artifacts import sha256_text

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
_MAX_QUOTE_CHARS = 60
_PATCH_LANGUAGES = frozenset({"diff", "patch"})


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string, its lines, and its position."""

    info: str
    body: str
    line: int
    """Index of the line with the opening fence."""


def normalise(text: str) -> str:
    """Return the text in the form in which ideas are compared.

    Line endings, trailing blanks, runs of empty lines, and the Unicode spelling of a character do
    not make a new idea. Indentation does, because it has a meaning in a patch.
    """
    text = unicodedata.normalize("NFC", text.removeprefix("\ufeff"))
    lines = [line.rstrip() for line in re.split(r"\r\n|\r|\n", text)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def key(text: str) -> str:
    """Return the key of an idea. Texts with the same key are the same idea."""
    return sha256_text(normalise(text))


def title(text: str) -> str:
    """Return the first heading, else the first line with text, else a title for the patch."""
    fenced: set[int] = set()
    for block in blocks(text):
        fenced.update(range(block.line, block.line + block.body.count("\n") + 2))
    first = ""
    for index, line in enumerate(text.split("\n")):
        stripped = (line.removeprefix("\ufeff").strip().splitlines() or [""])[0]
        if index in fenced:
            continue
        if re.match(r"#{1,6}\s+\S", stripped):
            return stripped.lstrip("#").strip()
        if _FENCE.fullmatch(line.rstrip("\r")):
            # The block is not closed: the rest is code, or the text was cut off.
            return first or _title_of_patch("\n".join(text.split("\n")[index + 1 :]))
        first = first or stripped
    return first or _title_of_patch("".join(patches(text)))


def _title_of_patch(patch: str) -> str:
    """Return a title with the first change of a patch: `Change model.py: RATE = 0.01`."""
    lines = [line.rstrip() for line in patch.split("\n")]
    starts = (index for index, line in enumerate(lines) if line.startswith("@@"))
    start = next(starts, len(lines))
    names = [line[4:].split("\t")[0] for line in lines[:start] if line.startswith(("--- ", "+++ "))]
    name = next((n for n in reversed(names) if n not in ("", "/dev/null")), "")
    if not name:
        return ""
    name = re.sub(r"^[ab]/", "", name.strip('"'))
    verb = {"/dev/null": "Delete"}.get(names[-1], "Add" if names[0] == "/dev/null" else "Change")
    added = (line[1:].strip() for line in lines[start:] if line.startswith("+"))
    words = next((line for line in added if line), "")
    if len(words) > _MAX_QUOTE_CHARS:
        words = words[: _MAX_QUOTE_CHARS - 1].rstrip() + "…"
    return f"{verb} {name}: {words}" if words and verb != "Delete" else f"{verb} {name}"


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks in order, without an unclosed one, which may be cut off.

    A closing fence must not be indented deeper than the opening fence. CommonMark allows deeper
    ones, but then a context line in a diff of a Markdown file could end the diff.
    """
    found: list[Block] = []
    lines = markdown.split("\n")
    index = 0
    while index < len(lines):
        opening = _FENCE.fullmatch(lines[index].rstrip("\r"))
        index += 1
        if opening is None or (opening[2][0] == "`" and "`" in opening[3]):
            continue
        indent, fence = len(opening[1]), opening[2]
        closing = re.compile(rf" {{0,{indent}}}{re.escape(fence[0])}{{{len(fence)},}}\s*")
        start = index
        while index < len(lines) and not closing.fullmatch(lines[index]):
            index += 1
        if index == len(lines):
            break
        body = "".join(f"{_dedent(line, indent)}\n" for line in lines[start:index])
        found.append(Block(opening[3].strip(), body, start - 1))
        index += 1
    return found


def patches(markdown: str) -> list[str]:
    """Return the bodies of the blocks marked `diff` or `patch`, byte for byte."""
    return [block.body for block in blocks(markdown) if language(block) in _PATCH_LANGUAGES]


def language(block: Block) -> str:
    """Return the first word of the block's info string, in lower case."""
    return block.info.split(maxsplit=1)[0].lower() if block.info else ""


def fence_for(body: str) -> str:
    """Return a fence that is longer than every fence in `body`."""
    longest = max((len(run) for run in re.findall(r"`{3,}", body)), default=2)
    return "`" * (longest + 1)


def _dedent(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]
