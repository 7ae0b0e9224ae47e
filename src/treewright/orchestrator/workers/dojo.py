"""`dojo`: the tactics of a project's own Lean, one by one, on a goal or a hole of a file.

Mathlib's tactics are available where the file imports them.
"""

from __future__ import annotations

import time
from pathlib import Path

from treewright.lean.session.answers import CheckResult, ProofState
from treewright.lean.session.host_session import HostSession
from treewright.orchestrator.goals import statements
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, Place, StrategyType
from treewright.orchestrator.workers.native import NativeWorker
from treewright.orchestrator.workers.worker import Availability, NoProof, require_state

TACTICS = ("rfl", "simp", "simp_all", "omega", "aesop", "norm_num", "ring", "linarith")


class DojoWorker(NativeWorker):
    """Tries the tactics in order until one closes the goal."""

    strategy = StrategyType.DOJO

    def probe_project(self, project: Path) -> Availability:
        """Return that the tactics are available."""
        return Availability(True, f"the tactics of {project.name}")

    def prove_in(self, session: HostSession, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Return the introductions and the first tactic that closes the goal."""
        return attempt(session, goal, deadline)


def attempt(session: HostSession, goal: Goal, deadline: float) -> tuple[str, ...]:
    """Return a script for the goal: its introductions and the first tactic that closes it."""
    if goal.place is not None:
        return (_first_closing(session, _state_in_file(session, goal.place, deadline), deadline),)
    steps = statements.introductions(goal)
    state = require_state(session.start(statements.closed_statement(goal)))
    for step in steps:
        state = require_state(session.run_tactic(state, step))
    return (*steps, _first_closing(session, state, deadline))


def _first_closing(session: HostSession, state: ProofState, deadline: float) -> str:
    """Return the first tactic after which the proof is finished."""
    for tactic in TACTICS:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        result = session.run_tactic(state, tactic, left)
        if isinstance(result, ProofState) and result.complete:
            return tactic
    raise NoProof("no tactic closes the goal")


def _state_in_file(session: HostSession, place: Place, deadline: float) -> ProofState:
    if len(place.holes) != 1:
        raise NoProof("dojo works on declarations with one hole")
    left = max(1.0, deadline - time.monotonic())
    result = session.check(place.source, sorries=True, until=place.declaration, timeout=left)
    if isinstance(result, CheckResult):
        for sorry in result.sorries:
            if (sorry.start, sorry.end) == place.holes[0] and sorry.states:
                return sorry.states[0]
    raise NoProof("Lean does not find the hole")


strategy = Strategy(
    "the tactics of the project's own Lean, one by one",
    30.0,
    lambda tools: DojoWorker(tools.lean.start, tools.lean.choice),
)
