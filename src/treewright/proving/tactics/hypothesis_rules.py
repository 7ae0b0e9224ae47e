"""Rules on the hypotheses of a goal: taking facts apart, using them, cases and induction."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.proving.tactics.goal_outline import (
    RECURSIVE,
    SPLITTABLE,
    Context,
    Fresh,
    Known,
    Ranked,
    pattern,
    shape,
    unwrap,
    words,
)

_MOST_FACTS = 8
_MOST_DATA = 4
_PARITY = {"Nat": "Nat.mod_two_eq_zero_or_one", "Int": "Int.emod_two_eq"}
_CONSTRUCTED = ("some ", "none", "::", "[]", "(", "true", "false", "Nat.succ", " + 1")


def eliminations(context: Context) -> Iterator[Ranked]:
    """Yield tactics that take conjunctions and existentials apart, and split disjunctions."""
    for fact in context.facts[-_MOST_FACTS:]:
        kind = fact.outline.kind
        if " ∣ " in fact.type and kind == "other":
            fresh = Fresh.of(context.goal)
            yield 2.0, f"obtain ⟨{fresh.name('k')}, {fresh.name('h')}⟩ := {fact.name}"
        if kind in ("and", "exists"):
            yield 11.0, f"obtain {pattern(fact.type, Fresh.of(context.goal))} := {fact.name}"
        elif kind == "or":
            yield 9.0, f"rcases {fact.name} with {pattern(fact.type, Fresh.of(context.goal))}"
        elif kind == "iff":
            yield 1.5, f"obtain ⟨{_two_names(context)}⟩ := {fact.name}"
        elif kind == "eq":
            yield from _equality(fact, context)
        if "if " in fact.type or "match " in fact.type:
            yield 4.0, f"split at {fact.name}"


def uses(context: Context) -> Iterator[Ranked]:
    """Yield uses of facts as rules: applied to the target, to each other, or for rewriting."""
    for fact in context.facts[-_MOST_FACTS:]:
        kind, name = fact.outline.kind, fact.name
        if kind in ("eq", "iff"):
            yield from _rewriting(fact, context)
        elif kind in ("forall", "implies", "not"):
            yield from _application(fact, context)
        if kind == "forall" and shape(fact.result).kind in ("eq", "iff"):
            yield 2.5, f"rw [{name}]"
            yield 1.5, f"simp [{name}]"
        if kind == "forall" and context.target == "False":
            yield from _descent(fact, context)
    if context.nameless:
        fresh = Fresh.of(context.goal)
        names = [fresh.name(h.name.removesuffix("✝") or "x") for h in context.nameless]
        yield 5.0, f"rename_i {' '.join(names)}"


def analysis(context: Context) -> Iterator[Ranked]:
    """Yield induction and case distinction on values, on propositions and on conditions."""
    data = context.data
    count = 0
    for value in data:
        shown = value.name in context.mentioned
        if value.head in RECURSIVE and count < _MOST_DATA:
            count += 1
            yield from _induction(value, context, 3.0 if shown else 0.6)
        elif value.head in SPLITTABLE and count < _MOST_DATA:
            count += 1
            if value.head != "Int":
                yield 5.0, f"cases {value.name} with {_alternatives(value, context, False)}"
    for value in context.unknown[:2]:
        # The rules on Lean's knowledge propose the same with names.
        yield 0.9, f"induction {value.name}"
        yield 0.6, f"cases {value.name}"
    if context.outline.kind not in ("forall", "implies"):
        for atom in context.atoms[:4]:
            if atom.name in context.mentioned or context.target == "False":
                yield 1.2, f"by_cases {Fresh.of(context.goal).name('h')} : {atom.name}"
    yield from _truth_values(context)


def long_shots(context: Context) -> Iterator[Ranked]:
    """Yield less likely tactics: strong induction, other cases, `exfalso`."""
    if context.outline.kind in ("forall", "implies"):
        return
    for value in context.data[:_MOST_DATA]:
        shown = value.name in context.mentioned
        if value.head == "Nat" and shown:
            ih = Fresh(words_of(context)).name("ih")
            yield (
                3.0,
                f"induction {value.name} using Nat.strongRecOn with | ind {value.name} {ih} => ?_",
            )
        if value.head == "Int":
            yield 1.5, f"cases {value.name} with {_alternatives(value, context, False)}"
        if value.head in _PARITY and shown:
            h = Fresh(words_of(context)).name("h")
            yield 1.0, f"rcases {_PARITY[value.head]} {value.name} with {h} | {h}"
    if context.outline.kind != "false" and context.facts:
        yield 0.5, "exfalso"


def _truth_values(context: Context) -> Iterator[Ranked]:
    """Yield case distinctions on the value of a function into `Bool`."""
    for function in context.functions:
        if function.result != "Bool" or function.outline.kind != "implies":
            continue
        domain = unwrap(function.outline.parts[0])
        given = ["true", "false"] if domain == "Bool" else []
        given += [value.name for value in context.data if value.type == domain]
        if "→" in function.outline.parts[1]:
            continue
        for argument in given[:3]:
            h = Fresh.of(context.goal).name("h")
            yield 2.0, f"cases {h} : {function.name} {argument} with | false => ?_ | true => ?_"


def _equality(fact: Known, context: Context) -> Iterator[Ranked]:
    left, right = fact.outline.parts
    names = {value.name for value in context.data} | {f.name for f in context.functions}
    if left in names or right in names:
        yield 5.0, f"subst {fact.name}"
    elif all(any(sign in side for sign in _CONSTRUCTED) for side in (left, right)):
        yield 1.0, f"cases {fact.name}"
    yield 1.0, f"simp at {fact.name}"


def _rewriting(fact: Known, context: Context) -> Iterator[Ranked]:
    left, right = fact.outline.parts
    weight = 4.0 if fact.name.startswith("ih") else 2.5
    if left in context.target or not left.isalnum():
        yield weight, f"rw [{fact.name}]"
        yield weight * 0.6, f"simp [{fact.name}]"
    if right in context.target:
        yield weight * 0.5, f"rw [← {fact.name}]"


def _application(fact: Known, context: Context) -> Iterator[Ranked]:
    """Yield backward uses of a rule (`apply`), and forward uses if its premise is known."""
    name, result = fact.name, fact.result
    if fact.outline.kind == "not":
        if context.target == "False":
            yield 5.0, f"apply {name}"
        else:
            yield 0.5, f"exact absurd ?_ {name}"
        return
    fits = words(result) & context.mentioned or result == context.target
    yield (5.0 if result == context.target else 3.0 if fits else 0.4), f"apply {name}"
    given = {unwrap(other.type): other.name for other in context.facts}
    fresh = Fresh.of(context.goal)
    premise = fact.outline.parts[0]
    if fact.outline.kind == "implies":
        if unwrap(premise) in given:
            yield 4.0, f"have {fresh.name('h')} := {name} {given[unwrap(premise)]}"
        return
    kind = fact.outline.binders[0].type if fact.outline.binders else ""
    for value in [v for v in context.data if v.type == kind][:3]:
        yield 1.5, f"have {fresh.name('h')} := {name} {value.name}"


def _descent(fact: Known, context: Context) -> Iterator[Ranked]:
    """Yield a refutation of `f (n + 1) < f n` for every `n`, if `f` gives natural numbers."""
    for function in context.functions:
        if function.result != "Nat" or function.outline.kind != "implies":
            continue
        domain, x = unwrap(function.outline.parts[0]), fact.outline.binders[0].name
        said = fact.result.replace(" > ", " < ", 1)
        less, _, more = said.partition(" < ")
        if ">" in fact.result:
            less, more = more, less
        if more != f"{function.name} {x}" or not less.startswith(f"{function.name} "):
            continue
        start = (
            "0"
            if domain == "Nat"
            else next((value.name for value in context.data if value.type == domain), None)
        )
        if start is not None:
            fresh = Fresh(words_of(context))
            h, m, ih = fresh.name("h"), fresh.name("m"), fresh.name("ih")
            says = f"∀ {m} {x}, {function.name} {x} < {m} → False"
            yield (
                4.0,
                f"suffices {h} : {says} from {h} _ {start} (Nat.lt_succ_self _)\nintro {m}\n"
                f"induction {m} with | zero => ?_ | succ {m} {ih} => ?_",
            )


def _induction(value: Known, context: Context, weight: float) -> Iterator[Ranked]:
    others = [
        other.name
        for other in context.data
        if other.name != value.name and other.name not in words(value.type)
    ]
    cases = _alternatives(value, context, True)
    yield weight, f"induction {value.name} with {cases}"
    if others and weight >= 1.0:
        yield weight * 0.7, f"induction {value.name} generalizing {' '.join(others)} with {cases}"
    yield weight * 0.4, f"cases {value.name} with {_alternatives(value, context, False)}"


def _alternatives(value: Known, context: Context, inductive: bool) -> str:
    """Return `| nil => ?_ | cons x xs ih => ?_`, with names that hide no other name."""
    constructors = RECURSIVE.get(value.head) or SPLITTABLE[value.head]
    texts: list[str] = []
    for constructor, carried in constructors:
        fresh = Fresh(words_of(context) - {value.name})
        names = [fresh.name(_carried_name(wanted, value)) for wanted in carried.split()]
        if inductive and names:
            names.append(fresh.name("ih"))
        texts.append(f"| {' '.join([constructor, *names])} => ?_")
    return " ".join(texts)


def _carried_name(wanted: str, value: Known) -> str:
    """Return the name of a field; a field of the value's own type keeps the value's name."""
    same = {"Nat": "n", "List": "xs"}.get(value.head)
    return value.name if wanted == same else wanted


def words_of(context: Context) -> set[str]:
    taken = {h.name for h in context.goal.hypotheses} | context.mentioned
    for hypothesis in context.goal.hypotheses:
        taken |= words(hypothesis.type)
    return taken


def _two_names(context: Context) -> str:
    fresh = Fresh.of(context.goal)
    return f"{fresh.name('h')}, {fresh.name('h')}"
