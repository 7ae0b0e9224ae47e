"""Several lemmas at once: the sets that `simp`, `grind` and `ac_rfl` are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treewright.lean.inputs import is_identifier
from treewright.lean.knowledge import Knowledge, Use
from treewright.proving.records import GoalView
from treewright.proving.sources.shape import shape
from treewright.proving.sources.target_rules import Ranked

_BRIEF_GRIND = "grind (gen := 4) (ematch := 3) (instances := 100)"
"""With limits of its own: a set of lemmas that does not help would take it seconds."""
_MOST_IN_A_SET = 12
_MOST_FOR_GRIND = 5
"""To be read, a lemma costs `grind` up to 70 ms, whatever comes of it: as much as many a tactic."""
_MOST_ALONE = 2


def named(uses: Iterable[Use]) -> Iterator[Use]:
    """Those whose names text can have."""
    return (use for use in uses if all(is_identifier(part) for part in (use.name, use.at) if part))


def sets(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    """`simp`, `simp_all` and `grind` with the lemmas and definitions that fit."""
    uses = list(named(knowledge.uses))
    hypotheses = {h.name for h in goal.hypotheses}
    rules = _unique(u.name for u in uses if u.use == "rw" and not u.back and not u.loose)
    lemmas = [name for name in rules if name not in hypotheses]
    general = [name for name in rules if name in hypotheses]
    definitions = [name for name in knowledge.definitions if is_identifier(name)][:4]
    if definitions:
        yield 4.0, f"simp [{_listed(definitions)}]"
        yield 3.0, f"simp_all [{_listed(definitions)}]"
        yield 1.6, f"unfold {definitions[0]}"
    if lemmas:
        yield 4.0, f"simp [{_listed(lemmas)}]"
        yield 3.4, f"simp_all [{_listed(lemmas)}]"
    if general and (lemmas or definitions):
        yield 4.2, f"simp [{_listed(definitions + lemmas + general)}]"
    elif lemmas and definitions:
        yield 3.6, f"simp [{_listed(definitions + lemmas)}]"
    turning = {u.name for u in uses if u.law and not u.law.startswith("assoc")}
    yield from _rearranging(goal, uses)
    yield from _by_one(goal, [name for name in lemmas if name not in turning])
    concluding = _unique(u.name for u in uses if u.use in ("exact", "symm", "forward") and u.local)
    helping = [
        name
        for name in _unique([*lemmas, *concluding])
        # Lean's own about constructors are known to `simp` and `grind`.
        if name not in hypotheses and not name.endswith((".inj", ".injEq"))
    ]
    # What only changes an order has `grind` look at every order: it comes last.
    helping.sort(key=lambda name: name in turning)
    if helping or definitions:
        few = [*definitions, *helping][:_MOST_FOR_GRIND]
        yield 3.8, f"{_BRIEF_GRIND} [{_listed(few)}]"
        if len(few) < len(definitions) + len(helping):
            yield 1.5, f"{_BRIEF_GRIND} [{_listed(definitions + helping)}]"
    related = [name for name in knowledge.related if is_identifier(name) and name not in helping]
    if related:
        first = [name for name in helping[:_MOST_FOR_GRIND] if name not in turning]
        yield 2.6, f"{_BRIEF_GRIND} [{_listed([*definitions, *first, *related])}]"


def _rearranging(goal: GoalView, uses: Sequence[Use]) -> Iterator[Ranked]:
    """For operations that are known to be associative and commutative: both sides in one order."""
    laws = {use.law: use.name for use in uses if use.law}
    given = [
        f"have := Std.Associative.mk {name}\nhave := Std.Commutative.mk {laws[turned]}"
        for law, name in laws.items()
        if (turned := law.replace("assoc", "comm", 1)) in laws and law.startswith("assoc")
    ]
    if given and shape(goal.target).kind == "eq":
        yield 3.6, "\n".join([*given, "ac_rfl"])


def _by_one(goal: GoalView, lemmas: Sequence[str]) -> Iterator[Ranked]:
    """One lemma with the induction hypotheses: of a larger set one may undo what another does."""
    hypotheses = [h.name for h in goal.hypotheses if h.accessible and h.name.startswith("ih")]
    equations = [h.name for h in goal.hypotheses if shape(h.type).kind in ("eq", "iff", "forall")]
    if given := [name for name in hypotheses if name in equations]:
        for place, lemma in enumerate(lemmas[:_MOST_ALONE]):
            yield 3.6 - 0.8 * place, f"simp only [{_listed([lemma, *given])}]"


def long_shots(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    """With all that was found, the library's too."""
    own = _unique(u.name for u in named(knowledge.uses))
    hypotheses = {h.name for h in goal.hypotheses}
    own = [name for name in own if name not in hypotheses]
    definitions = [name for name in knowledge.definitions if is_identifier(name)]
    library = _unique(u.name for u in named(knowledge.library))[:_MOST_IN_A_SET]
    if own or definitions:
        yield 0.8, f"grind [{_listed([*definitions, *own])}]"
        yield 0.5, f"simp_all +arith [{_listed([*definitions, *own])}]"
    if library:
        yield 0.6, f"grind [{_listed([*definitions, *own, *library])}]"


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_IN_A_SET])
