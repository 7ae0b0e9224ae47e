"""The background run's own machinery, without Lean: waking up, stopping, writing in place."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from treewright.orchestrator.background import LARGEST_FACTOR, Background
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.lean_access import LeanAccess
from treewright.orchestrator.ledger import Ledger

LIMIT = 120


def test_a_change_during_the_last_pass_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "A.lean"
    file.write_text("theorem a : True := by sorry\n")
    factors: list[int] = []

    async def change_at_the_end(self: Background, lean: LeanAccess, factor: int) -> int:
        factors.append(factor)
        if factor == LARGEST_FACTOR:
            os.utime(file, ns=(1, 1))
        if len(factors) > 4:
            self.stop()
        return 0

    monkeypatch.setattr(Background, "_pass", change_at_the_end)

    async def main(ledger: Ledger) -> None:
        background = Background(tmp_path, ledger, OrchestratorConfig(), poll_seconds=0.01)
        await asyncio.wait_for(background.run(), LIMIT)

    with Ledger(tmp_path / "ledger.db") as ledger:
        asyncio.run(main(ledger))
    assert factors == [1, 2, 4, 8, 1]
