"""The judge alone, against data that no honest elaborator would send.

What every host must refuse is in `ATTACKS`, which conformance/test_judge_data.py gives to each.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from tests.lean.terms import Data, Term
from treewright.lean.verify.judge import Judge
from treewright.lean.verify.originals import OriginalReader
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS, Verdict

pytestmark = pytest.mark.xdist_group("lean-replay")

ORIGINAL = "public theorem target : 1 = 2 := by\n  sorry\n"
TRUE = "public theorem target : 1 = 1 := by\n  sorry\n"


@dataclass
class Pair:
    """The reader of originals, and the judge."""

    reader: OriginalReader
    judge: Judge


@pytest.fixture
def judge(replayer: Replayer) -> Pair:
    """Those of the replay check: each is as before any other question."""
    return Pair(replayer.processes.original.get(), replayer.processes.judge.get())


def rule(pair: Pair, data: Data | msgspec.Raw, original: str = ORIGINAL) -> Verdict:
    reference = pair.reader.reference(original, ["target"], 60)
    raw = data.raw() if isinstance(data, Data) else data
    meaning = pair.reader.meaning(reference, msgspec.Raw(b"[]"), 60)
    return pair.judge.rule(reference, meaning, raw, DEFAULT_AXIOMS, 60)


def false(data: Data) -> Term:
    """`1 = 2`."""
    return data.eq_nat(data.literal(1), data.literal(2))


def wrong_proof(data: Data) -> None:
    data.declare("theorem", "target", false(data), data.refl(data.literal(1)))


def no_proof(data: Data) -> None:
    data.declare("theorem", "target", false(data))


def an_axiom_called_theorem(data: Data) -> None:
    data.declare("theorem", "cheat", false(data))
    data.declare("theorem", "target", false(data), data.const("cheat"))


def an_axiom(data: Data) -> None:
    data.declare("axiom", "cheat", false(data))
    data.declare("theorem", "target", false(data), data.const("cheat"))


def an_axiom_with_a_trusted_name_in_one_component(data: Data) -> None:
    data.names.append([0, "Classical.choice"])
    data.declarations.append(
        {
            "kind": "axiom",
            "name": len(data.names),
            "params": [],
            "type": false(data),
            "value": None,
            "hints": 0,
            "unsafe": False,
        }
    )
    cheat = data._put(data.exprs, [2, data.declarations[0]["name"], []])
    data.declare("theorem", "target", false(data), cheat)


def an_opaque_constant(data: Data) -> None:
    data.declare("opaque", "cheat", false(data), data.const("cheat"))
    data.declare("theorem", "target", false(data), data.const("cheat"))


def sorry(data: Data) -> None:
    value = data.app(data.const("sorryAx", 0), false(data), data.const("Bool.true"))
    data.declare("theorem", "target", false(data), value)


def a_cycle(data: Data) -> None:
    data.declare("theorem", "other", false(data), data.const("target"))
    data.declare("theorem", "target", false(data), data.const("other"))


def itself(data: Data) -> None:
    data.declare("theorem", "target", false(data), data.const("target"))


def another_statement(data: Data) -> None:
    one = data.literal(1)
    data.declare("theorem", "target", data.eq_nat(one, one), data.refl(one))


def a_definition_with_the_name(data: Data) -> None:
    data.declare("def", "target", false(data), data.refl(data.literal(1)))


def a_library_name(data: Data) -> None:
    one = data.literal(1)
    data.declare("def", "instOfNatNat", data.const("Nat"), one)
    data.declare("theorem", "target", data.eq_nat(one, one), data.refl(one))


def a_name_cut_by_hygiene(data: Data) -> None:
    """`instOfNatNat.«_@».x` is not `instOfNatNat`."""
    nat = data.const("Nat")
    literal = data.app(data.const("OfNat", 0), nat, data.bvar(0))
    made = data.app(data.const("OfNat.mk", 0), nat, data.bvar(0), data.literal(1))
    data.declare("def", "instOfNatNat._@.x", data.pi(nat, literal), data.lam(nat, made))
    raw = data.nat(2)
    instance = data.app(data.const("instOfNatNat._@.x"), raw)
    two = data.app(data.const("OfNat.ofNat", 0), nat, raw, instance)
    data.declare("theorem", "target", data.eq_nat(data.literal(1), two), data.refl(two))


def an_unsafe_definition(data: Data) -> None:
    data.declare("def", "cheat", false(data), data.const("cheat"), unsafe=True)
    data.declare("theorem", "target", false(data), data.const("cheat"))


def a_negative_inductive(data: Data) -> None:
    bad, absurd = data.const("Bad"), data.const("False")
    data.inductive(
        "Bad", data.sort(0), {"Bad.mk": data.pi(data.pi(bad, absurd), data.const("Bad"))}
    )
    data.declare("theorem", "target", false(data), data.const("Bad.mk"))


def large_elimination_out_of_a_proposition(data: Data) -> None:
    """A proposition with two proofs has no recursor into data."""
    data.inductive("P", data.sort(0), {"P.a": data.const("P"), "P.b": data.const("P")})
    motive = data.lam(data.const("P"), data.const("Nat"))
    which = data.app(
        data.const("P.rec", 1), motive, data.literal(1), data.literal(2), data.const("P.a")
    )
    data.declare("theorem", "target", false(data), data.refl(which))


def a_forged_recursor(data: Data) -> None:
    nat = data.const("Nat")
    data.declare("def", "P.rec", data.pi(nat, nat), data.lam(nat, data.bvar(0)))
    data.inductive("P", data.sort(1), {"P.a": data.const("P")})
    value = data.app(data.const("P.rec"), data.const("P.a"))
    data.declare("theorem", "target", false(data), value)


def projection_of_another_structure(data: Data) -> None:
    """lean4#14576 needs a projection that names another structure than its value has."""
    pair = data.app(data.const("And.intro"), false(data), false(data), data.refl(data.literal(1)))
    data.declare("theorem", "target", false(data), data.proj("Prod", 0, pair))


