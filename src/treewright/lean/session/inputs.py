"""Checks of text from outside, before it becomes part of Lean source.

Names and module names are checked by their letters. Binders, statements and scripts are checked by
Lean's own parser: the text is put together and parsed as one command or one tactic, and every piece
has to be its own node of the syntax tree, byte for byte. A text that closes a bracket early or adds
a second command is refused.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import SyntaxNode

if TYPE_CHECKING:
    from treewright.lean.session.host_session import HostSession

# Lean's letters: its isIdFirst and isIdRest, without λ, Π and Σ, which bind.
_GREEK = "\u03b1-\u03ba\u03bc-\u03c9\u0391-\u039f\u03a1\u03a4-\u03a9\u03ca-\u03fb\u1f00-\u1ffe"
_FIRST = f"A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f{_GREEK}\u2100-\u214f\U0001d49c-\U0001d59f"
_REST = f"{_FIRST}0-9'!?\u2080-\u2089\u2090-\u209c\u1d62-\u1d6a\u2c7c"
_PART = f"(?:[{_FIRST}][{_REST}]*|«[^«»\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]+»)"
_IDENTIFIER = re.compile(rf"{_PART}(?:\.{_PART})*")
_LONGEST_NAME = 1000
GOAL_NAME = "treewright_goal"
"""The name of the theorem that is made from a statement without a name."""
_OPENING = ("(", "{", "[", "⦃")
_BINDERS = frozenset(
    f"Lean.Parser.Term.{kind}"
    for kind in ("explicitBinder", "implicitBinder", "strictImplicitBinder", "instBinder")
)
_PARENTHESES = "Lean.Parser.Tactic.paren"
_PLACEHOLDER = "sorry"


def is_identifier(text: str) -> bool:
    """Whether the text is exactly one Lean name."""
    return len(text) <= _LONGEST_NAME and _IDENTIFIER.fullmatch(text) is not None


def identifier(text: str) -> str:
    """Return the text if it is a name in Lean. Raises UsageError if not."""
    if not is_identifier(text):
        raise UsageError(f"{_shown(text)} is not a name in Lean")
    return text


def module_name(text: str) -> str:
    """Return the text if it is the name of a module. Raises UsageError if not."""
    if not is_identifier(text):
        raise UsageError(f"{_shown(text)} is not the name of a Lean module")
    return text


def header_of(imports: Sequence[str]) -> str:
    """Return the lines that import these modules."""
    return "".join(f"import {module_name(module)}\n" for module in imports)


def theorem_texts(
    statement: str,
    proof: str,
    *,
    name: str = GOAL_NAME,
    imports: Sequence[str] = ("Init",),
    preamble: str = "",
) -> tuple[str, str]:
    """Return two texts of a theorem: the original with `sorry`, and the candidate with a proof."""
    head = f"{header_of(imports)}\n{preamble}\ntheorem {name} : {statement} := by\n"
    script = "\n".join(f"  {line}" if line.strip() else "" for line in proof.splitlines())
    return f"{head}  sorry\n", f"{head}{script}\n"


_BRACKETS = {")": "(", "]": "[", "}": "{", "⦄": "⦃", "⟩": "⟨"}
_QUOTED = re.compile(r"[\"'«]|--|/-")


def check_closed(text: str, what: str) -> None:
    """Refuse text with an unbalanced bracket, without asking Lean.

    This check gives a quick answer. Text with quotes or comments passes, because only Lean's parser
    knows their content; the parser decides in the end.
    """
    if not text.isprintable() and any(c < " " and c not in "\n\t\r" for c in text):
        raise UsageError(f"{what} {_shown(text)} has control characters in it")
    if _QUOTED.search(text):
        return
    waiting: list[str] = []
    for letter in text:
        if letter in _BRACKETS.values():
            waiting.append(letter)
        elif letter in _BRACKETS and (not waiting or waiting.pop() != _BRACKETS[letter]):
            raise UsageError(f"{what} {_shown(text)} closes a bracket that it does not open")
    if waiting:
        raise UsageError(f"{what} {_shown(text)} opens a bracket that it does not close")


def binder(text: str) -> str:
    """Return a hypothesis as a binder: the text itself if it has brackets, else in parentheses."""
    text = text.strip()
    return text if text.startswith(_OPENING) else f"({text})"


@dataclass(frozen=True, slots=True)
class Theorem:
    """The pieces of a theorem's heading, as they come from outside."""

    name: str
    statement: str
    hypotheses: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """`name (h : p) … : statement`, as it stands behind `theorem`."""
        binders = "".join(f" {binder(entry)}" for entry in self.hypotheses)
        return f"{self.name}{binders} : {self.statement}"


