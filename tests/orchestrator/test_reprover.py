"""The reprover worker: models from a directory, retrieval, search, and being cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.orchestrator.byt5_models import speaking, tiny
from tests.premises.conftest import SMALL, written
from treewright.kernel.errors import UsageError
from treewright.orchestrator.byt5.model import Stopped, never
from treewright.orchestrator.byt5.reprover import (
    ReProver,
    Suggestion,
    add_premises,
    describe_premise,
)
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.reprover import (
    ModelProposer,
    ProposalSearch,
    ReproverWorker,
)
from treewright.premises.index import Premise, PremiseIndex

PREMISES = [Premise(d.name, d.type or "", "M", 1.0) for d in SMALL]


class Scripted:
    """Stands for a model, with an answer for each state."""

    def __init__(self, answers: dict[str, list[tuple[str, float]]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def propose(self, state: str, stop: Callable[[], bool]) -> list[Suggestion]:
        self.asked.append(state)
        found = next((a for end, a in self._answers.items() if state.endswith(end)), [])
        return [Suggestion(tactic, score) for tactic, score in found]


PATIENCE = 600.0  # the machine may be busy


def test_probes_say_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = LeanAccess(sessions=1)
    absent = ReproverWorker(lean).probe()
    assert not absent.available
    assert "TREEWRIGHT_REPROVER" in absent.detail
    monkeypatch.setenv("TREEWRIGHT_REPROVER", str(tmp_path))
    assert "no model" in ReproverWorker(lean).probe().detail
    tiny(tmp_path / "generator")
    found = ReproverWorker(lean).probe()
    assert found.available
    assert "without retrieval" in found.detail
    tiny(tmp_path / "retriever", decoder=False)
    index = tmp_path / "premises.db"
    needs = ReproverWorker(lean, premises=index).probe()
    assert not needs.available
    assert "treewright premises build" in needs.hint
    written(index, SMALL)
    assert "retrieval and generation" in ReproverWorker(lean, premises=index).probe().detail
    result = asyncio.run(ReproverWorker(lean, tmp_path / "nowhere").run(Goal("g", "True"), 1.0))
    assert (result.success, result.metadata["kind"]) == (False, "unavailable")
    asyncio.run(lean.close())


def test_a_model_s_words_are_tactics(tmp_path: Path) -> None:
    speaking(tmp_path / "generator", "omega", "rfl")
    models = ReProver(tmp_path)
    found = models.tactics("⊢ 1 = 1", (), 4, never)
    assert [suggestion.tactic for suggestion in found][:2] == ["omega", "rfl"]
    assert found[0].score > found[1].score
    assert not models.retrieves
    tiny(tmp_path / "wrong" / "generator", decoder=False)
    with pytest.raises(UsageError, match="no decoder"):
        ReProver(tmp_path / "wrong")


def test_harmful_and_cut_texts_are_no_tactics(tmp_path: Path) -> None:
    speaking(tmp_path / "generator", "admit", "sorex")
    assert "admit" not in [s.tactic for s in ReProver(tmp_path).tactics("x", (), 4, never)]


def test_retrieval_orders_candidates_by_nearness(tmp_path: Path) -> None:
    tiny(tmp_path / "generator")
    tiny(tmp_path / "retriever", decoder=False, seed=5)
    models = ReProver(tmp_path)
    state = describe_premise(PREMISES[3])
    found = models.rerank(state, PREMISES, never)
    assert found[0] == PREMISES[3], "a text is nearest to itself"
    assert sorted(p.name for p in found) == sorted(p.name for p in PREMISES)
    assert models.rerank(state, PREMISES, never) == found

    index = PremiseIndex.open(written(tmp_path / "premises.db", SMALL))
    proposer = ModelProposer(models, index)
    proposer.propose("x y : Nat\n⊢ x + y = y + x", never)
    assert "Nat.add_comm" in proposer.used
    proposer.close()


def test_premises_fill_the_room_in_front_of_the_state() -> None:
    state = "⊢ goal"
    whole = add_premises(state, PREMISES[:2], 10_000)
    assert whole == f"{describe_premise(PREMISES[1])}\n\n{describe_premise(PREMISES[0])}\n\n{state}"
    one = len(f"{describe_premise(PREMISES[0])}\n\n{state}".encode())
    assert (
        add_premises(state, PREMISES[:2], one + 1) == f"{describe_premise(PREMISES[0])}\n\n{state}"
    )
    assert add_premises(state, PREMISES, one) != add_premises(state, PREMISES[:1], one + 1)
    assert add_premises(state, PREMISES, 1) == state


@pytest.mark.xdist_group("orchestrator-lean")
def test_with_a_real_lean(tmp_path: Path, lean_access: LeanAccess) -> None:
    """Proofs by a model, by several steps, none, and a cancellation."""
    speaking(tmp_path / "generator", "omega", "rfl")

    async def by_the_model(lean: LeanAccess) -> None:
        worker = ReproverWorker(lean, tmp_path)
        result = await worker.run(Goal("g", "∀ a b : Nat, a < b → a + 1 ≤ b"), PATIENCE)
        assert result == Result(
            True, StrategyType.REPROVER, ("omega",), result.time_seconds, metadata={"premises": []}
        )
        unproved = await worker.run(Goal("g", "∃ n : Nat, n * n = 49"), PATIENCE)
        assert not unproved.success
        assert unproved.error == "no script of this strategy closes the goal"

    async def in_several_steps(lean: LeanAccess) -> None:
        scripted = Scripted(
            {
                "⊢ ∀ (p q : Prop), p → q → p ∧ q": [("nonsense", -0.1), ("intro p q hp hq", -1.0)],
                "⊢ p ∧ q": [("exact ⟨hq, hp⟩", -0.1), ("constructor", -0.5)],
                "⊢ q": [("all_goals assumption", -0.2)],
            }
        )
        goal = Goal("g", "∀ (p q : Prop), p → q → p ∧ q")
        result = await ProposalSearch(lean, scripted).run(goal, PATIENCE)
        assert result.tactics == ("intro p q hp hq", "constructor", "all_goals assumption")
        assert len(scripted.asked) == 3

    async def the_likelier_state_first(lean: LeanAccess) -> None:
        scripted = Scripted(
            {
                "⊢ 1 = 2 ∨ 2 = 2": [("left", -3.0), ("right", -1.0)],
                "⊢ 2 = 2": [("rfl", -0.1)],
            }
        )
        result = await ProposalSearch(lean, scripted).run(Goal("g", "1 = 2 ∨ 2 = 2"), PATIENCE)
        assert result.tactics == ("right", "rfl")
        assert not any(state.endswith("⊢ 1 = 2") for state in scripted.asked)

    async def cancelled(lean: LeanAccess) -> None:
        thinking, stopped = threading.Event(), threading.Event()

        class Endless:
            def propose(self, state: str, stop: Callable[[], bool]) -> list[Suggestion]:
                thinking.set()
                limit = time.monotonic() + PATIENCE
                while not stop():
                    assert time.monotonic() < limit
                stopped.set()
                raise Stopped

        task = asyncio.create_task(
            ProposalSearch(lean, Endless()).run(Goal("g", "1 = 1"), PATIENCE)
        )
        assert await asyncio.to_thread(thinking.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(stopped.wait, PATIENCE)

    async def everything() -> None:
        for part in (by_the_model, in_several_steps, the_likelier_state_first, cancelled):
            await part(lean_access)

    asyncio.run(everything())
