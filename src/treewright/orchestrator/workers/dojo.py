"""`dojo`: LeanDojo's gym on a theorem of a traced repository, where it is installed."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import time
from pathlib import Path
from typing import Any

from treewright.lean.backend import find_project
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.base import EXCEPTION, Availability, Hopeless, failed

LIBRARY = "lean_dojo"
TACTICS = ("rfl", "simp", "simp_all", "omega", "aesop", "norm_num", "ring", "linarith")


class DojoWorker:
    def __init__(self, start: Path | None = None) -> None:
        self._start = start or Path.cwd()

    @property
    def strategy(self) -> StrategyType:
        return StrategyType.DOJO

    def probe(self) -> Availability:
        if importlib.util.find_spec(LIBRARY) is None:
            return Availability(False, "lean-dojo is not installed", "pip install lean-dojo")
        project = find_project(self._start)
        if project is None or not (project / ".git").exists():
            return Availability(
                False, "not inside a Lake project under git", "run it inside your Lake project"
            )
        return Availability(True, f"LeanDojo on {project.name}")

    async def run(self, goal: Goal, timeout: float) -> Result:
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                tactic = await asyncio.to_thread(self._prove, goal, started + timeout)
        except TimeoutError:
            return failed(self.strategy, "timeout", started)
        except Hopeless as reason:
            return failed(self.strategy, str(reason), started)
        except Exception as error:
            return failed(self.strategy, f"{type(error).__name__}: {error}", started, EXCEPTION)
        return Result(True, self.strategy, (tactic,), time.monotonic() - started)

    def _prove(self, goal: Goal, deadline: float) -> str:
        project = find_project(self._start)
        if goal.place is None or project is None or len(goal.place.holes) != 1:
            raise Hopeless("LeanDojo proves a theorem of a traced repository with one hole")
        library = importlib.import_module(LIBRARY)
        repository = library.LeanGitRepo(str(project), "HEAD")
        theorem = library.Theorem(repository, goal.place.file, goal.place.declaration)
        with library.Dojo(theorem) as (dojo, state):
            return first_closing(library, dojo, state, deadline)


def first_closing(library: Any, dojo: Any, state: Any, deadline: float) -> str:
    """The first tactic after which the proof is finished."""
    for tactic in TACTICS:
        if time.monotonic() >= deadline:
            raise TimeoutError
        if isinstance(dojo.run_tac(state, tactic), library.ProofFinished):
            return tactic
    raise Hopeless("no tactic closes the goal")
