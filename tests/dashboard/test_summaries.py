"""Pages share summaries, and a summary is never older than the last announced change."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.dashboard import proof_runs
from treewright.dashboard.roots import Roots
from treewright.dashboard.summaries import Summaries


def test_concurrent_requests_share_one_answer(tmp_path: Path) -> None:
    proof_runs.solved(tmp_path)
    summaries = Summaries(Roots([tmp_path]))
    made = []

    def count() -> str:
        made.append(1)
        return "answer"

    async def ask() -> list[str]:
        return await asyncio.gather(*(summaries._fresh("key", count) for _ in range(50)))

    assert asyncio.run(ask()) == ["answer"] * 50
    assert len(made) == 1


def test_a_summary_interrupted_by_a_change_is_not_cached(tmp_path: Path) -> None:
    proof_runs.solved(tmp_path)
    summaries = Summaries(Roots([tmp_path]))
    state = ["before"]

    def slow() -> str:
        found = state[0]
        state[0] = "after"
        summaries.forget()
        return found

    async def ask() -> tuple[str, str]:
        return await summaries._fresh("key", slow), await summaries._fresh("key", lambda: state[0])

    assert asyncio.run(ask()) == ("before", "after")
