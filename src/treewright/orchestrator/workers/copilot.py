"""`copilot`: Lean Copilot's premise selection and proof search, in a project that imports it.

It runs in the project's own toolchain. Its proofs go through the replay check like all others,
which the bundled Lean can do only for goals that need nothing but core Lean.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Sequence
from pathlib import Path

from treewright.lean.backend import find_lake, find_project
from treewright.lean.session import LeanSession
from treewright.lean.types import Diagnostic, ProofState, StepResult, TacticError
from treewright.orchestrator.goals import statements
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.base import Availability, Hopeless, ThreadWorker

PACKAGE = "LeanCopilot"
PREMISES = "select_premises"
SEARCH = "search_proof"
_TRY_THIS = re.compile(r"Try (?:this|these):\s*(?:\[\w+\]\s*)?(.+)", re.DOTALL)


class CopilotWorker(ThreadWorker):
    def __init__(self, start: Path | None = None) -> None:
        self._start = start or Path.cwd()

    strategy = StrategyType.COPILOT

    def probe(self) -> Availability:
        project = native_project(self._start)
        if isinstance(project, Availability):
            return project
        if not requires(project, PACKAGE):
            return Availability(
                False, f"the project {project.name} does not require {PACKAGE}", "add it with lake"
            )
        return Availability(True, f"{PACKAGE} in {project.name}")

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        from treewright.lean.native.session import open_native

        project = native_project(self._start)
        if isinstance(project, Availability):
            raise Hopeless(project.detail)
        if goal.place is not None:
            raise Hopeless("copilot works on statements")
        session = open_native(project, imports_for(goal), goal.preamble)
        try:
            return search(session, goal, deadline - time.monotonic())
        finally:
            session.close()


def imports_for(goal: Goal) -> tuple[str, ...]:
    """The goal's imports, and Lean Copilot itself."""
    return (*(module for module in goal.imports if module != PACKAGE), PACKAGE)


def search(session: LeanSession, goal: Goal, timeout: float) -> tuple[str, ...]:
    """Selects premises (its messages help the search), then lets it search; the script found."""
    steps = statements.introductions(goal)
    state = _state(session.start(statements.closed_statement(goal)))
    if steps:
        state = _state(session.run_tactic(state, steps[0], timeout))
    session.run_tactic(state, PREMISES, timeout)
    result = session.run_tactic(state, SEARCH, timeout)
    if not isinstance(result, ProofState) or not result.closed:
        raise Hopeless(f"{SEARCH} did not close the goal")
    script = advice(result.messages)
    if not script:
        raise Hopeless(f"{SEARCH} closed the goal without saying how")
    return (*steps, *script)


def advice(messages: Sequence[Diagnostic]) -> tuple[str, ...]:
    """The tactics that a search says to write in its place."""
    for message in messages:
        if found := _TRY_THIS.search(message.text):
            lines = [line.strip() for line in found[1].strip().splitlines()]
            return tuple(line for line in lines if line)
    return ()


def _state(result: StepResult) -> ProofState:
    if isinstance(result, ProofState):
        return result
    detail = result.message if isinstance(result, TacticError) else str(result)
    raise Hopeless(f"Lean does not take the goal: {detail.splitlines()[0]}")


def native_project(start: Path) -> Path | Availability:
    """The Lake project around `start`, or why there is none that could be used."""
    project = find_project(start)
    if project is None:
        return Availability(False, "not inside a Lake project", "run it inside your Lake project")
    if find_lake() is None:
        return Availability(False, "no Lean toolchain is installed", "install elan")
    if importlib.util.find_spec("lean_interact") is None:
        return Availability(
            False, "lean-interact is not installed", "pip install 'treewright[lean-native]'"
        )
    return project


def requires(project: Path, package: str) -> bool:
    """Whether a project's lakefile or manifest names a package."""
    return any(
        package in (project / name).read_text(encoding="utf-8", errors="replace")
        for name in ("lakefile.toml", "lakefile.lean", "lake-manifest.json")
        if (project / name).is_file()
    )
