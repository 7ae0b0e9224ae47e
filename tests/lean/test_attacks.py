"""Nothing that is no proof passes for one: the corpus, mutations of proofs, arithmetic."""

from __future__ import annotations

import itertools
import math
import random
import textwrap
from collections.abc import Iterator

import msgspec
import pytest

from tests.lean import corpus
from tests.lean.corpus import Attack, Honest
from tests.lean.terms import Data
from treewright.lean.verify import restrictions
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS, Verdict

pytestmark = pytest.mark.xdist_group("lean-replay")

ATTACKS = corpus.attacks()
FAMILIES = sorted({attack.family for attack in ATTACKS})


def check(replayer: Replayer, attack: Attack) -> Verdict:
    return replayer.text(
        attack.original, attack.candidate, [attack.target], declarations=True, timeout=60
    )


def test_the_corpus_is_large_and_says_what_it_is() -> None:
    assert len(ATTACKS) >= 150
    assert len({(attack.family, attack.name) for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_gets_through(
    replayer: Replayer, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that the rules stop is tried again without them: the judge must refuse it alone."""
    for attack in (a for a in ATTACKS if a.family == family):
        verdict = check(replayer, attack)
        assert not verdict.proved, attack
        assert not verdict.is_fault, (attack, verdict)
        assert verdict.reason != "unchanged", attack
        if verdict.reason in ("escape", "sorry"):
            with monkeypatch.context() as unguarded:
                unguarded.setattr(restrictions, "rules", lambda *_, **__: None)
                assert not check(replayer, attack).proved, attack


def test_honest_proofs_pass(replayer: Replayer) -> None:
    refused = {
        case.name: verdict
        for case in corpus.honest()
        if not (verdict := replayer.text(case.original, case.candidate, case.targets)).proved
    }
    assert refused == {}


# -- mutations ------------------------------------------------------------------------------

SWAPS = [
    ("=", "≠"), ("∧", "∨"), ("∀", "∃"), ("<", "≤"), (">", "<"), (" 1 ", " 2 "), ("Nat", "Int"),
    ("→", "∧"), ("+", "*"), ("Prop", "Bool"), ("true", "false"), ("Type", "Type 1"),
]  # fmt: skip


def mutations(case: Honest) -> Iterator[tuple[str, str]]:
    """The candidate with something else in its last statement, proved as it was or easily."""
    head, keyword, rest = case.candidate.rpartition("theorem ")
    statement, assign, proof = rest.partition(" := by\n")
    for old, new in SWAPS:
        if old in statement and assign:
            other = f"{head}{keyword}{statement.replace(old, new, 1)}{assign}"
            lines = list(itertools.takewhile(lambda line: line[:1] in ("", " "), proof.split("\n")))
            as_before = textwrap.indent("\n".join(lines).rstrip(), "    ")
            after = "\n".join(proof.split("\n")[len(lines) :])
            easily = "trivial | decide | simp | omega | exact ⟨_, rfl⟩ | (intros; simp)"
            yield f"{old} for {new}", f"{other}  first\n  | (\n{as_before})\n  | {easily}\n{after}"


def test_a_changed_statement_is_never_accepted(replayer: Replayer) -> None:
    verdicts = {
        (case.name, what): replayer.text(case.original, text, case.targets, declarations=True)
        for case in corpus.honest()
        for what, text in mutations(case)
    }
    assert [key for key, verdict in verdicts.items() if verdict.proved] == []
    reasons = [verdict.reason for verdict in verdicts.values()]
    assert len(reasons) > 100
    assert reasons.count("statement") > 30, "as many get as far as the judge"


# -- a second opinion -----------------------------------------------------------------------

OPERATIONS = {
    "Nat.add": lambda a, b: a + b,
    "Nat.mul": lambda a, b: a * b,
    "Nat.sub": lambda a, b: max(a - b, 0),
    "Nat.div": lambda a, b: a // b if b else 0,
    "Nat.mod": lambda a, b: a % b if b else a,
    "Nat.pow": lambda a, b: a**b,
    "Nat.gcd": math.gcd,
    "Nat.land": lambda a, b: a & b,
    "Nat.lor": lambda a, b: a | b,
    "Nat.xor": lambda a, b: a ^ b,
    "Nat.shiftLeft": lambda a, b: a << b,
    "Nat.shiftRight": lambda a, b: a >> b,
}


def expression(data: Data, rng: random.Random, depth: int) -> tuple[int, int]:
    """A random term of type Nat, and its value as Python computes it."""
    if depth == 0 or rng.random() < 0.2:
        number = rng.choice([rng.randrange(8), rng.randrange(300), rng.getrandbits(70)])
        return data.nat(number), number
    left, a = expression(data, rng, depth - 1)
    name = rng.choice(sorted(OPERATIONS))
    if name in ("Nat.pow", "Nat.shiftLeft"):
        b = rng.randrange(20 if a < 2**80 else 2)
        right = data.nat(b)
    else:
        right, b = expression(data, rng, depth - 1)
    return data.app(data.const(name), left, right), OPERATIONS[name](a, b)


def test_the_kernel_computes_as_python_does(replayer: Replayer) -> None:
    """A thousand equations between random terms, each with a proof by computation."""
    rng = random.Random(4)
    data, expected = Data(), {}
    for index in range(1000):
        left, a = expression(data, rng, 3)
        right, b = expression(data, rng, 2)
        wrong = rng.random() < 0.5
        if not wrong:
            right, b = data.nat(a), a
        elif rng.random() < 0.5:
            b = a + rng.choice([1, 2, 2**32, 2**64])
            right = data.nat(b)
        name = f"t{index}"
        data.declare("theorem", name, data.eq_nat(left, right), data.refl(left))
        expected[name] = a == b
    reader, judge = replayer.processes.original.get(), replayer.processes.judge.get()
    reference = reader.reference("", [], 60)
    original = reader.meaning(reference, msgspec.Raw(b"[]"), 60)
    rulings = judge.rule_each(original, data.raw(), DEFAULT_AXIOMS, 120, list(expected))
    assert {True, False} == set(expected.values())
    found = {name: ruling.reason for name, ruling in zip(expected, rulings, strict=True)}
    assert found == {name: "proved" if true else "kernel" for name, true in expected.items()}
