"""Lean as the search sees it: goals by group, failures as outcomes, states made again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import SessionLost, StepResult
from treewright.lean.session.errors import LeanError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.knowledge import NOTHING_KNOWN
from treewright.proving.environment import GoalError, LeanEnvironment, stable

pytestmark = pytest.mark.xdist_group("lean-session")


@pytest.fixture(scope="module")
def sessions(home: LeanHome) -> Iterator[list[HostSession]]:
    started: list[HostSession] = []
    yield started
    for session in started:
        session.close()


class Kept:
    """Environments that share one session, as the goals of a run do."""

    def __init__(self, home: LeanHome, started: list[HostSession]) -> None:
        self._home = home
        self.started = started

    def take(self) -> HostSession:
        if not self.started or not self.started[-1].alive:
            self.started.append(HostSession(self._home))
        return self.started[-1]

    def __call__(self, statement: str, **settings: float) -> LeanEnvironment:
        def opening(session: HostSession) -> StepResult:
            return session.start(statement)

        return LeanEnvironment(self.take, opening, **settings)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def on(home: LeanHome, sessions: list[HostSession]) -> Kept:
    return Kept(home, sessions)


def test_each_goal_after_a_tactic_is_a_separate_subgoal(on: Kept) -> None:
    environment = on("∀ p q : Prop, p → q → p ∧ q")
    root = environment.root()
    assert root.goals[0].target == "∀ (p q : Prop), p → q → p ∧ q"
    outcome = environment.apply(0, "intro p q hp hq")
    environment.bind(0, "intro p q hp hq", [1])
    assert [h.name for h in outcome.subgoals[0].goals[0].hypotheses] == ["p", "q", "hp", "hq"]
    split = environment.apply(1, "constructor")
    assert [s.goals[0].target for s in split.subgoals] == ["p", "q"]
    assert [s.layout for s in split.subgoals] == [(0,), (1,)]
    environment.bind(1, "constructor", [2, 3])
    assert environment.apply(2, "exact hp").kind == "closed"
    assert environment.apply(3, "exact hp").kind == "error"
    assert environment.apply(3, "exact hq").kind == "closed"
    environment.release()


def test_goals_that_share_metavariables_are_one_subgoal(on: Kept) -> None:
    environment = on("(∃ x : Nat, x > 3 ∧ x < 5) ∧ True")
    environment.root()
    outcome = environment.apply(0, "refine ⟨⟨?x, ?_, ?_⟩, ?_⟩")
    assert [s.layout for s in outcome.subgoals] == [(0, 1, 2), (3,)]
    environment.bind(0, "refine ⟨⟨?x, ?_, ?_⟩, ?_⟩", [1, 2])
    assert environment.apply(2, "trivial").kind == "closed"
    witness = environment.apply(1, "case x => exact 4")
    assert [g.target for s in witness.subgoals for g in s.goals] == ["4 > 3", "4 < 5"]
    environment.release()


def test_failures_are_outcomes(on: Kept) -> None:
    environment = on("∀ n : Nat, n = n", step_seconds=60.0)
    environment.root()
    assert environment.apply(0, "omega nonsense").kind == "error"
    assert environment.apply(0, "sorry").kind == "error"
    assert environment.apply(0, "exact fun n => (sorry : n = n)").kind == "error"
    assert environment.apply(0, "intro n; rfl").kind == "closed"
    assert environment.sessions_lost == 0
    environment.release()


def test_a_tactic_that_never_ends_is_an_outcome(on: Kept) -> None:
    environment = on("∀ n : Nat, n = n", step_seconds=2.0)
    environment.root()
    slow = "repeat (first | (have : 1 = 1 := rfl; clear this))"
    assert environment.apply(0, slow).kind in ("timeout", "exhausted", "lost")
    environment.release()


def test_advice_is_written_down_instead_of_the_question(on: Kept) -> None:
    environment = on("∀ a b : Nat, a + b = b + a", step_seconds=60.0)
    environment.root()
    outcome = environment.apply(0, "exact?")
    assert outcome.kind == "closed"
    assert outcome.script.startswith("exact ")
    assert "?" not in outcome.script
    environment.release()


def test_states_of_advice_that_does_not_close_are_not_kept(on: Kept) -> None:
    environment = on("∀ n m : Nat, n + 0 = m", step_seconds=60.0)
    environment.root()
    outcome = environment.apply(0, "simp?")
    assert (outcome.kind, outcome.detail) == ("error", "found nothing that closes it")
    assert environment._unbound_states == {}
    environment.release()


def test_a_wrong_goal_is_an_error_of_its_own(on: Kept) -> None:
    environment = on("∀ n : Nat, n = nonsense")
    with pytest.raises(GoalError, match="nonsense"):
        environment.root()
    environment.release()


def test_states_are_made_again_after_a_crash(on: Kept) -> None:
    environment = on("∀ p q : Prop, p ∧ q → q ∧ p")
    root = environment.root()
    opened = environment.apply(0, "intro p q h")
    environment.bind(0, "intro p q h", [1])
    split = environment.apply(1, "constructor")
    environment.bind(1, "constructor", [2, 3])
    os.kill(on.take().pid, signal.SIGKILL)
    assert environment.apply(3, "exact h.1").kind == "closed"
    assert environment.sessions_lost == 1
    assert environment.apply(2, "exact h.2").kind == "closed"
    assert environment.closes("intro p q h\nconstructor\n· exact h.2\n· exact h.1")
    assert not environment.closes("intro p q h\nconstructor\n· exact h.2\n· exact h.2")
    environment.release()
    # Another process knows only the keys and the way.
    later = on("∀ p q : Prop, p ∧ q → q ∧ p")
    later.expect(0, root.key)
    later.expect(1, opened.subgoals[0].key)
    later.bind(0, "intro p q h", [1])
    later.bind(1, "constructor", [2, 3])
    later.expect(3, split.subgoals[1].key)
    assert later.apply(3, "exact h.1").kind == "closed"
    later.release()


class Gone:
    """A factory of sessions that do not stay alive."""

    alive = False

    def start(self, _: str) -> StepResult:
        return SessionLost("the process was killed")

    def close(self) -> None: ...


def test_a_lean_that_does_not_stay_alive_is_no_outcome_of_a_tactic(on: Kept) -> None:
    """A tactic that ends Lean has failed. A goal that cannot be opened any more says nothing of
    the tactics that were tried on it, nor that nothing is known that would help."""
    started: list[HostSession | Gone] = []

    def start() -> HostSession | Gone:
        started.append(Gone() if started else on.take())
        return started[-1]

    environment = LeanEnvironment(start, lambda s: s.start("∀ p : Prop, p → p"))  # pyright: ignore[reportArgumentType]
    environment.root()
    os.kill(on.take().pid, signal.SIGKILL)
    for asked in (lambda: environment.apply(0, "intro p h"), lambda: environment.knowledge(0)):
        with pytest.raises(LeanError, match=r"does not stay alive.*killed") as raised:
            asked()
        assert not isinstance(raised.value, GoalError), "that would be a verdict"
    environment.release()


def test_knowledge_is_asked_again_after_a_crash(on: Kept) -> None:
    environment = on("∀ a b : Nat, a + b = b + a")
    environment.root()
    environment.apply(0, "intro a b")
    environment.bind(0, "intro a b", [1])
    known = environment.knowledge(1)
    assert known != NOTHING_KNOWN
    os.kill(on.take().pid, signal.SIGKILL)
    assert environment.knowledge(1) == known
    environment.release()


def test_another_goal_under_the_same_number_is_found_out(on: Kept) -> None:
    environment = on("∀ p : Prop, p → p")
    environment.root()
    environment.expect(1, "another key")
    environment.bind(0, "intro p", [1])
    outcome = environment.apply(1, "intro h")
    assert outcome.kind == "lost"
    assert "other goals" in outcome.detail
    environment.release()


def test_internal_numbers_do_not_reach_the_trace() -> None:
    assert stable("?m.1871 = ?m.1873 + ?m.1871") == "?m.1 = ?m.2 + ?m.1"