def projection_out_of_a_sum(data: Data) -> None:
    true = data.const("True")
    data.inductive(
        "Bad",
        data.sort(0),
        {
            "Bad.one": data.pi(false(data), data.const("Bad")),
            "Bad.two": data.pi(true, data.const("Bad")),
        },
    )
    value = data.app(data.const("Bad.two"), data.const("True.intro"))
    data.declare("theorem", "target", false(data), data.proj("Bad", 0, value))


def projection_of_data_out_of_a_proof(data: Data) -> None:
    data.inductive("W", data.sort(0), {"W.mk": data.pi(data.const("Nat"), data.const("W"))})
    one = data.app(data.const("W.mk"), data.literal(1))
    data.declare("theorem", "target", false(data), data.refl(data.proj("W", 0, one)))


def projection_with_a_huge_index(data: Data) -> None:
    true = data.const("True")
    pair = data.app(
        data.const("And.intro"), true, true, data.const("True.intro"), data.const("True.intro")
    )
    data.declare("theorem", "target", false(data), data.proj("And", 2**32, pair))


def ill_typed_constructor_in_a_projection(data: Data) -> None:
    data.inductive("W", data.sort(0), {"W.mk": data.pi(data.const("False"), data.const("W"))})
    wrong = data.app(data.const("W.mk"), data.const("True.intro"))
    absurd = data.app(data.const("False.elim", 0), false(data), data.proj("W", 0, wrong))
    data.declare("theorem", "target", false(data), absurd)


def native_bool(data: Data) -> None:
    value = data.app(data.const("Lean.reduceBool"), data.const("Bool.true"))
    data.declare("def", "cheat", data.const("Bool"), value)
    data.declare("theorem", "target", false(data), data.const("cheat"))


def native_axiom(data: Data) -> None:
    data.declare("theorem", "target", false(data), data.const("Lean.trustCompiler"))


