"""Tactics of core Lean: rules on the outline of the target and of the hypotheses, ranked.

The first round has quick tactics that usually work. The second has expensive ones and long shots.
Weights are relative: the likelier, the higher.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.goal_outline import (
    Context,
    Fresh,
    Known,
    Ranked,
    Shape,
    arguments,
    first,
    introduced,
    shape,
    unwrap,
    words,
)
from treewright.proving.tactics.hypothesis_rules import analysis, eliminations, long_shots, uses
from treewright.proving.tactics.source import NOTHING, Suggestions

_MOST_WITNESSES = 12
_LITERALS = ("0", "1", "2")
# Without these limits `grind` takes seconds to fail among general facts, such as the equations of
# a recursion.
_BRIEF_GRIND = "grind (ematch := 2) (gen := 3)"
_CHOSEN_BLINDLY = (
    "0", "1", "[]", "true", "True", "False", "id", "fun x => x", "fun x => x + 1", "fun b => !b",
    "fun p => ¬p", "fun a b => a != b",
)  # fmt: skip


# By the number of arguments: functions for truth values, then functions for other values.
_FUNCTIONS = {
    1: (
        ("fun b => !b", "fun b => b", "fun _ => true", "fun _ => false"),
        ("fun x => x", "fun x => x + 1", "fun _ => 0", "fun x => 2 * x", "fun p => ¬p"),
    ),
    2: (
        ("fun a b => a != b", "fun a b => a == b", "fun a b => a && b", "fun a b => a || b"),
        ("fun a b => a + b", "fun a b => a * b", "fun a _ => a", "fun _ b => b"),
    ),
}


def closers(context: Context) -> Iterator[Ranked]:
    """Yield tactics that finish a goal or fail quickly, and the two that simplify it."""
    kind = context.outline.kind
    opening = kind in ("forall", "implies")
    if context.facts and not opening:
        yield 9.0, "assumption"
        yield 3.0, "contradiction"
    if kind in ("eq", "iff", "true", "order") and not opening:
        yield 8.0, "rfl"
    yield (2.0 if opening else 7.0), "simp"
    if opening:
        yield 1.0, "decide"
        return
    if context.facts:
        yield 6.0, "simp_all"
    if kind not in ("forall", "implies", "exists") or "∃" not in context.target:
        yield 5.0, "omega"
    if not context.data:
        yield 2.5, "decide"
    recursive = any(fact.outline.kind == "forall" for fact in context.facts)
    yield 4.5, _BRIEF_GRIND if recursive else "grind"


def last_resorts(context: Context) -> Iterator[Ranked]:
    """Yield tactics that may take seconds to fail."""
    if context.outline.kind in ("forall", "implies"):
        return
    yield 3.0, "grind"
    if context.facts:
        yield 1.0, "simp_all +arith"


def structure(context: Context) -> Iterator[Ranked]:
    """Yield introductions: the tactics for the outermost connective."""
    kind = context.outline.kind
    if kind in ("forall", "implies"):
        names = introduced(context.goal)
        yield 12.0, f"intro {' '.join(names)}"
        if len(names) > 1:
            yield 2.0, f"intro {names[0]}"
    elif kind == "not" or kind == "ne":
        yield 6.0, f"intro {Fresh.of(context.goal).name('h')}"
    elif kind in ("and", "iff"):
        yield 10.0, "constructor"
    elif kind == "or":
        yield 3.0, "left"
        yield 3.0, "right"
    elif kind == "exists":
        yield from witnesses(context)
    elif kind == "eq":
        yield from equations(context)
    if "if " in context.target or "match " in context.target:
        yield 8.0, "split"


def equations(context: Context) -> Iterator[Ranked]:
    left, right = context.outline.parts
    if left.startswith("fun ") or right.startswith("fun ") or " fun " in context.target:
        yield 3.0, f"funext {Fresh.of(context.goal).name('x')}"
    elif any(left == h.name or right == h.name for h in context.functions):
        yield 4.0, f"funext {Fresh.of(context.goal).name('x')}"
    if unwrap(left).split(" ")[0] == unwrap(right).split(" ")[0] or "::" in left:
        yield 1.0, "congr 1"


def witnesses(context: Context) -> Iterator[Ranked]:
    """Yield `refine ⟨w, ?_⟩` for values of the target, of the hypotheses, then small ones."""
    yield 7.0, "exact ⟨_, rfl⟩"
    for fact in context.facts[-3:]:
        yield 4.0, f"exact ⟨_, {fact.name}⟩"
        if fact.outline.kind == "forall" and shape(fact.result).kind == "exists":
            yield 4.0, f"exact Classical.axiomOfChoice {fact.name}"
    body = context.outline.parts[-1]
    weight = 4.0
    for witness in _at_hand(context, body)[:_MOST_WITNESSES]:
        yield weight, f"refine ⟨{witness}, ?_⟩"
        weight *= 0.9
    yield 0.3, "refine ⟨?_, ?_⟩"


def _at_hand(context: Context, body: str) -> list[str]:
    found: list[str] = []
    outline = shape(body)
    variable = context.outline.binders[0].name
    if outline.kind == "eq":
        found += [f"{side}" for side in outline.parts if variable not in side.split()]
    found += [value.name for value in context.data]
    heads = {value.head for value in context.data}
    numeric = [value.name for value in context.data if value.head in ("Nat", "Int")]
    if outline.kind == "eq" and variable is not None:
        found += _quotients(outline.parts, variable)
    if " + " in body:
        found += [f"{a} - {b}" for a in numeric for b in numeric if a != b]
    if numeric or (heads and _has_digits(body)):
        found += _LITERALS
    found += [f"{name} + 1" for name in numeric]
    found += [f"{name} / 2" for name in numeric if "2 *" in body]
    if variable is not None:
        found = [*_remainders(body, variable, numeric), *found]
        found = [*_functions(context, body, variable), *found]
    if any(h.head == "Inhabited" for h in context.hypotheses):
        found.append("default")
    found += [f"2 * {name}" for name in numeric if "% 2" in body]
    found += [f"{f.name} {x.name}" for f in context.functions for x in _fitting(f, context)]
    if "Bool" in heads or "true" in body or "false" in body:
        found += ["true", "false"]
    found += _longer(context)
    if "List" in heads or "[" in body or "++" in body:
        found += ["[]", *(f"[{value.name}]" for value in context.data if value.head != "List")]
    found += [f"some {value.name}" for value in context.data if "some" in body]
    found += [f"{a} + {b}" for i, a in enumerate(numeric) for b in numeric[i + 1 :]]
    found += [f"-{name}" for name in numeric if "Int" in heads]
    found += _propositions(context)
    if not found:
        found += _CHOSEN_BLINDLY
    return list(dict.fromkeys(found))


def _quotients(sides: tuple[str, ...], variable: str) -> Iterator[str]:
    """Yield the value of `k` that `n = 4 * k + 3` implies, `n / 4`; for `n = k + k` half of it."""
    name = re.escape(variable)
    for whole, other in (sides, sides[::-1]):
        if variable in whole.split():
            continue
        factor = re.search(rf"(\d+) \* {name}\b", other)
        twice = re.search(rf"(?<!\w){name} \+ {name}(?!\w)", other)
        if factor or twice:
            by = factor.group(1) if factor else "2"
            yield f"{whole if whole.isalnum() else f'({whole})'} / {by}"


def _remainders(body: str, variable: str, numeric: list[str]) -> Iterator[str]:
    """Yield a value beyond `n` with the remainder: for `m > n ∧ m % 7 = 3`, `7 * n + 10`."""
    if rest := re.search(rf"(?<!\w){re.escape(variable)} % (\d+) = (\d+)", body):
        by, left = int(rest.group(1)), int(rest.group(2))
        yield from (f"{by} * {name} + {by + left}" for name in numeric)


def _functions(context: Context, body: str, variable: str) -> list[str]:
    """Return functions for an applied witness: those of the goal, then simple ones."""
    uses = re.findall(rf"(?<![\w.]){re.escape(variable)}((?: (?:[\w.]+|\([^()]*\)))+)", body)
    if not uses:
        return []
    first, later = _FUNCTIONS.get(max(len(arguments(use)) for use in uses), ((), ()))
    truths = "true" in body or "false" in body or "Bool" in body
    return [*(f.name for f in context.functions), *(first + later if truths else later + first)]


def _longer(context: Context) -> Iterator[str]:
    """Yield lists of the goal with a value of the goal in front."""
    for xs in (value for value in context.data if value.head == "List"):
        of = unwrap(xs.type.removeprefix("List "))
        yield from (f"{x.name} :: {xs.name}" for x in context.data if unwrap(x.type) == of)


def _propositions(context: Context) -> list[str]:
    names = [atom.name for atom in context.atoms]
    combined = [f"{a} ∧ {b}" for i, a in enumerate(names) for b in names[i + 1 :]]
    return [*names, *(f"¬{name}" for name in names), *combined] + ["True", "False"] * bool(names)


def _fitting(function: Known, context: Context) -> list[Known]:
    domain = unwrap(function.outline.parts[0])
    return [value for value in context.data if value.type == domain]


def _has_digits(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


_MOST_CASE_SPLITS = 2


def classical(context: Context) -> Iterator[Ranked]:
    """Yield case distinctions and simplifications for quantified statements."""
    for fact in context.facts:
        if fact.outline.kind == "not" and ("∀" in fact.type or "∃" in fact.type):
            yield 3.0, f"simp at {fact.name}"
    for hypothesis in context.hypotheses:
        if hypothesis.head == "Nonempty":
            yield 6.0, f"obtain ⟨{Fresh.of(context.goal).name('a')}⟩ := {hypothesis.name}"
    if context.outline.kind in ("exists", "or"):
        h = Fresh.of(context.goal).name("h")
        known = {unwrap(fact.type) for fact in context.facts}
        for said in list(dict.fromkeys(_quantified(context.outline)))[:_MOST_CASE_SPLITS]:
            if said not in known and f"¬{said}" not in known and f"¬({said})" not in known:
                yield 2.0, f"by_cases {h} : {said}"


def by_contradiction(context: Context) -> Iterator[Ranked]:
    if context.outline.kind in ("exists", "or"):
        h = Fresh.of(context.goal).name("h")
        yield 1.5, f"refine Classical.byContradiction fun {h} => ?_"


def _quantified(outline: Shape, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the quantified parts of a statement that mention no outer bound variable."""
    bound |= {binder.name for binder in outline.binders if binder.name}
    if outline.kind in ("eq", "ne", "order"):
        return
    for part in outline.parts:
        inner = shape(part)
        if inner.kind in ("forall", "exists") and not words(part) & bound:
            yield unwrap(part)
        yield from _quantified(inner, bound)


