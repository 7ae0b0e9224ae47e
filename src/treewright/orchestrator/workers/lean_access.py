"""The Lean processes of a scheduler: a bounded number of sessions, and the replay check.

At most `sessions` Lean processes try tactics, for any number of active goals. One more process,
started when it is first needed, runs the replay check, which alone decides what is proved.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from treewright.lean.choice import BUNDLED_VERSION, Choice, open_project
from treewright.lean.hosts.host import Host
from treewright.lean.hosts.native.toolchain import find_project
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.processes import LeanProcesses, SessionLimits
from treewright.lean.project.project import Announce, Project
from treewright.lean.project.workspace import by_written_imports
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.errors import LeanError
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.goals import statements
from treewright.orchestrator.types import Goal
from treewright.orchestrator.workers.meter import current_meter, metered, waiting

TOOLCHAIN = f"wasm-{BUNDLED_VERSION}"
"""The name of the bundled Lean in the ledger."""

HostOpener = Callable[[], Host]


class LeanAccess:
    """Lends Lean sessions and runs the replay check; processes start when they are first needed.

    Args:
        sessions: The largest number of Lean processes that try tactics.
        open_host: Opens the Lean; by default the bundled one.
        toolchain: The name of the Lean in the ledger.
        start: A file or directory of the Lake project to use, if any.
        announce: Called with a line about the project, such as that it is compiled.
        choice: The Lean that `open_host` opens, for strategies that start a toolchain themselves.
    """

    def __init__(
        self,
        sessions: int = 2,
        open_host: HostOpener | None = None,
        toolchain: str = TOOLCHAIN,
        *,
        start: Path | None = None,
        announce: Announce = lambda text: None,
        choice: Choice | None = None,
    ) -> None:
        if sessions < 1:
            raise ValueError("at least one Lean session is needed")
        self._sessions = sessions
        self.start = start
        self.choice = choice
        self._announce = announce
        self._project: Project | None = None
        self._searched = False
        self._open_host = open_host or ensure_installed
        self.toolchain = toolchain
        self._lean: LeanProcesses | None = None
        self._opening = threading.Lock()
        self._closed = False
        self._finding = threading.Lock()
        self._well_formed: set[tuple[object, ...]] = set()
        self._checks = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replay")

    @property
    def description(self) -> str:
        """The Lean and the modules that it has, in words."""
        project = find_project(self.start) if self.start is not None else None
        if self.choice is not None and self.choice.backend == "native":
            return "the project's own Lean" if project else "a Lean toolchain"
        if project is None:
            return "the bundled Lean"
        return f"the bundled Lean, with the modules of {project.name}"

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncLeanSession]:
        """Lend a session; wait while all sessions are lent.

        The session's CPU time and the waiting time are added to the current meter.
        """
        async with contextlib.AsyncExitStack() as stack:
            with waiting():
                lean = await asyncio.to_thread(self._open_lean)
                session = await stack.enter_async_context(lean.async_session())
            with metered(session.pid):
                yield session

    def _open_lean(self) -> LeanProcesses:
        with self._opening:
            if self._lean is None:
                host = self._open_host()
                limits = SessionLimits(sessions=self._sessions)
                self._lean = LeanProcesses(host, self._find_project(), limits=limits)
            return self._lean

    def _find_project(self) -> Project | None:
        with self._finding:
            if not self._searched and self.start is not None and self.toolchain == TOOLCHAIN:
                self._project = open_project(self.start, self._announce)
            self._searched = True
            return self._project

    async def sort_by_imports(self, paths: Sequence[Path]) -> list[Path]:
        """Return the files in an order in which each comes after the files that it imports."""
        project = await asyncio.to_thread(self._find_project)
        if project is not None:
            return await asyncio.to_thread(project.ordered, paths)
        return by_written_imports(self.start, paths) if self.start is not None else list(paths)

    async def refresh(self) -> None:
        """Read the project again if one of its modules was edited; lent sessions stay valid."""
        project = self._project
        if project is not None and await asyncio.to_thread(project.changed):
            self._searched, self._project = False, None
            lean, self._lean = self._lean, None
            if lean is not None:
                await asyncio.to_thread(lean.close)

    async def check_goal(self, goal: Goal, session: AsyncLeanSession | None = None) -> None:
        """Raise a `UsageError` if the goal's text and context are not a statement and hypotheses.

        Each goal is checked once, in the given session or in one that is borrowed for it.
        """
        pieces = (goal.text, goal.context, goal.imports, goal.preamble)
        if goal.place is not None or pieces in self._well_formed:
            return
        if session is None:
            async with self.session() as session:
                await session.run(lambda parser: statements.check_statement(parser, goal))
        else:
            await session.run(lambda parser: statements.check_statement(parser, goal))
        self._well_formed.add(pieces)

    async def verify(self, goal: Goal, tactics: Sequence[str], timeout: float) -> Verdict:
        """Return the replay check's verdict on a claim. Cancelling does not interrupt the check."""
        await self.check_goal(goal)
        if goal.place is not None:
            original, candidate = statements.fill_holes(goal.place, tactics)
            return await self.check_text(original, candidate, [goal.place.declaration], timeout)
        return await self._check(
            lambda replayer: replayer.theorem(
                statements.closed_statement(goal),
                "\n".join(tactics),
                imports=goal.imports,
                preamble=goal.preamble,
                timeout=timeout,
            )
        )

    async def check_text(
        self, original: str, candidate: str, targets: Sequence[str], timeout: float
    ) -> Verdict:
        """Return the replay check's verdict on a whole text."""
        return await self._check(
            lambda replayer: replayer.text(original, candidate, targets, timeout=timeout)
        )

    async def _check(self, work: Callable[[Replayer], Verdict]) -> Verdict:
        loop = asyncio.get_running_loop()
        asked = time.monotonic()

        def check() -> tuple[float, Verdict]:
            waited = time.monotonic() - asked
            if self._closed:
                raise LeanError("the Lean processes are being ended")
            return waited, work(self._open_lean().replayer)

        waited, verdict = await loop.run_in_executor(self._checks, check)
        if (meter := current_meter.get()) is not None:
            meter.add_wait(waited)
        return verdict

    async def close(self) -> None:
        """End every Lean process."""
        self._closed = True
        lean, self._lean = self._lean, None
        if lean is not None:
            await asyncio.to_thread(lean.replayer.close)  # a running check ends as lost
        await asyncio.to_thread(self._checks.shutdown, cancel_futures=True)
        if lean is not None:
            await asyncio.to_thread(lean.close)