def wrong_universes(data: Data) -> None:
    one = data.literal(1)
    value = data.app(data.const("Eq.refl", 2), data.const("Nat"), one)
    data.declare("theorem", "target", false(data), value)


def a_loose_variable(data: Data) -> None:
    data.declare("theorem", "target", false(data), data.bvar(0))


def a_name_declared_twice(data: Data) -> None:
    one = data.literal(1)
    data.declare("theorem", "target", data.eq_nat(one, one), data.refl(one))
    data.declare("theorem", "target", false(data), data.refl(one))


def a_constructor_with_the_name(data: Data) -> None:
    data.inductive("P", data.sort(1), {"target": data.const("P")})


def a_theorem_of_data(data: Data) -> None:
    data.declare("theorem", "cheat", data.const("Nat"), data.literal(1))
    data.declare("theorem", "target", false(data), data.refl(data.const("cheat")))


def a_deep_term(data: Data) -> None:
    term = data.literal(1)
    for _ in range(30_000):
        term = data.app(data.const("Nat.succ"), term)
    data.declare("theorem", "target", false(data), data.refl(term))


def a_term_as_deep_as_allowed(data: Data) -> None:
    term = data.literal(1)
    succ = data.const("Nat.succ")
    for _ in range(19_000):
        term = data.app(succ, term)
    data.declare("theorem", "target", false(data), data.refl(term))


def no_name(data: Data) -> None:
    data.declare("theorem", "", false(data), data.refl(data.literal(1)))


ATTACKS = [
    wrong_proof,
    no_proof,
    an_axiom_called_theorem,
    an_axiom,
    an_axiom_with_a_trusted_name_in_one_component,
    an_opaque_constant,
    sorry,
    a_cycle,
    itself,
    another_statement,
    a_definition_with_the_name,
    a_library_name,
    a_name_cut_by_hygiene,
    an_unsafe_definition,
    a_negative_inductive,
    large_elimination_out_of_a_proposition,
    a_forged_recursor,
    projection_of_another_structure,
    projection_out_of_a_sum,
    projection_of_data_out_of_a_proof,
    projection_with_a_huge_index,
    ill_typed_constructor_in_a_projection,
    native_bool,
    native_axiom,
    wrong_universes,
    a_loose_variable,
    a_name_declared_twice,
    a_constructor_with_the_name,
    a_theorem_of_data,
    a_deep_term,
    a_term_as_deep_as_allowed,
    no_name,
]


def test_a_parameter_that_the_kernel_does_not_look_at_is_checked(judge: Pair) -> None:
    """lean4#14576: a nested type's parameter that its constructors do not mention."""
    data = Data()
    bool_, type_ = data.const("Bool"), data.sort(1)
    phantom = data.app(data.const("Ph"), data.bvar(2), data.bvar(1))
    data.inductive(
        "Ph",
        data.pi(bool_, data.pi(type_, type_)),
        {"Ph.mk": data.pi(bool_, data.pi(type_, data.pi(data.bvar(0), phantom)))},
        params=2,
    )
    data.inductive("P", data.sort(0), {"P.mk": data.pi(bool_, data.const("P"))})
    data.inductive("C", type_, {"C.mk": data.pi(bool_, data.const("C"))})
    wrong = data.proj("C", 0, data.app(data.const("P.mk"), data.const("Bool.true")))
    nested = data.app(data.const("Ph"), wrong, data.const("N"))
    data.inductive("N", type_, {"N.mk": data.pi(nested, data.const("N"))})
    one = data.literal(1)
    identity = data.lam(data.const("N"), data.bvar(0))
    unused = data.lam(data.pi(data.const("N"), data.const("N")), data.refl(one))
    data.declare("theorem", "target", data.eq_nat(one, one), data.app(unused, identity))
    ruling = rule(judge, data, TRUE)
    assert (ruling.reason, ruling.detail) == ("kernel", "N: a projection is not valid"), ruling