_LARGEST_MODULUS = 8
_MOST_RESIDUE_CASES = 16
_MODULUS = re.compile(r"% (\d+)\b|(?<![\w.])(\d+) ∣ ")
_RESIDUE_LEMMAS = {
    "Nat": {
        "∣": "Nat.dvd_iff_mod_eq_zero",
        "*": "Nat.mul_mod",
        "+": "Nat.add_mod",
        "^": "Nat.pow_mod",
    },
    "Int": {
        "∣": "Int.dvd_iff_emod_eq_zero",
        "*": "Int.mul_emod",
        "+": "Int.add_emod",
        "-": "Int.sub_emod",
        "^": "Int.pow_succ",
    },
}


def residues(context: Context) -> Iterator[Ranked]:
    """Yield case distinctions on remainders, for products and powers that `omega` cannot treat."""
    target = context.target
    found = {int(one or other) for one, other in _MODULUS.findall(target)}
    values = [v for v in context.data if v.head in _RESIDUE_LEMMAS and v.name in context.mentioned]
    if not found or not values or not ("^" in target or " * " in target):
        return
    lemmas = [
        lemma for sign, lemma in _RESIDUE_LEMMAS[values[0].head].items() if f" {sign} " in target
    ]
    remainders = [f.name for f in context.facts if f.outline.kind == "eq" and " % " in f.type]
    if remainders:
        yield 4.0, f"simp [{', '.join([*lemmas, *remainders])}]"
    modulus = max(found)
    for count in (1, 2):
        if (
            len(values) >= count
            and 2 <= modulus <= _LARGEST_MODULUS
            and modulus**count <= _MOST_RESIDUE_CASES
        ):
            yield 3.0, _residue_cases(context, values[:count], modulus, lemmas, bool(remainders))


