"""The usage of a model is in the attempt's row of the ledger, however the attempt ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from tests.orchestrator.fakes import FakeWorker, accept
from treewright.llm.endpoint import Endpoint
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.sketch import SketchWorker
from treewright.orchestrator.workers.worker import Worker

GOAL = Goal(id="g", text="1 = 2")
USED = {
    "prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.0, "unpriced_tokens": 110,
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def attempts(ledger: Ledger, *workers: Worker) -> dict[str, tuple[str, dict[str, object] | None]]:
    """Status and usage of each strategy's attempt at the goal."""

    async def run() -> None:
        idle = Throttle(1.0, read_load=lambda: 0.0)
        async with Scheduler(
            OrchestratorConfig(), ledger=ledger, workers=workers, throttle=idle, verify=accept
        ) as scheduler:
            await scheduler.run_goal(GOAL)

    asyncio.run(run())
    found = ledger.query("SELECT strategy, status, metadata FROM attempts")
    return {
        row["strategy"]: (row["status"], json.loads(row["metadata"]).get("usage")) for row in found
    }


@pytest.mark.parametrize("text", ["I cannot.", "```\nnative_decide\n```"])
def test_an_answer_that_is_of_no_use_was_paid_for(ledger: Ledger, text: str) -> None:
    with stand_in(Step(body=completion(text))) as model:
        endpoint = Endpoint(base_url=model.url, model="m")
        found = attempts(ledger, SketchWorker(LeanAccess(sessions=1), endpoint))
    assert found == {"sketch": ("failed", USED)}


def test_so_was_one_that_came_too_late(ledger: Ledger) -> None:
    """Another strategy had a proof when the answer was there, and Lean was not yet."""
    answered = asyncio.Event()

    class Waits:
        async def __aenter__(self) -> None:
            answered.set()
            await asyncio.Event().wait()

        async def __aexit__(self, *_: object) -> None:
            pass

    lean = LeanAccess(sessions=1)
    lean.session = Waits  # pyright: ignore[reportAttributeAccessIssue]
    quick = FakeWorker(StrategyType.MICRO, lambda _: True, wait=answered.wait)
    with stand_in(Step(body=completion("```\nrfl\n```"))) as model:
        endpoint = Endpoint(base_url=model.url, model="m")
        found = attempts(ledger, quick, SketchWorker(lean, endpoint))
    assert found == {"micro": ("proved", None), "sketch": ("cancelled", USED)}