def check_theorem(parser: HostSession, theorem: Theorem, *, after: str = "") -> None:
    """Refuse a theorem if its pieces are not one name, binders and one term in their place.

    Args:
        parser: the Lean that parses.
        theorem: the pieces.
        after: the text in front of the theorem; it must be complete and must not declare the name.
    """
    identifier(theorem.name)
    statement = theorem.statement.strip()
    binders = [binder(entry) for entry in theorem.hypotheses]
    pieces = ["theorem", theorem.name, *binders, ":", statement, ":=", _PLACEHOLDER]
    places = _places(pieces)
    parsed = parser.parse(" ".join(pieces), "command", after=after, name=theorem.name)
    if parsed.root is None:
        raise UsageError(f"{theorem.name} is nothing that Lean can read: {parsed.problem}")
    found = _pieces_of(parsed.root)
    if found is None or found.name != places[1]:
        raise UsageError(f"{_shown(theorem.heading)} is not the heading of one theorem")
    for entry, place in zip(binders, places[2:-4], strict=True):
        if place not in found.binders:
            raise UsageError(f"{_shown(entry)} is not one hypothesis `name : type`")
    whole = (places[-4][1], places[-1][1]) == (found.colon_end, found.end)
    if len(found.binders) != len(binders) or found.statement != places[-3] or not whole:
        raise UsageError(f"{_shown(statement)} is not one statement")
    if parsed.known:
        raise UsageError(f"there is something called {theorem.name} in front of it already")


def _places(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return the bytes of each piece in the text that joins the pieces with spaces."""
    places: list[tuple[int, int]] = []
    at = 0
    for piece in pieces:
        end = at + len(piece.encode())
        places.append((at, end))
        at = end + 1
    return places


def check_script(parser: HostSession, script: str, *, after: str = "") -> None:
    """Refuse a script that is not one sequence of tactics from its first to its last byte.

    The first line has to be the least indented: a line further left would end the surrounding block
    and begin a command.
    """
    lines = [line for line in script.expandtabs().splitlines() if line.strip()]
    if not lines:
        raise UsageError("the script is empty")
    indents = [len(line) - len(line.lstrip()) for line in lines]
    if min(indents) < indents[0]:
        raise UsageError("a line of the script stands further left than its first one")
    text = f"(\n{textwrap.dedent(script)}\n)"
    parsed = parser.parse(text, "tactic", after=after)
    if parsed.root is None:
        raise UsageError(f"the script is not a sequence of tactics: {parsed.problem}")
    places = [child.place for child in parsed.root.children]
    size = len(text.encode())
    if parsed.root.kind != _PARENTHESES or [*places[:1], *places[2:]] != [(0, 1), (size - 1, size)]:
        raise UsageError("the script closes a bracket that it did not open")


def check_script_in(parser: HostSession, text: str, start: int, end: int) -> None:
    """Refuse a script at bytes [start, end) of a file if a command begins within it.

    Lean parses the file up to the script, with the file's own notation. The check shows that the
    script does not reach beyond its declaration; more cannot be checked in the middle of a file.
    """
    before, script = text.encode()[:start].decode(), text.encode()[start:end].decode()
    before, script = (part.replace("\r\n", "\n") for part in (before, script))  # as Lean reads it
    first = len(before.encode())
    last = first + len(script.encode())
    if kind := parser.command_within(text.replace("\r\n", "\n"), first, last):
        raise UsageError(f"the script has a command in it: {kind}")


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The bytes of the pieces of a theorem."""

    name: tuple[int, int]
    binders: tuple[tuple[int, int], ...]
    colon_end: int
    statement: tuple[int, int]
    end: int


def _pieces_of(root: SyntaxNode) -> _Pieces | None:
    """Return the pieces of a plain theorem, or None if the text is anything else."""
    match root.children:
        case (
            SyntaxNode(start=-1),  # no modifiers
            SyntaxNode(
                kind="Lean.Parser.Command.theorem",
                children=(
                    _,
                    SyntaxNode(children=(name, SyntaxNode(start=-1))),
                    SyntaxNode(children=(binders, SyntaxNode(children=(colon, statement)))),
                    SyntaxNode(kind="Lean.Parser.Command.declValSimple"),
                ),
            ),
        ) if all(node.kind in _BINDERS for node in binders.children):
            return _Pieces(
                name.place,
                tuple(node.place for node in binders.children),
                colon.end,
                statement.place,
                root.end,
            )
        case _:
            return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