def _residue_cases(
    context: Context, values: Sequence[Known], modulus: int, lemmas: Sequence[str], given: bool
) -> str:
    """Return a case distinction; given facts about remainders, `omega` excludes some cases."""
    fresh = Fresh.of(context.goal)
    names = [fresh.name("h") for _ in values]
    lines: list[str] = []
    for value, h in zip(values, names, strict=True):
        cases = " ∨ ".join(f"{value.name} % {modulus} = {rest}" for rest in range(modulus))
        lines.append(f"have {h} : {cases} := by omega")
    splits = [f"rcases {h} with {' | '.join([h] * modulus)}" for h in names]
    simp = f"simp [{', '.join([*lemmas, *names])}]"
    lines.append(" <;> ".join([*splits, f"first | omega | {simp}" if given else simp]))
    return "\n".join(lines)


_MOST_CANDIDATES = 40
_FIRST = (structure, eliminations, closers, uses, analysis, residues, classical)
# Long shots keep a small prior, even when they are the last tactics left.
_LATER_SHARE = 0.15
_LATER = (long_shots, last_resorts, by_contradiction)


class CoreTactics:
    """Suggests tactics of core Lean. It knows nothing but the goal."""

    name = "core"

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        context = first(goals)
        if round_number > 1:
            return NOTHING
        later = [pair for rule in _LATER for pair in rule(context)]
        now = later if round_number else [pair for rule in _FIRST for pair in rule(context)]
        ranked = best_first(now)[:_MOST_CANDIDATES]
        share = _LATER_SHARE if round_number else 1.0
        total = (sum(weight for weight, _ in ranked) or 1.0) / share
        return Suggestions(
            tuple(Candidate(tactic, weight / total, self.name) for weight, tactic in ranked),
            complete=round_number > 0 or not later,
        )


def best_first(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return each tactic once with its best weight, sorted; equal weights stay in order."""
    best: dict[str, float] = {}
    for weight, tactic in ranked:
        best[tactic] = max(weight, best.get(tactic, 0.0))
    return sorted(((weight, tactic) for tactic, weight in best.items()), key=lambda pair: -pair[0])
