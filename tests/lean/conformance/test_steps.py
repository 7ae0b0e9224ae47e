"""Proof states: what every host says about goals, and how a step ends."""

from __future__ import annotations

import threading
import time

from tests.lean.conftest import state
from tests.lean.endless import SLOW
from treewright.lean.session.answers import Cancelled, ProofState, TacticError, Timeout
from treewright.lean.session.host_session import HostSession


def test_a_goal_is_data(session: HostSession) -> None:
    opened = state(session.start("∀ (n : Nat) (h : n = 0), n + 0 = n"))
    (goal,) = opened.goals
    assert (goal.case, goal.hypotheses, goal.metavariables) == (None, (), ())
    assert goal.target == "∀ (n : Nat), n = 0 → n + 0 = n"
    (goal,) = state(session.run_tactic(opened, "intro n h; let m := n + 1")).goals
    shown = [(h.name, h.type, h.value, h.accessible) for h in goal.hypotheses]
    assert shown == [
        ("n", "Nat", None, True),
        ("h", "n = 0", None, True),
        ("m", "Nat", "n + 1", True),
    ]
    assert goal.target == "n + 0 = n"


def test_names_that_text_cannot_spell_are_inaccessible(session: HostSession) -> None:
    opened = state(session.start("∀ p : Prop, p → p"))
    (goal,) = state(session.run_tactic(opened, "intros")).goals
    assert [(h.name, h.accessible) for h in goal.hypotheses] == [("p✝", False), ("a✝", False)]


def test_the_hash_is_of_terms_and_not_of_their_print(session: HostSession) -> None:
    goals = [
        state(session.run_tactic(state(session.start(statement)), "intro x y")).goals[0]
        for statement in (
            "∀ x y : Nat, x + y = y + x",
            "∀ (x : Nat), ∀ (y : Nat), x + y = y + x",
            "∀ x y : Nat, x + y = x + y",
            "∀ x y : Int, x + y = y + x",
        )
    ]
    assert goals[0].hash == goals[1].hash
    assert len({goal.hash for goal in goals}) == 3
    assert all(len(goal.hash) == 64 for goal in goals)


def test_hashes_are_the_same_on_every_host(session: HostSession) -> None:
    opened = state(session.start("∀ p q : Prop, p ∧ q → q ∧ p"))
    (goal,) = state(session.run_tactic(opened, "intro p q h")).goals
    assert goal.hash == "5c9df101832d5fc9966fa974a75bbe32a5e13077d0f8bfc0832cfd824fdd70e7"


def test_cases_have_their_names_and_states_branch(session: HostSession) -> None:
    opened = state(session.start("∀ p q : Prop, p ∧ q → q ∧ p"))
    split = state(session.run_tactic(opened, "intro p q h\nconstructor"))
    assert [goal.case for goal in split.goals] == ["left", "right"]
    again = state(session.run_tactic(opened, "intro p q h\nexact ⟨h.2, h.1⟩"))
    assert again.complete
    assert not again.uses_sorry
    done = state(session.run_tactic(split, "exact h.2\nexact h.1"))
    assert (done.closed, done.complete) == (True, True)


def test_a_part_of_the_goals_can_be_proved_by_itself(session: HostSession) -> None:
    opened = state(session.start("∃ n : Nat, n = 3 ∧ True"))
    both = state(session.run_tactic(opened, "refine ⟨?n, ?left, ?right⟩"))
    assert len(both.groups) == len(both.goals) - 1  # `?n` and what mentions it, and the rest
    index = next(i for i, goal in enumerate(both.goals) if goal.target == "True")
    part = state(session.focus(both, [index]))
    assert [goal.target for goal in part.goals] == ["True"]
    assert state(session.run_tactic(part, "trivial")).complete
    assert isinstance(session.focus(both, [7]), TacticError)
    assert isinstance(session.focus(both, []), TacticError)


def test_a_closed_state_may_still_have_holes_or_sorry(session: HostSession) -> None:
    opened = state(session.start("1 = 2"))
    done = state(session.run_tactic(opened, "sorry"))
    assert (done.closed, done.complete, done.uses_sorry) == (True, False, True)


def test_how_a_step_fails(session: HostSession) -> None:
    opened = state(session.start("1 = 2"))
    for text, kind in (("rfl", "tactic"), ("exact (", "parse"), ("assumption", "tactic")):
        result = session.run_tactic(opened, text)
        assert isinstance(result, TacticError), text
        assert result.kind == kind
        assert result.message
    for statement in ("1 +", "unknownThing = 1", "1 = _"):
        result = session.start(statement)
        assert isinstance(result, TacticError), statement
        assert result.kind == "statement"
    assert isinstance(session.run_tactic(10**6, "rfl"), TacticError)


def test_leans_own_limits_are_told_from_the_clock(session: HostSession) -> None:
    opened = state(session.start("∀ n : Nat, n * n + 1 ≠ 0"))
    result = session.run_tactic(opened, "set_option maxRecDepth 20 in simp_all [Nat.mul_comm]")
    assert not isinstance(result, Timeout)


def test_a_limit_ends_the_step_and_not_the_session(session: HostSession) -> None:
    opened = state(session.start("∀ n : Nat, n = n"))
    begun = time.monotonic()
    result = session.run_tactic(opened, SLOW, 0.5)
    assert isinstance(result, Timeout), result
    assert time.monotonic() - begun < 60
    assert session.alive
    assert state(session.run_tactic(opened, "intro n; rfl")).complete


def test_a_step_can_be_cancelled_from_another_thread(session: HostSession) -> None:
    opened = state(session.start("∀ n : Nat, n = n"))
    done = threading.Event()

    def cancel() -> None:
        while not done.wait(0.05):
            session.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        result = session.run_tactic(opened, SLOW, 60)
    finally:
        done.set()
        thread.join()
    assert isinstance(result, Cancelled)
    assert isinstance(session.run_tactic(opened, "intro n; rfl"), ProofState)


def test_a_freed_state_cannot_be_used(session: HostSession) -> None:
    opened = state(session.start("True"))
    session.free([opened])
    assert isinstance(session.run_tactic(opened, "trivial"), TacticError)
    assert session.memory().states == 0
