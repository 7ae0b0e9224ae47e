"""Reading a leanblueprint's LaTeX: statements, proofs, and the macros that link them to Lean.

The reader knows comments, verbatim text, nested braces, environments, `\\input` and `\\include`. It
keeps positions, so that an edit leaves every other byte unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.errors import UsageError

_STATEMENTS: tuple[str, ...] = (
    *("theorem", "lemma", "proposition", "corollary", "definition", "conjecture", "claim"),
    *("fact", "example", "remark", "notation", "construction", "assumption", "axiom"),
)
_VERBATIM = frozenset({"verbatim", "verbatim*", "lstlisting", "minted", "comment"})
_TOKEN = re.compile(r"\\([A-Za-z@]+\*?|.)|%[^\n]*", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n?")
_MAX_DEPTH = 50


@dataclass(slots=True)
class Marked:
    """An environment that can have `\\leanok`: the position for a new mark, and existing marks."""

    file: Path
    line: int
    insert_at: int
    leanok: list[tuple[int, int]] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Statement(Marked):
    """A statement of the blueprint, with its proof if it has one."""

    environment: str = ""
    label: str = ""
    lean: list[str] = field(default_factory=list)
    proof: Proof | None = None


@dataclass(slots=True)
class Proof(Marked):
    """A proof; `proves` is the label of its statement if the proof names one."""

    proves: str = ""


@dataclass(slots=True)
class Blueprint:
    """The content of a blueprint; `texts` has each file unchanged, also if it is not UTF-8."""

    statements: list[Statement] = field(default_factory=list)
    texts: dict[Path, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read(root: Path) -> Blueprint:
    """Read a file and every file that it inputs, in order."""
    blueprint = Blueprint()
    reader = _Reader(blueprint, root.parent)
    reader.read(root)
    reader.attach_proofs()
    return blueprint


def decode(data: bytes) -> str:
    """Return the text of a file; bytes that are not UTF-8 survive `encode`."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text that `decode` returned."""
    return text.encode("utf-8", "surrogateescape")


class _Reader:
    def __init__(self, blueprint: Blueprint, base: Path) -> None:
        self._blueprint = blueprint
        self._base = base
        self._kinds = set(_STATEMENTS)
        self._open: list[tuple[str, Marked | None]] = []
        self._proofs: list[tuple[Proof, Statement | None]] = []
        self._reading: list[Path] = []

    def read(self, path: Path) -> None:
        path = path.resolve()
        if path in self._reading or len(self._reading) > _MAX_DEPTH:
            self._blueprint.problems.append(f"{path.name} inputs itself")
            return
        try:
            text = decode(path.read_bytes())
        except OSError as error:
            if not self._reading:
                raise UsageError(f"cannot read {path}: {error.strerror}") from error
            self._blueprint.problems.append(f"{path.name} is missing: {error.strerror}")
            return
        self._blueprint.texts[path] = text
        self._reading.append(path)
        self._scan(path, text)
        self._reading.pop()

    def _scan(self, path: Path, text: str) -> None:
        position = 0
        while match := _TOKEN.search(text, position):
            position = match.end()
            name = match[1]
            if name is None:
                continue  # a comment
            if name == "begin":
                position = self._begin(path, text, position)
            elif name == "end":
                argument, position = _argument(text, position)
                self._end(argument)
            elif name in ("verb", "verb*", "lstinline") and position < len(text):
                end = text.find(text[position], position + 1)
                position = end + 1 if end >= 0 else position
            elif name in ("input", "include"):
                argument, position = _argument(text, position)
                if argument:
                    self.read(self._resolve(path, argument))
            elif name == "newtheorem" or name == "newtheorem*":
                argument, position = _argument(text, position)
                self._kinds.add(argument)
            else:
                position = self._macro(name, text, match.start(), position)

    def _begin(self, path: Path, text: str, position: int) -> int:
        name, position = _argument(text, position)
        if name in _VERBATIM:
            end = text.find(f"\\end{{{name}}}", position)
            return end if end >= 0 else len(text)
        kind = name.rstrip("*")
        marked: Marked | None = None
        line = text.count("\n", 0, position) + 1
        if kind in self._kinds:
            position = _skip_option(text, position)
            marked = Statement(path, line, position, environment=kind)
            self._blueprint.statements.append(marked)
        elif kind == "proof":
            position = _skip_option(text, position)
            marked = Proof(path, line, position)
            previous = self._blueprint.statements[-1] if self._blueprint.statements else None
            self._proofs.append((marked, previous))
        self._open.append((name, marked))
        return position

    def _end(self, name: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == name:
                del self._open[index:]
                return

    def _macro(self, name: str, text: str, start: int, position: int) -> int:
        marked = next((m for _, m in reversed(self._open) if m is not None), None)
        if marked is None or marked.file != self._reading[-1]:
            return position
        if name == "leanok":
            marked.leanok.append((start, position))
            return position
        if name not in ("uses", "lean", "label", "proves"):
            return position
        argument, end = _argument(text, position)
        names = [part.strip() for part in argument.split(",") if part.strip()]
        if name == "uses":
            marked.uses += names
        elif name == "lean" and isinstance(marked, Statement):
            marked.lean += names
            marked.insert_at = end
        elif name == "label" and isinstance(marked, Statement) and not marked.label:
            marked.label = argument.strip()
        elif name == "proves" and isinstance(marked, Proof):
            marked.proves = argument.strip()
        return end

    def _resolve(self, path: Path, argument: str) -> Path:
        name = argument.strip().strip('"')
        for directory in (self._base, path.parent):
            for candidate in (directory / name, directory / f"{name}.tex"):
                if candidate.is_file():
                    return candidate
        return self._base / (name if name.endswith(".tex") else f"{name}.tex")

    def attach_proofs(self) -> None:
        labels = {s.label: s for s in self._blueprint.statements if s.label}
        for proof, previous in self._proofs:
            owner = labels.get(proof.proves) if proof.proves else previous
            if owner is not None and owner.proof is None:
                owner.proof = proof


def _argument(text: str, position: int) -> tuple[str, int]:
    """Return the content of the next braces without comments, and the position after them."""
    start = position
    while start < len(text) and text[start] in " \t\n\r":
        start += 1
    if start >= len(text) or text[start] != "{":
        return "", position
    depth, index = 0, start
    while index < len(text):
        character = text[index]
        if character == "\\":
            index += 1
        elif character == "%":
            index = text.find("\n", index)
            if index < 0:
                break
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                inside = _COMMENT.sub("", text[start + 1 : index])
                return " ".join(inside.split()), index + 1
        index += 1
    return "", position


def _skip_option(text: str, position: int) -> int:
    """Return the position after `[a title]`, if the text has one at this position."""
    if text[position : position + 1] != "[":
        return position
    depth = 0
    for index in range(position, len(text)):
        if text[index] in "[{":
            depth += 1
        elif text[index] in "]}":
            depth -= 1
            if depth == 0:
                return index + 1
    return position
