"""What Lean knows about a goal: found by terms, said as proposals."""

from __future__ import annotations

from tests.lean.conftest import state
from treewright.lean import sorries
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.knowledge import Knowledge, Use

NUMBERS = """
inductive N where
  | zero : N
  | succ (n : N) : N
namespace N
def add : N → N → N
  | a, zero => a
  | a, succ b => succ (add a b)
instance : Add N := ⟨add⟩
theorem add_succ (a b : N) : a + succ b = succ (a + b) := rfl
theorem add_assoc (a b c : N) : a + b + c = a + (b + c) := by
  induction c with
  | zero => rfl
  | succ c ih => rw [add_succ, add_succ, add_succ, ih]
def le (a b : N) : Prop := ∃ c, b = a + c
instance : LE N := ⟨le⟩
"""


def at_sorry(session: HostSession, text: str) -> ProofState:
    return sorries.extract(session, text)[-1].states[0]


def known(session: HostSession, text: str, *, library: bool = False) -> Knowledge:
    return session.survey(at_sorry(session, text), library=library)


def named(knowledge: Knowledge, name: str, use: str = "exact") -> list[Use]:
    return [u for u in knowledge.uses if u.name == name and u.use == use]


def test_the_identical_theorem_is_proposed_with_its_arguments(session: HostSession) -> None:
    knowledge = known(
        session, NUMBERS + "theorem again (x y z : N) : x + y + z = x + (y + z) := by sorry"
    )
    (use,) = named(knowledge, "add_assoc")
    assert (use.args, use.unmet, use.loose) == (("x", "y", "z"), 0, 0)


EVEN = """
inductive Even : Nat → Prop
  | zero : Even 0
  | step {n : Nat} : Even n → Even (n + 2)
"""


def test_the_rules_of_a_predicate_are_lemmas(session: HostSession) -> None:
    knowledge = known(session, EVEN + "theorem t (n : Nat) (h : Even n) : Even (n + 2) := by sorry")
    (use,) = named(knowledge, "Even.step")
    assert (use.args, use.unmet) == (("h",), 0)
    assert {use.name for use in knowledge.uses} == {"Even.step"}, "and not what Lean makes of it"
    assert not named(knowledge, "Even.zero")
    assert not named(knowledge, "Even.step", "forward"), "it would have no end"
    knowledge = known(session, EVEN + "theorem t : Even 4 := by sorry")
    assert [use.unmet for use in named(knowledge, "Even.step")] == [1]
    assert not named(known(session, EVEN + "theorem t : Even 1 := by sorry"), "Even.step")


def test_a_lemma_that_could_be_concluded_with_for_ever_is_marked(session: HostSession) -> None:
    down = "theorem down {n : Nat} (h : Even (n + 2)) : Even n := by cases h; assumption\n"
    knowledge = known(session, EVEN + down + "theorem t (n : Nat) : Even (n * 2) := by sorry")
    grows = {use.name: use.grows for use in knowledge.uses if use.use == "exact"}
    assert grows == {"down": True}
    knowledge = known(session, EVEN + down + "theorem t : Even 4 := by sorry")
    assert [use.grows for use in named(knowledge, "Even.step")] == [False]


def test_an_alternative_names_what_is_explicit(session: HostSession) -> None:
    knowledge = known(session, EVEN + "theorem t (n : Nat) (h : Even n) : Even (n + 4) := by sorry")
    (made_of,) = [v.made_of for v in knowledge.variables if v.name == "h"]
    assert made_of is not None
    assert [len(a.fields) for a in made_of.alternatives] == [0, 2], "and not the implicit n"


def test_the_rules_of_the_librarys_predicates_are_lemmas_and_data_is_not(
    session: HostSession,
) -> None:
    text = (
        "theorem t (a : Nat) (l m : List Nat) (h : l.Perm m) : (a :: l).Perm (a :: m) := by sorry"
    )
    found = known(session, text, library=True).library
    assert [use.unmet for use in found if use.name == "List.Perm.cons"] == [0]
    data = known(session, "theorem t : Nonempty (List Nat) := by sorry", library=True).library
    assert "List.cons" not in {use.name for use in data}


