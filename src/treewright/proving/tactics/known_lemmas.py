"""Tactics from Lean's knowledge about a goal: lemmas that fit it, and the types of its variables.

Weights are on the scale of the core rules: an introduction has 12, `simp` 7, an induction 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treewright.lean.session.inputs import is_identifier
from treewright.lean.session.knowledge import Alternative, Knowledge, Use, Variable
from treewright.lean.verify.restrictions import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.core import best_first
from treewright.proving.tactics.goal_outline import (
    RECURSIVE,
    SPLITTABLE,
    Fresh,
    Ranked,
    shape,
    words,
)
from treewright.proving.tactics.source import NOTHING, Suggestions

_MOST_CANDIDATES = 48
_SCALE = 40.0
"""Roughly the sum of the weights that the core rules give a goal."""
_OUTLINES = frozenset(
    {"Eq", "HEq", "And", "Or", "Iff", "Exists", "Not", "False", "True", "Nat.le", "Nonempty"}
)
"""Propositions that the core rules take apart by their outline."""


class KnownTactics:
    """Suggests uses of lemmas, inductions and definitions."""

    name = "known"

    def suggest(
        self, goals: Sequence[GoalView], knowledge: Knowledge, round_number: int
    ) -> Suggestions:
        if round_number > 1:
            return NOTHING
        rules = (_single_uses, sets, _taking_apart) if round_number == 0 else (lemma_long_shots,)
        ranked = best_first(pair for rule in rules for pair in rule(goals[0], knowledge))
        chosen = [(w, t) for w, t in ranked[:_MOST_CANDIDATES] if not find_escapes(t)]
        return Suggestions(
            tuple(Candidate(tactic, weight / _SCALE, self.name) for weight, tactic in chosen),
            complete=round_number == 1,
        )


# -- one lemma ------------------------------------------------------------------------------


def _single_uses(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    fresh = Fresh.of(goal)
    for share, uses in ((1.0, knowledge.uses), (0.35, knowledge.library)):
        for place, use in enumerate(named(uses)):
            falling = share * (1.0 if place < 8 else 0.7)
            for weight, tactic in _tactics(use, fresh):
                yield weight * falling, tactic


def _tactics(use: Use, fresh: Fresh) -> Iterator[Ranked]:
    leaves = 1.0 / (1.0 + 0.6 * use.unmet + 1.2 * use.loose)
    vague = 0.3 if use.fit <= 2 and not use.met and use.use != "forward" else 1.0
    if use.grows and use.unmet:
        leaves *= 0.3  # a lemma that grows its goal could be applied for ever
    term = _applied(use.name, use.args)
    match use.use:
        case "exact" | "symm" | "mp" | "mpr" if use.wrap != "%":
            proof = f"{_grouped(term)}.symm" if use.use == "symm" else term
            if use.use in ("exact", "symm"):
                weight = 6.5 if use.local or use.met else 2.0
                yield weight * vague, f"exact {use.wrap.replace('%', proof)}"
        case "exact" if not use.unmet:
            yield (11.0 if not use.loose else 5.0) * vague, f"exact {term}"
            if use.loose or "_" in use.args:
                yield 3.0 * vague, f"apply {use.name}"
        case "exact":
            yield 7.0 * leaves * vague * (1.0 + 0.5 * use.met), f"apply {use.name}"
            if use.met:
                holes = tuple("?_" if a == "_" else a for a in use.args)
                yield 6.0 * leaves * vague, f"refine {_applied(use.name, holes)}"
        case "symm" if not use.unmet:
            yield 10.0 * vague, f"exact {_grouped(term)}.symm"
        case "symm":
            yield 3.0 * leaves * vague, f"refine Eq.symm ({_applied(use.name, _open(use.args))})"
        case "mp" | "mpr":
            weight = 5.0 * leaves * vague
            yield weight, f"refine {_grouped(_applied(use.name, _trimmed(use.args)))}.{use.use} ?_"
        case "elim":
            yield 9.0, f"exact {_grouped(term)}.elim"
        case "rw":
            yield from _rewritings(use, leaves)
        case "forward":
            yield from _taken(use.gives, term, fresh)
            yield 2.5, f"have {fresh.name('h')} := {term}"


def _taken(outline: str, term: str, fresh: Fresh) -> Iterator[Ranked]:
    """Take apart a statement that a term proves."""
    match outline:
        case "Exists =":
            yield 4.5, f"obtain ⟨{fresh.name('k')}, rfl⟩ := {term}"
            yield 2.0, f"obtain ⟨{fresh.name('k')}, {fresh.name('h')}⟩ := {term}"
        case "Exists" | "And":
            yield 4.0, f"obtain ⟨{fresh.name('k')}, {fresh.name('h')}⟩ := {term}"
        case "Or":
            h = fresh.name("h")
            yield 4.0, f"rcases {term} with {h} | {h}"
        case _:
            pass


def _rewritings(use: Use, leaves: float) -> Iterator[Ranked]:
    arrow = "← " if use.back else ""
    name = _applied(use.name, _trimmed(use.args)) if use.nth else use.name
    weight = (4.5 if not use.back else 1.6) * leaves * (1.0 if use.fit >= 2 else 0.6)
    if use.nth:
        weight *= 0.55
    if use.at and use.whole and not use.local:
        yield 7.0, f"rw [{arrow}{name}] at {use.at}"  # the library says the hypothesis otherwise
    elif use.at:
        yield weight * 0.5, f"rw [{arrow}{name}] at {use.at}"
    else:
        yield weight, f"rw [{arrow}{name}]"


def _applied(name: str, args: Sequence[str]) -> str:
    return " ".join([name, *args])


def _trimmed(args: Sequence[str]) -> tuple[str, ...]:
    """Remove trailing arguments that Lean finds by itself."""
    kept = list(args)
    while kept and kept[-1] == "_":
        kept.pop()
    return tuple(kept)


def _open(args: Sequence[str]) -> tuple[str, ...]:
    return tuple("?_" if argument == "_" else argument for argument in args)


def _grouped(term: str) -> str:
    return f"({term})" if " " in term else term


# -- variables ------------------------------------------------------------------------------


def _taking_apart(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    """Yield inductions and cases for types that the core rules do not know."""
    data = [v.name for v in knowledge.variables if v.kind == "data" and v.accessible]
    own_types = _of_own_types(knowledge)
    count = 0
    for variable in knowledge.variables:
        made_of = variable.made_of
        if (
            variable.kind == "proof"
            and variable.accessible
            and (made_of is None or made_of.type == "Exists")
        ):
            for weight, tactic in _taken(variable.says, variable.name, Fresh.of(goal)):
                yield weight * 1.6, tactic
        if made_of is None or not variable.accessible:
            continue
        others = [name for name in data if name != variable.name and _is_free(name, variable, goal)]
        if variable.kind == "proof":
            yield from _proof(variable, goal)
        elif made_of.type in RECURSIVE and any(name in own_types for name in others):
            # The core rules know `xs : List α`, but not that `q : Queue α` changes with it.
            yield 2.1 if variable.shown else 0.4, _generalized(variable, goal, others)
        elif made_of.type not in RECURSIVE and made_of.type not in SPLITTABLE and count < 4:
            count += 1
            driven = max((v.drives for v in knowledge.variables), default=0)
            again = any(h.name.startswith("ih") for h in goal.hypotheses)
            share = (0.4 if again else 1.0) * (_drive(variable, driven))
            for weight, tactic in _value(variable, goal, others):
                yield weight * share, tactic


def _of_own_types(knowledge: Knowledge) -> frozenset[str]:
    """Return the values of inductive types that the core rules do not know."""
    return frozenset(
        v.name
        for v in knowledge.variables
        if v.kind == "data"
        and v.made_of is not None
        and v.made_of.type not in RECURSIVE
        and v.made_of.type not in SPLITTABLE
    )


def _generalized(variable: Variable, goal: GoalView, others: Sequence[str]) -> str:
    assert variable.made_of is not None
    cases = _alternatives(variable.made_of.alternatives, variable.name, goal, inductive=True)
    return f"induction {variable.name} generalizing {' '.join(others)} with {cases}"


def _drive(variable: Variable, most: int) -> float:
    """Return the factor for induction on a variable: largest if equations match on it."""
    if most == 0:
        return 1.0
    return 1.5 if variable.drives == most else 1.0 if variable.drives else 0.5


def _value(variable: Variable, goal: GoalView, others: Sequence[str]) -> Iterator[Ranked]:
    made_of = variable.made_of
    assert made_of is not None
    name = variable.name
    weight = 3.2 if variable.shown else 0.8
    cases = _alternatives(made_of.alternatives, name, goal, inductive=False)
    if not made_of.recursive:
        simple = len(made_of.alternatives) == 1
        yield weight * (1.0 if simple else 1.2), f"cases {name} with {cases}"
        return
    if made_of.plain:
        with_hypotheses = _alternatives(made_of.alternatives, name, goal, inductive=True)
        yield weight, f"induction {name} with {with_hypotheses}"
        if others:
            yield weight * 0.6, _generalized(variable, goal, others)
    yield weight * 0.5, f"cases {name} with {cases}"


def _proof(variable: Variable, goal: GoalView) -> Iterator[Ranked]:
    made_of = variable.made_of
    assert made_of is not None
    if made_of.type in _OUTLINES:
        return
    name = variable.name
    if not made_of.alternatives:
        yield 10.0, f"cases {name}"
        return
    cases = _alternatives(made_of.alternatives, name, goal, inductive=False)
    yield (3.0 if not made_of.recursive else 2.2), f"cases {name} with {cases}"
    yield 1.5, f"cases {name}"
    if made_of.recursive and made_of.plain:
        with_hypotheses = _alternatives(made_of.alternatives, name, goal, inductive=True)
        yield 4.2, f"induction {name} with {with_hypotheses}"


def _alternatives(
    alternatives: Sequence[Alternative], name: str, goal: GoalView, *, inductive: bool
) -> str:
    """Return `| nil => ?_ | cons x xs ih => ?_`, with names that hide no other name."""
    labels = named_alternatives(alternatives, name, goal, inductive=inductive)
    return " ".join(f"| {label} => ?_" for label in labels)


def named_alternatives(
    alternatives: Sequence[Alternative], name: str, goal: GoalView, *, inductive: bool
) -> tuple[str, ...]:
    """Return `nil` and `cons x xs ih`: constructors with names for what each of them adds.

    Args:
        alternatives: The constructors of the variable's type.
        name: The variable, whose name becomes free.
        goal: The goal, whose names are hidden by none of the new ones.
        inductive: Whether there are induction hypotheses.
    """
    taken = {h.name for h in goal.hypotheses} | words(goal.target)
    for hypothesis in goal.hypotheses:
        taken |= words(hypothesis.type)
    labels: list[str] = []
    for alternative in alternatives:
        fresh = Fresh(taken - {name})
        own = [f for f in alternative.fields if not f.hypothesis]
        hypotheses = [f for f in alternative.fields if f.hypothesis]
        alone = hypotheses[0].name.removesuffix("_ih") if len(hypotheses) == 1 else ""
        names = [fresh.name(name if f.name == alone else _plain(f.name)) for f in own]
        if inductive:
            names += [fresh.name("ih") for _ in hypotheses]
        labels.append(" ".join([alternative.name, *names]))
    return tuple(labels)


def _plain(name: str) -> str:
    """Return a name for a field that its constructor left without one."""
    return name.rstrip("✝¹²³⁴⁵⁶⁷⁸⁹⁰") if "✝" in name else name


def _is_free(name: str, variable: Variable, goal: GoalView) -> bool:
    """Return whether a value can be generalized: the variable's type does not depend on it."""
    own = next((h.type for h in goal.hypotheses if h.name == variable.name), "")
    return name not in words(own)


