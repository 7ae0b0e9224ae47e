"""A goal as the rules look at it: the target's outline, and which hypotheses are data or facts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from treewright.proving.records import GoalView
from treewright.proving.sources.shape import Shape, arguments, flat, shape, unwrap, words

# Types with constructors, and the patterns that name what those carry.
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
    """A hypothesis that text can name."""

    name: str
    type: str
    outline: Shape
    head: str

    @property
    def result(self) -> str:
        """What it says or gives once its arguments are there."""
        outline, text = self.outline, self.type
        while outline.kind in ("forall", "implies"):
            text = outline.parts[-1]
            outline = shape(text)
        return text


class Context:
    """Everything the rules ask about one goal, worked out once."""

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
        """Values whose type is known to be one of data; those in the target first."""
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
        """Of a type the rules do not know: a datatype or a predicate of the user's."""
        settled = {h.name for h in (*self.facts, *self.data, *self.sorts, *self.functions)}
        return [
            h
            for h in self.hypotheses
            if h.name not in settled and h.outline.kind == "other" and h.head[:1].isupper()
        ]

    @cached_property
    def _variables(self) -> set[str]:
        """Type variables, whose members are data that cannot be split."""
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
