"""`dojo`: the tactics of a project's own Lean, one by one, on a goal or a hole of a file.

It runs in the project's toolchain and has Mathlib's tactics where the file imports them. A tactic
that closes the goal goes through the replay check like every other proof.
"""

from __future__ import annotations

import time
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.choice import Choice
from treewright.lean.session.answers import CheckResult, ProofState, StepResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanSession
from treewright.orchestrator.goals import statements
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, Place, StrategyType
from treewright.orchestrator.workers.base import Availability, NoProof, ThreadWorker
from treewright.orchestrator.workers.copilot import native_project, own_lean

TACTICS = ("rfl", "simp", "simp_all", "omega", "aesop", "norm_num", "ring", "linarith")


class DojoWorker(ThreadWorker):
    def __init__(self, start: Path | None = None, choice: Choice | None = None) -> None:
        self._start = start or Path.cwd()
        self._choice = choice

    strategy = StrategyType.DOJO

    def probe(self) -> Availability:
        project = native_project(self._start, self._choice)
        if isinstance(project, Availability):
            return project
        return Availability(True, f"the tactics of {project.name}")

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        project = native_project(self._start, self._choice)
        if isinstance(project, Availability):
            raise NoProof(project.detail)
        try:
            host = own_lean(project, self._choice)
            with HostSession(host, goal.imports, goal.preamble) as session:
                return attempt(session, goal, deadline)
        except TreewrightError as error:
            raise NoProof(str(error)) from error


def attempt(session: LeanSession, goal: Goal, deadline: float) -> tuple[str, ...]:
    """Return a script for the goal: its introductions and the first tactic that closes it."""
    if goal.place is not None:
        return (first_closing(session, _state_in_file(session, goal.place, deadline), deadline),)
    steps = statements.introductions(goal)
    state = _opened(session.start(statements.closed_statement(goal)))
    for step in steps:
        state = _opened(session.run_tactic(state, step))
    return (*steps, first_closing(session, state, deadline))


def first_closing(session: LeanSession, state: ProofState, deadline: float) -> str:
    """Return the first tactic after which the proof is finished."""
    for tactic in TACTICS:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        result = session.run_tactic(state, tactic, left)
        if isinstance(result, ProofState) and result.complete:
            return tactic
    raise NoProof("no tactic closes the goal")


def _state_in_file(session: LeanSession, place: Place, deadline: float) -> ProofState:
    if len(place.holes) != 1:
        raise NoProof("dojo works on declarations with one hole")
    left = max(1.0, deadline - time.monotonic())
    result = session.check(place.source, sorries=True, until=place.declaration, timeout=left)
    if isinstance(result, CheckResult):
        for sorry in result.sorries:
            if (sorry.start, sorry.end) == place.holes[0] and sorry.states:
                return sorry.states[0]
    raise NoProof("Lean does not find the hole")


def _opened(result: StepResult) -> ProofState:
    if not isinstance(result, ProofState):
        raise NoProof("Lean does not take the goal")
    return result


strategy = Strategy(
    "the tactics of the project's own Lean, one by one",
    30.0,
    lambda tools: DojoWorker(tools.lean.start, tools.lean.choice),
)