_BRIEF_GRIND = "grind (gen := 4) (ematch := 3) (instances := 100)"
"""Limits for `grind`: with a set of lemmas that does not help it would take seconds."""
_MOST_IN_A_SET = 12
_MOST_FOR_GRIND = 5
"""Reading one lemma costs `grind` up to 70 ms, as much as many a whole tactic."""
_MOST_ALONE = 2


def named(uses: Iterable[Use]) -> Iterator[Use]:
    """Return the uses of lemmas that have a name that can be written in a script."""
    return (use for use in uses if all(is_identifier(part) for part in (use.name, use.at) if part))


def sets(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    """Yield `simp`, `simp_all` and `grind` with the lemmas and definitions that fit."""
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
        # `simp` and `grind` know Lean's own lemmas about constructors.
        if name not in hypotheses and not name.endswith((".inj", ".injEq"))
    ]
    # A lemma that only changes an order makes `grind` try every order, so it comes last.
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
    """Yield `ac_rfl` for operations that are known to be associative and commutative."""
    laws = {use.law: use.name for use in uses if use.law}
    given = [
        f"have := Std.Associative.mk {name}\nhave := Std.Commutative.mk {laws[turned]}"
        for law, name in laws.items()
        if (turned := law.replace("assoc", "comm", 1)) in laws and law.startswith("assoc")
    ]
    if given and shape(goal.target).kind == "eq":
        yield 3.6, "\n".join([*given, "ac_rfl"])


def _by_one(goal: GoalView, lemmas: Sequence[str]) -> Iterator[Ranked]:
    """Yield one lemma with the induction hypotheses: lemmas of a larger set can undo each other."""
    hypotheses = [h.name for h in goal.hypotheses if h.accessible and h.name.startswith("ih")]
    equations = [h.name for h in goal.hypotheses if shape(h.type).kind in ("eq", "iff", "forall")]
    if given := [name for name in hypotheses if name in equations]:
        for place, lemma in enumerate(lemmas[:_MOST_ALONE]):
            yield 3.6 - 0.8 * place, f"simp only [{_listed([lemma, *given])}]"


def lemma_long_shots(goal: GoalView, knowledge: Knowledge) -> Iterator[Ranked]:
    """Yield tactics with all lemmas that were found, including the library's."""
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
