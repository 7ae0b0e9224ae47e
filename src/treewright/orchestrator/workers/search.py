"""`search`: the centralized proof search of `treewright prove`, with core Lean's tactics."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from treewright.lean.session.answers import CheckResult, ProofState
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.errors import LeanError
from treewright.lean.session.host_session import HostSession
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.meter import Meter, current_meter
from treewright.orchestrator.workers.worker import Availability, Hole, LeanWorker, NoProof
from treewright.proving.environment import LeanEnvironment
from treewright.proving.expansion import Expander
from treewright.proving.script import extraction
from treewright.proving.search import make_expander, make_runner
from treewright.proving.settings import Settings, SourceSettings
from treewright.proving.tactics.exclusion import find_named
from treewright.proving.tactics.factory import build_source, open_library_search
from treewright.search.andor.graph import Status

STEP_SECONDS = 2.0
MAX_SIMULATIONS = 2000
_NO_LIMIT = 1 << 62
"""No limit of the heap: the pool replaces sessions that use much memory."""


class SearchWorker(LeanWorker):
    """Runs the centralized search in the borrowed session."""

    strategy = StrategyType.SEARCH

    def probe(self) -> Availability:
        """Return that the search is available with the Lean of this run."""
        return Availability(True, f"proof search on {self._lean.description}")

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        if len(hole.states) != 1:
            raise NoProof("one script for several goals is not searched for")
        stop = threading.Event()
        meter = current_meter.get() or Meter()
        return await session.run(
            lambda blocking: _search(blocking, hole.states[0], goal, deadline, stop, meter), stop
        )


def _search(
    session: HostSession,
    state: ProofState,
    goal: Goal,
    deadline: float,
    stop: threading.Event,
    meter: Meter,
) -> tuple[str, ...] | None:
    """Return steps that close the goal, or None.

    Steps that use an open lemma of the goal's file would be refused. The rest of the time is then
    spent on a second search without the open lemmas.
    """
    steps = _once(session, state, deadline, stop, meter)
    if steps is None or goal.place is None:
        return steps
    text = goal.place.source
    if text.count("sorry") + text.count("admit") <= len(goal.place.holes):
        return steps  # the file has no other open lemmas
    result = session.check(goal.place.source)
    names = result.unproved if isinstance(result, CheckResult) else ()
    names = tuple(name for name in names if name != goal.place.declaration)
    if not find_named("\n".join(steps), names):
        return steps
    return _once(session, state, deadline, stop, meter, names) or steps


def _once(
    session: HostSession,
    state: ProofState,
    deadline: float,
    stop: threading.Event,
    meter: Meter,
    without: Sequence[str] = (),
) -> tuple[str, ...] | None:
    """Search until the goal is closed, all tactics were tried, or the time is over."""
    sources = SourceSettings(known=True, learned=meter.given)
    settings = Settings(mode="centralized", step_timeout=STEP_SECONDS, sources=sources)
    borrowed = _Borrowed(session, deadline, stop)
    environment = LeanEnvironment(
        borrowed.open, lambda _: state, step_seconds=STEP_SECONDS, heap_limit=_NO_LIMIT
    )
    expander: Expander | None = None
    try:
        with open_library_search() as library:
            source = build_source(settings, library=library)
            expander = make_expander(
                settings,
                environment,
                source,
                lambda node, number: None,
                keeps_tries=True,
                without=without,
            )
            runner = make_runner(settings, expander)
            for _ in range(MAX_SIMULATIONS):
                if runner.finished:
                    break
                runner.step()
    except _OutOfTime:
        return None
    except _LeanEnded:
        raise LeanError("Lean ended during the search") from None
    finally:
        if expander is not None:
            meter.lessons += expander.lessons()
    root = runner.tree.root
    if root.status is not Status.SOLVED:
        return None
    return tuple(extraction.render(extraction.extract(root)).splitlines())


class _OutOfTime(Exception):
    """The time of the search is over."""


class _LeanEnded(Exception):
    """The borrowed session is lost. Not a `LeanError`, because a search continues after those."""


class _Borrowed:
    """A session of the pool for a search, which checks the time before each step."""

    def __init__(self, session: HostSession, deadline: float, stop: threading.Event) -> None:
        self._session = session
        self._deadline = deadline
        self._stop = stop
        self._opened = False

    def open(self) -> Any:
        if self._opened:
            raise _LeanEnded
        self._opened = True
        return self

    def run_tactic(self, state: ProofState | int, text: str, timeout: float) -> Any:
        left = self._deadline - time.monotonic()
        if left <= 0 or self._stop.is_set():
            raise _OutOfTime
        return self._session.run_tactic(state, text, min(timeout, left))

    def close(self) -> None:
        """Do nothing: the session belongs to the pool."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


strategy = Strategy(
    "the proof search, centralized, with core tactics", 30.0, lambda tools: SearchWorker(tools.lean)
)