def test_the_declaration_itself_and_later_ones_are_not_proposed(
    session: HostSession,
) -> None:
    text = NUMBERS + (
        "theorem mine (x y : N) : x + y = y + x := by sorry\n"
        "theorem later (x y : N) : x + y = y + x := by sorry\n"
    )
    first = session.survey(sorries.extract(session, text)[0].states[0])
    assert not {"mine", "later"} & {use.name for use in first.uses}
    second = session.survey(sorries.extract(session, text)[1].states[0])
    assert named(second, "mine")
    assert not named(second, "later")


def test_an_equation_is_found_the_other_way_round(session: HostSession) -> None:
    knowledge = known(
        session, NUMBERS + "theorem t (x y z : N) : x + (y + z) = x + y + z := by sorry"
    )
    assert named(knowledge, "add_assoc", "symm")


def test_premises_at_hand_are_given_and_others_counted(session: HostSession) -> None:
    text = NUMBERS + (
        "theorem trans (x y z : N) (a : x ≤ y) (b : y ≤ z) : x ≤ z := sorry\n"
        "theorem t (p q r : N) (h : p ≤ q) {} : p ≤ r := by sorry"
    )
    (both,) = named(known(session, text.format("(k : q ≤ r)")), "trans")
    assert (both.args, both.unmet) == (("p", "q", "r", "h", "k"), 0)
    (one,) = named(known(session, text.format("")), "trans")
    assert (one.met, one.unmet, one.loose) == (1, 1, 0)


def test_a_witness_is_found_by_unification_through_a_definition(session: HostSession) -> None:
    knowledge = known(session, NUMBERS + "theorem t (x a b : N) : x ≤ x + a + b := by sorry")
    assert [u.wrap for u in named(knowledge, "add_assoc")] == ["⟨_, %⟩"]


def test_a_side_of_a_disjunction_is_concluded(session: HostSession) -> None:
    knowledge = known(
        session, NUMBERS + "theorem t (x y z : N) : x = y ∨ x + y + z = x + (y + z) := by sorry"
    )
    assert [u.wrap for u in named(knowledge, "add_assoc")] == ["Or.inr (%)"]


def test_consequences_of_hypotheses_are_proposed_as_forward_steps(session: HostSession) -> None:
    text = NUMBERS + (
        "theorem pos (x : N) (h : x ≠ zero) : ∃ n, x = succ n := sorry\n"
        "theorem t (y : N) (hy : y ≠ zero) (P : N → Prop) : P y := by sorry"
    )
    (use,) = named(known(session, text), "pos", "forward")
    assert (use.args, use.gives) == (("y", "hy"), "Exists =")


def test_a_contradiction_between_a_lemma_and_a_hypothesis_is_seen(session: HostSession) -> None:
    text = NUMBERS + (
        "theorem no (x : N) : succ x ≠ zero := nofun\n"
        "theorem t (y z : N) (h : succ y = zero) : z = y := by sorry"
    )
    assert named(known(session, text), "no", "elim")[0].args == ("y", "h")


def test_rewrites_are_proposed_with_arguments_and_locations(session: HostSession) -> None:
    text = NUMBERS + (
        "theorem comm (a b : N) : a + b = b + a := sorry\n"
        "theorem t (x y z : N) (h : x + y = z) : (x + y) + (y + z) = z + (y + z) := by sorry"
    )
    uses = named(known(session, text), "comm", "rw")
    there = {u.args for u in uses if not u.at and not u.back}
    assert {("x", "y"), ("y", "z")} <= there
    assert {u.at for u in uses if u.at} == {"h"}
    assert named(known(session, text), "h", "rw")


def test_variables_say_how_they_are_made(session: HostSession) -> None:
    text = (
        "inductive Tree (α : Type) where\n  | leaf\n"
        "  | node (left : Tree α) (value : α) (right : Tree α)\n"
        "inductive Even : Nat → Prop where\n  | zero : Even 0\n"
        "  | step (n : Nat) : Even n → Even (n + 2)\n"
        "theorem t (t : Tree Nat) (n : Nat) (h : Even n) (k : Even (n + 1)) : t = t := by sorry"
    )
    by_name = {v.name: v for v in known(session, text).variables}
    made = by_name["t"].made_of
    assert made is not None
    assert made.recursive
    assert [a.name for a in made.alternatives] == ["leaf", "node"]
    assert [f.name for f in made.alternatives[1].fields if not f.hypothesis] == [
        "left",
        "value",
        "right",
    ]
    assert sum(f.hypothesis for f in made.alternatives[1].fields) == 2
    assert [by_name[name].kind for name in "tnhk"] == ["data", "data", "proof", "proof"]
    plain = {name: made_of.plain for name in "hk" if (made_of := by_name[name].made_of)}
    assert plain == {"h": True, "k": False}


