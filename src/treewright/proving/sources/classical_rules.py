"""Statements about all or some of something: whether one holds, and what it means if not."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.proving.sources.context import Context
from treewright.proving.sources.naming import Fresh
from treewright.proving.sources.shape import Shape, shape, unwrap, words
from treewright.proving.sources.target_rules import Ranked

_MOST_CASES = 2


def classical(context: Context) -> Iterator[Ranked]:
    for fact in context.facts:
        if fact.outline.kind == "not" and ("∀" in fact.type or "∃" in fact.type):
            yield 3.0, f"simp at {fact.name}"
    for hypothesis in context.hypotheses:
        if hypothesis.head == "Nonempty":
            yield 6.0, f"obtain ⟨{Fresh.of(context.goal).name('a')}⟩ := {hypothesis.name}"
    if context.outline.kind in ("exists", "or"):
        h = Fresh.of(context.goal).name("h")
        known = {unwrap(fact.type) for fact in context.facts}
        for said in list(dict.fromkeys(_quantified(context.outline)))[:_MOST_CASES]:
            if said not in known and f"¬{said}" not in known and f"¬({said})" not in known:
                yield 2.0, f"by_cases {h} : {said}"


def by_contradiction(context: Context) -> Iterator[Ranked]:
    if context.outline.kind in ("exists", "or"):
        h = Fresh.of(context.goal).name("h")
        yield 1.5, f"refine Classical.byContradiction fun {h} => ?_"


def _quantified(outline: Shape, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """The parts that speak of all or some of something, without what is bound further out."""
    bound |= {binder.name for binder in outline.binders if binder.name}
    if outline.kind in ("eq", "ne", "order"):
        return
    for part in outline.parts:
        inner = shape(part)
        if inner.kind in ("forall", "exists") and not words(part) & bound:
            yield unwrap(part)
        yield from _quantified(inner, bound)
