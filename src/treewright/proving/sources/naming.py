"""Names for what tactics bring into a goal: readable, and never hiding a name in use."""

from __future__ import annotations

import re
from collections.abc import Iterable

from treewright.proving.records import GoalView
from treewright.proving.sources.shape import Shape, flat, shape, words

_PLAIN = re.compile(r"[^\W\d]\w*'*")
_MOST_INTRODUCED = 24


class Fresh:
    """Hands out names that are not taken: `x`, then `x1`, `x2`, …"""

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
    """A name for everything in front of the target: variables by their own, facts by `h`."""
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
    """An `rcases` pattern that takes a proposition apart as far as it goes; a name if it cannot."""
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
    """`a ∧ b ∧ c` as its three parts."""
    first, rest = outline.parts
    following = shape(rest)
    return [first, *_chain(following, kind)] if following.kind == kind else [first, rest]
