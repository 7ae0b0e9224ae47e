"""`dojo`: LeanDojo's gym on a theorem of a traced repository, where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import time
from pathlib import Path
from typing import Any

from treewright.lean.backend import find_project
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.base import Availability, Hopeless, ThreadWorker

LIBRARY = "lean_dojo"
TACTICS = ("rfl", "simp", "simp_all", "omega", "aesop", "norm_num", "ring", "linarith")


class DojoWorker(ThreadWorker):
    def __init__(self, start: Path | None = None) -> None:
        self._start = start or Path.cwd()

    strategy = StrategyType.DOJO

    def probe(self) -> Availability:
        if importlib.util.find_spec(LIBRARY) is None:
            return Availability(False, "lean-dojo is not installed", "pip install lean-dojo")
        project = find_project(self._start)
        if project is None or not (project / ".git").exists():
            return Availability(
                False, "not inside a Lake project under git", "run it inside your Lake project"
            )
        return Availability(True, f"LeanDojo on {project.name}")

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        project = find_project(self._start)
        if goal.place is None or project is None or len(goal.place.holes) != 1:
            raise Hopeless("LeanDojo proves a theorem of a traced repository with one hole")
        library = importlib.import_module(LIBRARY)
        repository = library.LeanGitRepo(str(project), "HEAD")
        theorem = library.Theorem(repository, goal.place.file, goal.place.declaration)
        with library.Dojo(theorem) as (dojo, state):
            return (first_closing(library, dojo, state, deadline),)


def first_closing(library: Any, dojo: Any, state: Any, deadline: float) -> str:
    """The first tactic after which the proof is finished."""
    for tactic in TACTICS:
        if time.monotonic() >= deadline:
            raise TimeoutError
        if isinstance(dojo.run_tac(state, tactic), library.ProofFinished):
            return tactic
    raise Hopeless("no tactic closes the goal")
