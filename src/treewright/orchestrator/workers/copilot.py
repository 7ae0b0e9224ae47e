"""`copilot`: Lean Copilot's premise selection and proof search, in a project that imports it.

It runs in the project's own toolchain. Its proofs go through the replay check like all others; the
bundled Lean can replay only goals that need core Lean alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.choice import Choice
from treewright.lean.hosts.native.host import NativeHost, native_host
from treewright.lean.hosts.native.toolchain import find_project, find_toolchain, too_old
from treewright.lean.session.answers import Diagnostic, ProofState, StepResult, TacticError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanSession
from treewright.orchestrator.goals import statements
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.base import Availability, NoProof, ThreadWorker

PACKAGE = "LeanCopilot"
PREMISES = ("select_premises (num := 12)", "select_premises")
SEARCH = ("search_proof (beam := 4) (temperature := 0.2)", "search_proof")
"""With arguments, and for versions of Lean Copilot without arguments."""
_TRY_THIS = re.compile(r"Try (?:this|these):\s*(?:\[\w+\]\s*)?(.+)", re.DOTALL)


class CopilotWorker(ThreadWorker):
    def __init__(self, start: Path | None = None, choice: Choice | None = None) -> None:
        self._start = start or Path.cwd()
        self._choice = choice

    strategy = StrategyType.COPILOT

    def probe(self) -> Availability:
        project = native_project(self._start, self._choice)
        if isinstance(project, Availability):
            return project
        if not requires(project, PACKAGE):
            return Availability(
                False, f"the project {project.name} does not require {PACKAGE}", "add it with lake"
            )
        return Availability(True, f"{PACKAGE} in {project.name}")

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        project = native_project(self._start, self._choice)
        if isinstance(project, Availability):
            raise NoProof(project.detail)
        if goal.place is not None:
            raise NoProof("copilot works on statements")
        try:
            host = own_lean(project, self._choice)
            session = HostSession(host, imports_for(goal), goal.preamble)
        except TreewrightError as error:
            raise NoProof(str(error)) from error
        with session:
            return search(session, goal, deadline - time.monotonic())


def imports_for(goal: Goal) -> tuple[str, ...]:
    """Return the goal's imports and Lean Copilot's."""
    return (*(module for module in goal.imports if module != PACKAGE), PACKAGE)


def search(session: LeanSession, goal: Goal, timeout: float) -> tuple[str, ...]:
    """Select premises, which help the search, then search; return the script that was found."""
    steps = statements.introductions(goal)
    state = _state(session.start(statements.closed_statement(goal)))
    if steps:
        state = _state(session.run_tactic(state, steps[0], timeout))
    _call(session, state, PREMISES, timeout)
    result = _call(session, state, SEARCH, timeout)
    if not isinstance(result, ProofState) or not result.closed:
        raise NoProof("search_proof did not close the goal")
    script = advice(result.messages)
    if not script:
        raise NoProof("search_proof closed the goal without saying how")
    return (*steps, *script)


def _call(
    session: LeanSession, state: ProofState, forms: tuple[str, str], timeout: float
) -> StepResult:
    """Run a tactic of Lean Copilot, without arguments if they are a parse error."""
    result = session.run_tactic(state, forms[0], timeout)
    if isinstance(result, TacticError) and result.kind == "parse":
        return session.run_tactic(state, forms[1], timeout)
    return result


def advice(messages: Sequence[Diagnostic]) -> tuple[str, ...]:
    """Return the tactics in a `Try this` message."""
    for message in messages:
        if found := _TRY_THIS.search(message.text):
            lines = [line.strip() for line in found[1].strip().splitlines()]
            return tuple(line for line in lines if line)
    return ()


def _state(result: StepResult) -> ProofState:
    if isinstance(result, ProofState):
        return result
    detail = result.message if isinstance(result, TacticError) else str(result)
    raise NoProof(f"Lean does not take the goal: {detail.splitlines()[0]}")


def native_project(start: Path, choice: Choice | None = None) -> Path | Availability:
    """Return the Lake project around `start`, or the reason why it cannot be used."""
    project = find_project(start)
    if project is None:
        return Availability(False, "not inside a Lake project", "run it inside your Lake project")
    toolchain = find_toolchain(project)
    if isinstance(toolchain, str):
        return Availability(False, toolchain, "install elan, then run lake build once")
    if problem := too_old(toolchain):
        return Availability(False, problem, "use a newer lean-toolchain")
    if choice is not None and choice.backend == "wasm":
        detail = f"it needs the project's own toolchain, and the Lean of this run is {choice}"
        return Availability(False, detail, "run it here with --lean native")
    return project


def own_lean(project: Path, choice: Choice | None) -> NativeHost:
    """Open the project's own toolchain, in a sandbox if the user asked for one."""
    return native_host(project, sandbox=choice is not None and choice.sandbox)


def requires(project: Path, package: str) -> bool:
    """Return whether a project's lakefile or manifest names a package."""
    return any(
        package in (project / name).read_text(encoding="utf-8", errors="replace")
        for name in ("lakefile.toml", "lakefile.lean", "lake-manifest.json")
        if (project / name).is_file()
    )


strategy = Strategy(
    "Lean Copilot's select_premises and search_proof",
    20.0,
    lambda tools: CopilotWorker(tools.lean.start, tools.lean.choice),
)
