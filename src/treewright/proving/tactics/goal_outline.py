"""A goal as the rules read it: the outline of propositions, fresh names, data and facts.

Only as much of Lean's grammar is parsed as decides which tactic fits: the outermost connective, the
binders in front, the sides of a relation. Other text has the kind `other`; a wrong guess costs one
failed tactic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from treewright.proving.records import GoalView

Kind = Literal[
    "forall", "implies", "iff", "or", "and", "exists", "not", "ne", "eq", "order", "true", "false",
    "other",
]  # fmt: skip

_OPEN = "([{⟨⦃"
_CLOSE = ")]}⟩⦄"
_TAKES_THE_REST = ("∀ ", "∃ ", "fun ", "if ", "match ", "let ", "have ", "λ ")
# Loosest first: the first of these that stands outside all brackets is the outermost connective.
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
    """A kind and its parts: both sides of a connective or relation, or the body of a binder."""

    kind: Kind
    parts: tuple[str, ...] = ()
    binders: tuple[Binder, ...] = ()


class Binder(NamedTuple):
    """A bound variable. Without a name it is an instance or an unused hypothesis."""

    name: str | None
    type: str


def flat(text: str) -> str:
    return " ".join(text.split())


def shape(text: str) -> Shape:
    """Return the outline of a printed proposition."""
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
    """Remove brackets that enclose the whole text."""
    while text.startswith("(") and _matching(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def words(text: str) -> set[str]:
    """Return the names in a text, with the parts of dotted ones."""
    return set(_NAME.findall(text))


def arguments(text: str) -> list[str]:
    """Split an application into its function and arguments, at spaces outside brackets."""
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
    """Read `(a b : T) {c : U} [Inst]`, or `a b : T`, or `a b`."""
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
    """Return the end of the part with top-level connectives: the first binder without brackets."""
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


_PLAIN = re.compile(r"[^\W\d]\w*'*")
_MOST_INTRODUCED = 24


class Fresh:
    """Hands out names that are not in use: `x`, then `x1`, `x2`, …"""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    @classmethod
    def of(cls, goal: GoalView) -> Fresh:
        taken = {hypothesis.name for hypothesis in goal.hypotheses}
        for hypothesis in goal.hypotheses:
            taken |= words(hypothesis.type)
        return cls(taken)

    def name(self, wanted: str) -> str:
        stem = wanted if _PLAIN.fullmatch(wanted) else "x"
        candidate, number = stem, 0
        while candidate in self._taken:
            number += 1
            candidate = f"{stem.rstrip('0123456789') or stem}{number}"
        self._taken.add(candidate)
        return candidate


def introduced(goal: GoalView) -> list[str]:
    """Return names for everything in front of the target: variables keep theirs, facts get `h`."""
    fresh, names, rest = Fresh.of(goal), [], flat(goal.target)
    while len(names) < _MOST_INTRODUCED:
        outline = shape(rest)
        if outline.kind == "forall":
            names += [fresh.name(binder.name or "inst") for binder in outline.binders]
        elif outline.kind in ("implies", "not"):
            names.append(fresh.name("h"))
        else:
            break
        if outline.kind == "not":
            break
        rest = outline.parts[-1]
    return names


def pattern(text: str, fresh: Fresh, name: str = "h") -> str:
    """Return an `rcases` pattern that takes a proposition apart as far as possible."""
    outline = shape(text)
    if outline.kind == "and":
        parts = [pattern(part, fresh, name) for part in _chain(outline, "and")]
        return f"⟨{', '.join(parts)}⟩"
    if outline.kind == "exists":
        bound = [fresh.name(binder.name or "x") for binder in outline.binders]
        body = pattern(outline.parts[-1], fresh, name)
        nested = shape(outline.parts[-1]).kind in ("and", "exists")
        inner = body[1:-1] if nested else body
        return f"⟨{', '.join([*bound, inner])}⟩"
    if outline.kind == "or":
        return " | ".join(_side(part, fresh, name) for part in _chain(outline, "or"))
    return fresh.name(name)


def _side(text: str, fresh: Fresh, name: str) -> str:
    side = pattern(text, fresh, name)
    return f"({side})" if " | " in side and not side.startswith("⟨") else side


def _chain(outline: Shape, kind: str) -> list[str]:
    """Return the parts of `a ∧ b ∧ c`."""
    first, rest = outline.parts
    following = shape(rest)
    return [first, *_chain(following, kind)] if following.kind == kind else [first, rest]


Ranked = tuple[float, str]

# Types with their constructors, and names for the fields of each.
RECURSIVE = {
    "Nat": (("zero", ""), ("succ", "n")),
    "List": (("nil", ""), ("cons", "x xs")),
}
SPLITTABLE = {
    "Option": (("none", ""), ("some", "a")),
    "Bool": (("false", ""), ("true", "")),
    "Prod": (("mk", "a b"),),
    "Sum": (("inl", "a"), ("inr", "b")),
    "Except": (("error", "e"), ("ok", "a")),
    "Int": (("ofNat", "n"), ("negSucc", "n")),
}
_OTHER_DATA = ("Fin", "String", "Char", "Unit", "Array", "Subtype", "UInt8", "BitVec", "Float")
_SORTS = ("Type", "Sort", "Prop")
_MEMBERSHIP = (" ∈ ", " ∉ ", " ∣ ", " ⊆ ", "<+")


class Known(NamedTuple):
    """A hypothesis that a script can name."""

    name: str
    type: str
    outline: Shape
    head: str

    @property
    def result(self) -> str:
        """The statement or type that is left when all arguments are given."""
        outline, text = self.outline, self.type
        while outline.kind in ("forall", "implies"):
            text = outline.parts[-1]
            outline = shape(text)
        return text


class Context:
    """The properties of one goal that the rules use, computed once."""

    def __init__(self, goal: GoalView) -> None:
        self.goal = goal
        self.target = flat(goal.target)
        self.outline = shape(self.target)
        self.mentioned = words(self.target)
        self.hypotheses = [
            _known(h.name, flat(h.type)) for h in goal.hypotheses if h.accessible and not h.value
        ]
        self.nameless = [h for h in goal.hypotheses if not h.accessible]

    @cached_property
    def sorts(self) -> list[Known]:
        return [h for h in self.hypotheses if h.head in _SORTS]

    @cached_property
    def atoms(self) -> list[Known]:
        """Propositional variables."""
        return [h for h in self.hypotheses if h.type == "Prop"]

    @cached_property
    def facts(self) -> list[Known]:
        return [h for h in self.hypotheses if self._is_fact(h)]

    @cached_property
    def data(self) -> list[Known]:
        """Values of known data types; those in the target come first."""
        values = [h for h in self.hypotheses if self._is_data(h)]
        return sorted(values, key=lambda h: h.name not in self.mentioned)

    @cached_property
    def functions(self) -> list[Known]:
        """Functions between data, such as `f : Nat → Nat`."""
        return [
            h
            for h in self.hypotheses
            if h.outline.kind == "implies" and not self._is_fact(h) and h.result != "Prop"
        ]

    @cached_property
    def unknown(self) -> list[Known]:
        """Values of types that the rules do not know: a datatype or a predicate of the user."""
        settled = {h.name for h in (*self.facts, *self.data, *self.sorts, *self.functions)}
        return [
            h
            for h in self.hypotheses
            if h.name not in settled and h.outline.kind == "other" and h.head[:1].isupper()
        ]

    @cached_property
    def _variables(self) -> set[str]:
        """Type variables. Their members are data that cannot be split."""
        return {h.name for h in self.hypotheses if h.head in ("Type", "Sort")}

    @cached_property
    def _predicates(self) -> set[str]:
        return {h.name for h in self.hypotheses if h.result == "Prop"}

    def _is_fact(self, known: Known) -> bool:
        kind = known.outline.kind
        if kind in ("forall", "implies"):
            return known.result != "Prop" and self._proposes(known.result)
        return kind != "other" or self._proposes(known.type)

    def _proposes(self, text: str) -> bool:
        text = unwrap(text)
        if shape(text).kind != "other" or any(sign in text for sign in _MEMBERSHIP):
            return True
        return arguments(text)[0] in self._predicates

    def _is_data(self, known: Known) -> bool:
        head = known.head
        if known.outline.kind != "other" or self._is_fact(known):
            return False
        return (
            head in RECURSIVE
            or head in SPLITTABLE
            or head in _OTHER_DATA
            or head in self._variables
        )


def first(goals: Sequence[GoalView]) -> Context:
    return Context(goals[0])


def _known(name: str, text: str) -> Known:
    parts = arguments(unwrap(text))
    head = parts[0] if parts else ""
    if head not in RECURSIVE and " × " in text:
        head = "Prod"
    return Known(name, text, shape(text), head)
