"""The outline of a proposition, read from how Lean prints it.

Only as much grammar as decides which tactic fits: the outermost connective, the binders in front,
the sides of a relation. What is not understood is `other`; a wrong guess costs one failed tactic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal[
    "forall", "implies", "iff", "or", "and", "exists", "not", "ne", "eq", "order", "true", "false",
    "other",
]  # fmt: skip

_OPEN = "([{⟨⦃"
_CLOSE = ")]}⟩⦄"
_TAKES_THE_REST = ("∀ ", "∃ ", "fun ", "if ", "match ", "let ", "have ", "λ ")
# Loosest first: where one of these stands outside all brackets, it is the outermost connective.
_CONNECTIVES: tuple[tuple[Kind, str], ...] = (
    ("iff", " ↔ "),
    ("implies", " → "),
    ("or", " ∨ "),
    ("and", " ∧ "),
)
_RELATIONS: tuple[tuple[Kind, str], ...] = (
    ("eq", " = "),
    ("ne", " ≠ "),
    ("order", " ≤ "),
    ("order", " < "),
    ("order", " ≥ "),
    ("order", " > "),
)
_NAME = re.compile(r"[^\W\d][\w'✝]*|_[\w'✝]+")


class Shape(NamedTuple):
    """A kind and its parts: both sides of a connective or a relation, or the body of a binder."""

    kind: Kind
    parts: tuple[str, ...] = ()
    binders: tuple[Binder, ...] = ()


class Binder(NamedTuple):
    """A bound variable. Without a name it is an instance or a hypothesis nobody mentions."""

    name: str | None
    type: str


def flat(text: str) -> str:
    return " ".join(text.split())


def shape(text: str) -> Shape:
    """The outline of a printed proposition."""
    text = unwrap(flat(text))
    if text in ("True", "False"):
        return Shape("true" if text == "True" else "false")
    reach = _reach(text)
    for kind, sign in _CONNECTIVES:
        at = _find(text, sign, reach)
        if at >= 0:
            return Shape(kind, (text[:at], text[at + len(sign) :]))
    if text.startswith("∀ "):
        return _bound("forall", text)
    if text.startswith("∃ "):
        return _bound("exists", text)
    if text.startswith("¬"):
        return Shape("not", (text[1:].strip(),))
    for kind, sign in _RELATIONS:
        at = _find(text, sign, reach)
        if at >= 0:
            return Shape(kind, (text[:at], text[at + len(sign) :]))
    return Shape("other")


def unwrap(text: str) -> str:
    """Without brackets that enclose all of it."""
    while text.startswith("(") and _matching(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def words(text: str) -> set[str]:
    """The names that occur in a text, with the parts of dotted ones."""
    return set(_NAME.findall(text))


def arguments(text: str) -> list[str]:
    """An application as its function and its arguments, by the spaces outside brackets."""
    parts: list[str] = []
    depth, begin = 0, 0
    for index, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == " " and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    return [part for part in [*parts, text[begin:]] if part]


def _bound(kind: Kind, text: str) -> Shape:
    comma = _find(text, ", ", len(text))
    if comma < 0:
        return Shape("other")
    return Shape(kind, (text[comma + 2 :],), tuple(_binders(text[2:comma])))


def _binders(text: str) -> Iterator[Binder]:
    """`(a b : T) {c : U} [Inst]`, or `a b : T`, or `a b`."""
    if not text.startswith(tuple(_OPEN)):
        names, _, of = text.partition(" : ")
        for name in names.split():
            yield Binder(name, of)
        return
    index = 0
    while index < len(text):
        if text[index] not in _OPEN:
            index += 1
            continue
        end = _matching(text, index)
        inner = text[index + 1 : end].strip()
        names, colon, of = inner.partition(" : ")
        if text[index] == "[" and not colon:
            yield Binder(None, inner)
        for name in names.split() if colon else ():
            yield Binder(name, of)
        index = end + 1


def _reach(text: str) -> int:
    """How far connectives at the top can stand: up to a binder that takes all that follows."""
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        begins = index == 0 or text[index - 1] in " ¬"
        if depth == 0 and begins and text.startswith(_TAKES_THE_REST, index):
            return index
    return len(text)


def _find(text: str, sign: str, end: int) -> int:
    depth = 0
    for index, letter in enumerate(text[:end]):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and text.startswith(sign, index):
            return index
    return -1


def _matching(text: str, at: int) -> int:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] in _OPEN) - (text[index] in _CLOSE)
        if depth == 0:
            return index
    return len(text) - 1
