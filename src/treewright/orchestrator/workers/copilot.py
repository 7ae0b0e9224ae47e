"""`copilot`: Lean Copilot's premise selection and proof search, in a project that imports it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from treewright.lean.session.answers import Diagnostic, ProofState, StepResult, TacticError
from treewright.lean.session.host_session import HostSession
from treewright.orchestrator.goals import statements
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.native import NativeWorker
from treewright.orchestrator.workers.worker import Availability, NoProof, require_state

PACKAGE = "LeanCopilot"
PREMISES = ("select_premises (num := 12)", "select_premises")
SEARCH = ("search_proof (beam := 4) (temperature := 0.2)", "search_proof")
"""With arguments, and for versions of Lean Copilot without arguments."""
_TRY_THIS = re.compile(r"Try (?:this|these):\s*(?:\[\w+\]\s*)?(.+)", re.DOTALL)


class CopilotWorker(NativeWorker):
    """Asks Lean Copilot for premises and for a proof."""

    strategy = StrategyType.COPILOT

    def probe_project(self, project: Path) -> Availability:
        """Return whether the project's lakefile or manifest names Lean Copilot."""
        for name in ("lakefile.toml", "lakefile.lean", "lake-manifest.json"):
            path = project / name
            if path.is_file() and PACKAGE in path.read_text(encoding="utf-8", errors="replace"):
                return Availability(True, f"{PACKAGE} in {project.name}")
        detail = f"the project {project.name} does not require {PACKAGE}"
        return Availability(False, detail, "add it with lake")

    def imports(self, goal: Goal) -> tuple[str, ...]:
        """Return the goal's imports and Lean Copilot's."""
        return (*(module for module in goal.imports if module != PACKAGE), PACKAGE)

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Prove a statement; declarations of files are refused before a session is opened."""
        if goal.place is not None:
            raise NoProof("copilot works on statements")
        return super().prove(goal, deadline)

    def prove_in(self, session: HostSession, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Return the script that Lean Copilot found."""
        return search(session, goal, deadline - time.monotonic())


def search(session: HostSession, goal: Goal, timeout: float) -> tuple[str, ...]:
    """Select premises, which help the search, then search; return the script that was found."""
    steps = statements.introductions(goal)
    state = require_state(session.start(statements.closed_statement(goal)))
    if steps:
        state = require_state(session.run_tactic(state, steps[0], timeout))
    _call(session, state, PREMISES, timeout)
    result = _call(session, state, SEARCH, timeout)
    if not isinstance(result, ProofState) or not result.closed:
        raise NoProof("search_proof did not close the goal")
    script = _advice(result.messages)
    if not script:
        raise NoProof("search_proof closed the goal without saying how")
    return (*steps, *script)


def _call(
    session: HostSession, state: ProofState, forms: tuple[str, str], timeout: float
) -> StepResult:
    """Run a tactic of Lean Copilot, without arguments if they are a parse error."""
    result = session.run_tactic(state, forms[0], timeout)
    if isinstance(result, TacticError) and result.kind == "parse":
        return session.run_tactic(state, forms[1], timeout)
    return result


def _advice(messages: Sequence[Diagnostic]) -> tuple[str, ...]:
    """Return the tactics in a `Try this` message."""
    for message in messages:
        if found := _TRY_THIS.search(message.text):
            lines = [line.strip() for line in found[1].strip().splitlines()]
            return tuple(line for line in lines if line)
    return ()


strategy = Strategy(
    "Lean Copilot's select_premises and search_proof",
    20.0,
    lambda tools: CopilotWorker(tools.lean.start, tools.lean.choice),
)
