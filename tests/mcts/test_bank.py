"""The bundled goals with real Lean: what the set says about itself, and that it gets proved.

The searches take every fourth goal; `python -m benchmarks.prove_bank` takes all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcts.bank import BankGoal, Sessions, bank, proved, search
from treewright.lean.replay import Replayer
from treewright.lean.types import ProofState
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.session import WasmSession

CLASSES = {"propositional", "quantifiers", "nat", "int", "list", "option", "bool"}
SINGLE = ("rfl", "simp", "omega", "decide", "grind")
GOALS = bank()
SAMPLE = GOALS[::4]


def test_the_set_is_what_it_should_be() -> None:
    assert len(GOALS) >= 60
    assert {goal.kind for goal in GOALS} == CLASSES
    assert len({goal.id for goal in GOALS}) == len({goal.text for goal in GOALS}) == len(GOALS)
    assert sum(not goal.one_step for goal in GOALS) >= len(GOALS) / 2
    assert all((goal.min_steps == 1) == goal.one_step for goal in GOALS)
    assert all(0.0 <= goal.estimated_difficulty <= 1.0 for goal in GOALS)


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_one_tactic_is_enough_exactly_where_the_set_says_so(lean: WasmSession, kind: str) -> None:
    for goal in GOALS:
        if goal.kind == kind:
            assert _closed_at_once(lean, goal) == goal.one_step, goal.text


def _closed_at_once(lean: WasmSession, goal: BankGoal) -> bool:
    start = lean.start(goal.text)
    assert isinstance(start, ProofState), start
    for tactic in SINGLE:
        result = lean.run_tactic(start, tactic, 30.0)
        if isinstance(result, ProofState) and result.closed and result.complete:
            return True
    return False


@pytest.fixture(scope="module")
def sessions(home: LeanHome) -> Iterator[Sessions]:
    made = Sessions(home)
    yield made
    made.close()


def test_at_least_four_of_five_are_proved_and_replayed(
    sessions: Sessions, replayer: Replayer
) -> None:
    missed: list[str] = []
    for goal in SAMPLE:
        script = search(sessions, goal.text, 60).script
        if script is None:
            missed.append(goal.text)
        else:
            assert proved(replayer, goal.text, script), f"{goal.text}\n{script}"
    assert len(missed) <= len(SAMPLE) / 5, missed


@pytest.mark.parametrize(
    "statement",
    [
        "∀ a b : Nat, a - b + b = a",
        "∀ xs ys : List Nat, xs ++ ys = ys ++ xs",
        "∀ p q : Prop, (p → q) → q → p",
        "∀ n : Nat, ∃ m : Nat, m < n",
    ],
)
def test_a_false_goal_is_not_proved(sessions: Sessions, statement: str) -> None:
    assert search(sessions, statement, 12).script is None
