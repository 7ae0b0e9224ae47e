"""Remainders of products and powers, which `omega` does not see through, by cases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from treewright.proving.sources.context import Context, Known
from treewright.proving.sources.naming import Fresh
from treewright.proving.sources.target_rules import Ranked

_LARGEST = 8
_MOST_CASES = 16
_MODULUS = re.compile(r"% (\d+)\b|(?<![\w.])(\d+) ∣ ")
_LEMMAS = {
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
    """`n % 4 = 0 ∨ n % 4 = 1 ∨ …` for a target about `n * n % 4`, and what is left worked out."""
    target = context.target
    found = {int(one or other) for one, other in _MODULUS.findall(target)}
    values = [v for v in context.data if v.head in _LEMMAS and v.name in context.mentioned]
    if not found or not values or not ("^" in target or " * " in target):
        return
    lemmas = [lemma for sign, lemma in _LEMMAS[values[0].head].items() if f" {sign} " in target]
    remainders = [f.name for f in context.facts if f.outline.kind == "eq" and " % " in f.type]
    if remainders:
        yield 4.0, f"simp [{', '.join([*lemmas, *remainders])}]"
    modulus = max(found)
    for count in (1, 2):
        if len(values) >= count and 2 <= modulus <= _LARGEST and modulus**count <= _MOST_CASES:
            yield 3.0, _cases(context, values[:count], modulus, lemmas, bool(remainders))


def _cases(
    context: Context, values: Sequence[Known], modulus: int, lemmas: Sequence[str], given: bool
) -> str:
    """With facts about remainders some of the cases cannot be, which `omega` sees."""
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
