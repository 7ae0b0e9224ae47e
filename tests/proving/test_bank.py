"""The bundled goals with real Lean: the properties of the set, and that enough of it is proved.

The searches take every seventh goal; `python -m benchmarks.prove_bank` takes all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.proving.bank import (
    LARGEST_HEAP,
    BankGoal,
    LastingSession,
    Sessions,
    bank,
    centralized,
    proved,
    search,
)
from treewright.cellview.runner import CellViewRunner
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import ProofState, SessionLost, StepResult, Timeout
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander
from treewright.proving.search import Runner

pytestmark = pytest.mark.xdist_group("lean-session")

CLASSES = {"propositional", "quantifiers", "nat", "int", "list", "option", "bool"}
SINGLE = ("rfl", "simp", "omega", "decide", "grind")
GOALS = bank()
SAMPLE = GOALS[::7]


def test_the_set_has_its_documented_properties() -> None:
    assert len(GOALS) >= 60
    assert {goal.kind for goal in GOALS} == CLASSES
    assert len({goal.id for goal in GOALS}) == len({goal.text for goal in GOALS}) == len(GOALS)
    assert sum(not goal.one_step for goal in GOALS) >= len(GOALS) / 2
    assert all((goal.min_steps == 1) == goal.one_step for goal in GOALS)
    assert all(0.0 <= goal.estimated_difficulty <= 1.0 for goal in GOALS)


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_one_tactic_is_enough_exactly_where_the_set_says_so(lean: HostSession, kind: str) -> None:
    for goal in GOALS:
        if goal.kind == kind:
            assert _closed_at_once(lean, goal) == goal.one_step, goal.text


def _closed_at_once(lean: HostSession, goal: BankGoal) -> bool:
    start = lean.start(goal.text)
    assert isinstance(start, ProofState), start
    for tactic in SINGLE:
        result = lean.run_tactic(start, tactic, 30.0)
        if isinstance(result, ProofState) and result.closed and result.complete:
            return True
    return False


class AskedOnce(LastingSession):
    """Lean says the same to the same question in the same state: it is asked once, and the
    searches for one goal share its states."""

    def __init__(self, home: LeanHome) -> None:
        super().__init__(home)
        self._said: dict[tuple[object, ...], StepResult] = {}
        self._about = ""

    def start(self, statement: str, **options: Any) -> StepResult:
        if statement != self._about:
            self.reset()
            self._said.clear()
            self._about = statement
        return self._once(("",), lambda: super(AskedOnce, self).start(statement, **options))

    def run_tactic(self, state: ProofState | int, tactic: str, *limits: float) -> StepResult:
        ask = super().run_tactic
        return self._once((_number(state), tactic), lambda: ask(state, tactic, *limits))

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        ask = super().focus
        return self._once((_number(state), *goals), lambda: ask(state, goals))

    def free(self, states: Sequence[ProofState | int]) -> None:
        """Another search may come to them."""

    def close(self) -> None:
        if not self.lasting or not self.alive or self.heap_bytes > LARGEST_HEAP:
            super().close()

    def _once(self, question: tuple[object, ...], ask: Callable[[], StepResult]) -> StepResult:
        if question not in self._said:
            said = ask()
            if isinstance(said, SessionLost | Timeout):  # says nothing about the question
                return said
            self._said[question] = said
        return self._said[question]


def _number(state: ProofState | int) -> int:
    return state.state if isinstance(state, ProofState) else state


@pytest.fixture(scope="module")
def sessions(home: LeanHome) -> Iterator[Sessions]:
    made = Sessions(home, AskedOnce)
    yield made
    made.close()


def cells(agents: int) -> Callable[[Expander], Runner]:
    settings = CellSettings(agents=agents, inflight=min(2, agents))
    return lambda expander: CellViewRunner(expander, settings, 0)


RUNNERS = {"centralized": centralized, "four agents": cells(4), "one agent": cells(1)}


def test_four_of_five_are_proved_and_cells_keep_up(sessions: Sessions, replayer: Replayer) -> None:
    """Every proof is replayed. One agent finds the same proofs as the centralized engine, in
    another order: tests/cellview/test_against_centralized.py says where and why."""
    solved: dict[str, set[str]] = {name: set() for name in RUNNERS}
    for goal in SAMPLE:
        for name, runner in RUNNERS.items():
            # Lean's own limits, which count work, strike long before these seconds.
            script = search(sessions, goal.text, 200, runner=runner, step_seconds=120).script
            if script is not None:
                assert proved(replayer, goal.text, script), f"{goal.text}\n{script}"
                solved[name].add(goal.id)
    assert len(solved["centralized"]) >= 0.8 * len(SAMPLE), solved
    assert len(solved["four agents"]) >= 0.9 * len(solved["centralized"]), solved
    assert solved["one agent"] == solved["centralized"]


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
