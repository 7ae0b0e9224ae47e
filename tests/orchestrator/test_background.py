"""The background run's own machinery, without Lean: waking up, stopping, writing in place."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from treewright.orchestrator.background import MAX_TIME_FACTOR, Background, _File
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.types import Goal, Place, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess

LIMIT = 120


def test_a_change_during_the_last_pass_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "A.lean"
    file.write_text("theorem a : True := by sorry\n")
    factors: list[int] = []

    async def change_at_the_end(self: Background, lean: LeanAccess, factor: int) -> int:
        factors.append(factor)
        if factor == MAX_TIME_FACTOR:
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


class Stuck(LeanAccess):
    """Lean that never answers; a real one does so only in bad luck."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gave_up = False

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        yield self

    async def check(self, source: str, **_: object) -> NoReturn:
        await self._never()

    async def check_text(self, *_: object) -> NoReturn:
        await self._never()

    async def _never(self) -> NoReturn:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gave_up = True
        raise AssertionError


def proof(name: str, start: int, source: str) -> tuple[Goal, Result]:
    place = Place("A.lean", source, name, ((start, start + 5),))
    goal = Goal(id=name, text="True", place=place)
    return goal, Result(True, StrategyType.MICRO, ("trivial",))


@pytest.mark.parametrize("what", ["extraction", "replay"])
def test_stop_does_not_wait_for_lean(tmp_path: Path, what: str) -> None:
    source = "theorem a : True := sorry\ntheorem b : True := sorry\n"
    (tmp_path / "A.lean").write_text(source)
    said: list[str] = []

    async def main(ledger: Ledger) -> None:
        lean = Stuck()
        background = Background(tmp_path, ledger, OrchestratorConfig(), announce=said.append)
        if what == "extraction":
            work = background._pass(lean, 1)
        else:
            file = _File(tmp_path / "A.lean", source, source)
            first, second = source.index("sorry"), source.rindex("sorry")
            solved = [proof("a", first, source), proof("b", second, source)]
            work = background._keep(file, solved, lean)
        task = asyncio.create_task(work)
        await asyncio.wait_for(lean.asked.wait(), LIMIT)
        background.stop()
        assert await asyncio.wait_for(task, LIMIT) == 0
        assert lean.gave_up
        await lean.close()

    with Ledger(tmp_path / "ledger.db") as ledger:
        asyncio.run(main(ledger))
    assert any("stopped" in text for text in said) == (what == "replay")


def test_waiting_for_the_machine_is_said_once_in_a_run(tmp_path: Path) -> None:
    """Each file has a new scheduler, and the load differs each time."""
    said: list[str] = []

    async def no_sleep(_: float) -> None:
        return

    with Ledger(tmp_path / "ledger.db") as ledger:
        background = Background(tmp_path, ledger, OrchestratorConfig(), announce=said.append)
        for load in (2.0, 3.0):
            throttle = Throttle(0.5, read_load=lambda load=load: load, sleep=no_sleep)
            throttle.on_first_wait = background._announce_first_wait
            assert throttle.observe() == 1.0
            asyncio.run(throttle.pause())
    assert len(said) == 1
    assert "each start waits up to 1 s" in said[0]


def test_a_file_written_in_place_stays_what_it_was(tmp_path: Path) -> None:
    """Its mode, the link that leads to it; and one that is gone does not end the run."""
    said: list[str] = []
    real = tmp_path / "real.txt"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "A.lean"
    link.symlink_to(real)
    with Ledger(tmp_path / "ledger.db") as ledger:
        background = Background(
            tmp_path, ledger, OrchestratorConfig(), in_place=True, announce=said.append
        )
        background._write(_File(link, "old", "old"), "new")
        assert said == []
        assert link.is_symlink()
        assert real.read_text() == "new"
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        background._write(_File(link, "old", "old"), "newer")
        assert "was changed meanwhile" in said[-1]
        background._write(_File(tmp_path / "gone.lean", "old", "old"), "new")
        assert said[-1].startswith("gone.lean: cannot be written")
    assert (background.directory / "files" / "gone.lean").read_text() == "new"
