"""The scheduler and `micro` on a real Lean: proofs are replayed, losers leave Lean warm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lean.endless import SLOW
from tests.orchestrator.fakes import FakeWorker
from tests.waiting import cpu_seconds
from treewright.lean.session import async_session
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.types import Place
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.micro import MicroWorker
from treewright.orchestrator.workers.search import SearchWorker
from treewright.orchestrator.workers.worker import Hole, LeanWorker

pytestmark = pytest.mark.xdist_group("orchestrator-lean")
CONFIG = OrchestratorConfig(timeouts={StrategyType.MICRO: 300.0})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def solve(lean: LeanAccess, ledger: Ledger, *goals: Goal, workers=None) -> list[Result]:
    async def main() -> list[Result]:
        async with Scheduler(
            CONFIG, ledger=ledger, lean=lean, workers=workers or [MicroWorker(lean)]
        ) as scheduler:
            return [await scheduler.run_goal(goal) for goal in goals]

    return asyncio.run(main())


def test_goals_of_every_form_are_proved_and_wrong_ones_are_not(
    lean_access: LeanAccess, ledger: Ledger
) -> None:
    good = [
        Goal(id="plain", text="∀ n : Nat, n + 0 = n"),
        Goal(id="context", text="n ≠ 0", context=("n : Nat", "h : n > 0")),
        Goal(id="instance", text="x = x", context=("{α : Type}", "[Inhabited α]", "x : α")),
        Goal(id="two", text="p ∧ (q ∨ p)", context=("p q : Prop", "hp : p")),
        Goal(id="preamble", text="double 2 = 4", preamble="def double (n : Nat) := n + n"),
        Goal(id="imports", text="∀ a b : Nat, max a b = max b a", imports=("Std",)),
    ]
    bad = [
        Goal(id="false", text="1 = 2"),
        Goal(id="nonsense", text="test"),
        Goal(id="hole", text="∀ n : Nat, n = ?x"),
        Goal(id="module", text="True", imports=("NoSuchModule",)),
    ]
    results = solve(lean_access, ledger, *good, *bad)
    proved = [goal.id for goal, result in zip(good + bad, results, strict=True) if result.success]
    assert proved == [goal.id for goal in good]
    assert all(result.error for result in results[len(good) :])
    assert "Lean does not take the goal" in str(results[len(good) + 1].error)
    (row,) = ledger.query("SELECT * FROM attempts WHERE goal_id = 'plain'")
    assert row["success"] == 1


class Costly(LeanWorker):
    """Works until the system has counted what Lean used: it does in hundredths of a second, and a
    Lean that is warm proves much in one."""

    strategy = StrategyType.SEARCH

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...]:
        assert session.pid is not None
        before = cpu_seconds(session.pid)
        while cpu_seconds(session.pid) == before:
            await session.run_tactic(hole.states[0], "intro n; simp")
        return ("intro n", "simp")


def test_what_lean_used_for_an_attempt_is_known(lean_access: LeanAccess, ledger: Ledger) -> None:
    goal = Goal(id="g", text="∀ n : Nat, n + 0 = n")
    (result,) = solve(lean_access, ledger, goal, workers=[Costly(lean_access)])
    assert result.success, result
    assert ledger.query("SELECT cpu_seconds FROM attempts")[0]["cpu_seconds"] > 0


def test_a_true_theorem_is_proved_beside_an_open_one(
    lean_access: LeanAccess, ledger: Ledger
) -> None:
    source = (
        "inductive Tape where\n  | blank\n  | cell (bit : Bool) (rest : Tape)\n"
        "def Tape.flip : Tape → Tape\n  | .blank => .blank\n  | .cell b t => .cell (!b) t.flip\n"
        "theorem flip_eq (t : Tape) : t.flip = t := by sorry\n"
        "theorem flip_flip (t : Tape) : t.flip.flip = t := by sorry\n"
    )
    start = source.encode().rindex(b"sorry")
    hole = (start, start + 5)
    place = Place("f.lean", source, "flip_flip", (hole,), frozenset({hole}))
    goal = Goal(id="t", text="t.flip.flip = t", place=place)
    (result,) = solve(lean_access, ledger, goal, workers=[SearchWorker(lean_access)])
    assert result.success, result.error
    assert "flip_eq" not in "\n".join(result.tactics)


def test_a_declaration_with_several_sorries_is_proved_as_a_whole(
    lean_access: LeanAccess, ledger: Ledger
) -> None:
    source = (
        "def two := 2\n"
        "theorem t (p : Prop) (h : p) : p ∧ two = 2 := by\n"
        "  constructor\n"
        "  · sorry\n"
        "  · exact sorry\n"
    )
    data = source.encode()
    first = data.index(b"sorry")
    second = data.index(b"sorry", first + 1)
    holes = ((first, first + 5), (second, second + 5))
    place = Place("f.lean", source, "t", holes, frozenset(holes[:1]))
    (result,) = solve(lean_access, ledger, Goal(id="t", text="p ∧ two = 2", place=place))
    assert result.success, result.error
    assert len(result.tactics) == 2


class Claims(LeanWorker):
    """Claims a script without looking at the goal."""

    strategy = StrategyType.SEARCH
    script = ("exact sorry",)

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...]:
        return self.script


@pytest.mark.parametrize("script", ["exact sorry", "native_decide", "omega"])
def test_a_false_claim_is_never_a_proof(
    lean_access: LeanAccess, ledger: Ledger, script: str
) -> None:
    worker = Claims(lean_access)
    worker.script = (script,)
    (result,) = solve(lean_access, ledger, Goal(id="g", text="1 = 2"), workers=[worker])
    assert not result.success
    assert "the replay check says" in str(result.error)
    assert ledger.query("SELECT status FROM attempts")[0]["status"] == "rejected"


class Endless(LeanWorker):
    strategy = StrategyType.SEARCH

    def __init__(self, lean: LeanAccess) -> None:
        super().__init__(lean)
        self.running = asyncio.Event()
        self.pid: int | None = None

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> None:
        self.pid = session.pid
        self.running.set()
        await session.run_tactic(hole.states[0], SLOW, timeout=300)


def test_a_loser_is_cancelled_its_lean_stays_warm_and_its_cost_is_known(
    lean_access: LeanAccess, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_session, "CANCEL_GRACE_SECONDS", 100.0)  # the machine may be busy
    goal = Goal(id="g", text="∀ n : Nat, n = n")

    async def main() -> tuple[Result, int | None, float]:
        endless = Endless(lean_access)
        quick = FakeWorker(StrategyType.MICRO, lambda _: True, wait=endless.running.wait)
        quick_script = quick.run

        async def claim(goal: Goal, timeout: float) -> Result:
            result = await quick_script(goal, timeout)
            return Result(True, result.strategy, ("simp",), 0.01)

        quick.run = claim  # type: ignore[method-assign]
        async with Scheduler(
            CONFIG, ledger=ledger, lean=lean_access, workers=[endless, quick]
        ) as scheduler:
            result = await scheduler.run_goal(goal)
            wasted = scheduler.wasted_cpu_seconds
        async with lean_access.session() as session:
            pid = session.pid
            assert endless.pid == pid, "the same process is lent again"
            await session.start("1 = 1")
        return result, pid, wasted

    result, pid, wasted = asyncio.run(main())
    assert result.success
    assert pid is not None
    (row,) = ledger.query("SELECT * FROM attempts WHERE status = 'cancelled'")
    assert row["strategy"] == "search"
    assert row["cpu_seconds"] == pytest.approx(wasted, abs=0.01)
    assert row["time_seconds"] < 300