def test_a_name_the_kernel_uses_while_it_works_is_refused(judge: Pair) -> None:
    """lean4#14616: `_nested.List_1` means something else while a nested type is taken apart."""
    data = Data()
    type_, own = data.sort(1), data.const("T")
    nested = data.pi(data.app(data.const("List", 0), own), own)
    confused = data.pi(data.const("_nested.List_1"), own)
    data.inductive("T", type_, {"T.a": nested, "T.b": confused})
    data.declare("def", "_nested.List_1", type_, data.const("Nat"))
    one = data.literal(1)
    unused = data.lam(data.pi(own, own), data.refl(one))
    value = data.app(unused, data.lam(own, data.bvar(0)))
    data.declare("theorem", "target", data.eq_nat(one, one), value)
    ruling = rule(judge, data, TRUE)
    assert (ruling.reason, "kernel's own" in ruling.detail) == ("data", True), ruling


def test_an_original_must_import_what_the_kernel_computes_with(judge: Pair) -> None:
    data = Data()
    nat = data.const("Nat")
    zero = data.lam(nat, data.lam(nat, data.nat(0)))
    data.declare("def", "Nat.gcd", data.pi(nat, data.pi(nat, nat)), zero)
    data.declare("theorem", "target", data.const("True"), data.const("True.intro"))
    original = "prelude\nimport Init.Prelude\npublic theorem target : True := True.intro\n"
    ruling = rule(judge, data, original)
    assert (ruling.reason, "less than Init" in ruling.detail) == ("original", True), ruling


def test_levels_that_double_are_refused_before_the_kernel_sees_them(judge: Pair) -> None:
    data = Data()
    level = data.level(0)
    for _ in range(40):
        level = data._put(data.levels, [2, level, level])
    sort = data._put(data.exprs, [1, level])
    data.declare("theorem", "target", data.const("True"), data.app(data.lam(sort, sort), sort))
    assert rule(judge, data).reason == "data"


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        "{}",
        '{"names":[],"levels":[],"exprs":[],"declarations":[]}',
        '{"names":[[5,"a"]],"levels":[],"exprs":[],"declarations":[]}',
        '{"names":[[0,{"num":"-1"}]],"levels":[],"exprs":[],"declarations":[]}',
        '{"names":[[0,{"num":"99999999999"}]],"levels":[],"exprs":[],"declarations":[]}',
        '{"names":[],"levels":[[1,0]],"exprs":[],"declarations":[]}',
        '{"names":[],"levels":[],"exprs":[[3,0,0]],"declarations":[]}',
        '{"names":[],"levels":[],"exprs":[["length"]],"declarations":[]}',
        '{"names":[],"levels":[],"exprs":[[0,"999999999999"]],"declarations":[]}',
        '{"names":[],"levels":[],"exprs":[],"declarations":[{"kind":"quot"}]}',
        '{"names":[],"levels":[],"exprs":[],"declarations":[{"__proto__":{"kind":"axiom"}}]}',
    ],
)
def test_text_that_is_not_proof_data_is_refused(judge: Pair, text: str) -> None:
    ruling = rule(judge, msgspec.Raw(text.encode()))
    assert ruling.reason in ("data", "missing"), ruling


def test_the_state_of_the_judge_is_the_same_after_every_verdict(judge: Pair) -> None:
    """Many refusals, then the same proof takes the same path in the same memory."""
    honest, hostile = Data(), Data()
    one = honest.literal(1)
    honest.declare("theorem", "target", honest.eq_nat(one, one), honest.refl(one))
    wrong_proof(hostile)
    first = rule(judge, honest, TRUE)
    heap = judge.judge.heap_bytes
    for _ in range(20):
        assert rule(judge, hostile).reason == "kernel"
    again = rule(judge, honest, TRUE)
    assert (again.reason, again.names) == (first.reason, first.names)
    assert judge.judge.heap_bytes == heap