def test_definitions_are_named_so_that_they_can_be_unfolded(session: HostSession) -> None:
    text = (
        "inductive Tree where\n  | leaf\n  | node (l r : Tree)\nnamespace Tree\n"
        "def mirror : Tree → Tree\n  | leaf => leaf\n  | node l r => node r.mirror l.mirror\n"
        "{}theorem t (t : Tree) : t.mirror.mirror = t := by sorry"
    )
    assert known(session, text.format("")).definitions == ("mirror",)
    assert known(session, text.format("end Tree\n")).definitions == ("Tree.mirror",)


def test_a_shorter_name_is_not_used_for_something_else(session: HostSession) -> None:
    text = (
        "namespace A\ntheorem foo : 1 = 1 := rfl\nnamespace B\ntheorem foo : 2 = 2 := rfl\n"
        "theorem t (bar : Nat) : 1 = 1 := by sorry"
    )
    assert {u.name for u in known(session, text).uses} >= {"A.foo"}


def test_the_library_is_searched(session: HostSession) -> None:
    opened = state(session.start("∀ a b : Nat, a ∣ a * b"))
    opened = state(session.run_tactic(opened, "intro a b"))
    found = session.survey(opened, library=True).library
    assert any(u.name == "Nat.dvd_mul_right" and u.use == "exact" for u in found)


def library(session: HostSession, statement: str, opening: str) -> dict[tuple[str, str], Use]:
    opened = state(session.run_tactic(state(session.start(statement)), opening))
    found = session.survey(opened, library=True).library
    return {(use.name, use.use): use for use in found}


def test_the_library_concludes_from_what_is_at_hand(session: HostSession) -> None:
    """`a = b` says nothing by itself: the hypotheses say which lemma is meant."""
    found = library(session, "∀ a b : Nat, a ∣ b → b ∣ a → a = b", "intro a b h k")
    assert found["Nat.dvd_antisymm", "exact"].args == ("h", "k")
    assert not {use.unmet or use.loose for use in found.values() if use.fit < 3} - {0}


def test_the_library_says_hypotheses_otherwise(session: HostSession) -> None:
    found = library(session, "∀ a b c : Nat, a + c = b + c → a = b", "intro a b c h")
    use = found["Nat.add_right_cancel_iff", "rw"]
    assert (use.at, use.whole, use.back) == ("h", True, False)


def test_the_library_knows_witnesses(session: HostSession) -> None:
    statement = "∀ (α : Type) (xs : List α), xs ≠ [] → ∃ (ys : List α) (y : α), xs = ys ++ [y]"
    found = library(session, statement, "intro α xs h")
    use = found["List.dropLast_concat_getLast", "symm"]
    assert (use.wrap, use.args) == ("⟨_, ⟨_, %⟩⟩", ("h",))


def test_laws_of_an_operation_are_known_as_such(session: HostSession) -> None:
    laws = NUMBERS + (
        "theorem add_comm (a b : N) : a + b = b + a := by sorry\n"
        "theorem add_right_comm (a b c : N) : a + b + c = a + c + b := by sorry\n"
        "theorem add_self (a b : N) : a + a + b = b + a + a := by sorry\n"
        "theorem t (x y z : N) : x + x + z = z + (y + x) := by sorry"
    )
    found = {use.name: use.law for use in known(session, laws).uses if use.use == "rw"}
    assert found["add_comm"] == "comm HAdd.hAdd N"
    assert found["add_assoc"] == "assoc HAdd.hAdd N"
    assert found["add_right_comm"] == "turns HAdd.hAdd N"
    assert found["add_self"] == "", "a variable twice is no law of any order"


def test_a_survey_does_not_depend_on_earlier_surveys(session: HostSession) -> None:
    text = NUMBERS + "theorem t (x y z : N) (h : x = y) : x + y + z = x + (y + z) := by sorry"
    first = known(session, text, library=True)
    session.survey(state(session.start("2 + 2 = 4")), library=True)
    assert known(session, text, library=True) == first
