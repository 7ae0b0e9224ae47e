"""Strategies on the project's own Lean toolchain, each in a separate thread.

Their proofs go through the replay check like all others; the bundled Lean can replay only goals
that need core Lean alone.
"""

from __future__ import annotations

import abc
import asyncio
import time
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.choice import Choice
from treewright.lean.hosts.native.host import native_host
from treewright.lean.hosts.native.toolchain import find_project, find_toolchain, too_old
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.host_session import HostSession
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.meter import waiting
from treewright.orchestrator.workers.worker import Availability, NoProof, failed_by


class ThreadWorker(abc.ABC):
    """A strategy on a library that blocks; it runs in a separate thread."""

    strategy: str

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Try the goal in a thread; waiting for a free thread does not count."""
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def work() -> tuple[str, ...]:
            loop.call_soon_threadsafe(begun.set_result, None)
            return self.prove(goal, time.monotonic() + timeout)

        task = asyncio.create_task(asyncio.to_thread(work))
        try:
            with waiting():  # for a free thread
                await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
            started = time.monotonic()
            async with asyncio.timeout(timeout):
                tactics = await task
        except Exception as error:
            return failed_by(error, self.strategy, started)
        finally:
            task.cancel()
        return Result(True, self.strategy, tactics, time.monotonic() - started)

    @abc.abstractmethod
    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Return the tactics that close the goal; raise `NoProof` if there are none."""


class NativeWorker(ThreadWorker):
    """A strategy in the Lake project around `start`, in a sandbox if `choice` asks for one."""

    def __init__(self, start: Path | None = None, choice: Choice | None = None) -> None:
        self._start = start or Path.cwd()
        self._choice = choice

    @abc.abstractmethod
    def probe_project(self, project: Path) -> Availability:
        """Return whether the strategy can run in this project."""

    @abc.abstractmethod
    def prove_in(self, session: HostSession, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Return the tactics that close the goal; raise `NoProof` if there are none."""

    def imports(self, goal: Goal) -> tuple[str, ...]:
        """Return the modules that the session imports."""
        return goal.imports

    def probe(self) -> Availability:
        """Return whether the project and its toolchain can be used."""
        project = self._find_project()
        return project if isinstance(project, Availability) else self.probe_project(project)

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        """Prove the goal in a new session, which ends with the attempt."""
        project = self._find_project()
        if isinstance(project, Availability):
            raise NoProof(project.detail)
        try:
            host = native_host(project, sandbox=self._choice is not None and self._choice.sandbox)
            lean = LeanProcesses(host)
            session = lean.new_session(self.imports(goal), goal.preamble)
        except TreewrightError as error:
            raise NoProof(str(error)) from error
        with lean:
            return self.prove_in(session, goal, deadline)

    def _find_project(self) -> Path | Availability:
        """Return the Lake project, or the reason why it cannot be used."""
        project = find_project(self._start)
        if project is None:
            return Availability(
                False, "not inside a Lake project", "run it inside your Lake project"
            )
        toolchain = find_toolchain(project)
        if isinstance(toolchain, str):
            return Availability(False, toolchain, "install elan, then run lake build once")
        if problem := too_old(toolchain):
            return Availability(False, problem, "use a newer lean-toolchain")
        if self._choice is not None and self._choice.backend == "wasm":
            detail = (
                f"it needs the project's own toolchain, and the Lean of this run is {self._choice}"
            )
            return Availability(False, detail, "run it here with --lean native")
        return project
