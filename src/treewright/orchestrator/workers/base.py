"""What a worker is, and what the workers that use Lean share.

`run` never raises for what went wrong with a goal: that is a failed `Result` with its error.
Only a cancellation passes through, at once, and leaves the Lean session warm.
"""

from __future__ import annotations

import abc
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import (
    Cancelled,
    CheckResult,
    ProofState,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.interface import DEFAULT_CHECK_SECONDS, LeanError
from treewright.lean.sorries import from_check
from treewright.orchestrator.goals import statements
from treewright.orchestrator.types import DEFAULT_IMPORTS, Goal, Result
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import waiting


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a strategy can run here, why, and what would make it."""

    available: bool
    detail: str
    hint: str = ""


EXCEPTION = "exception"
UNAVAILABLE = "unavailable"
"""Kinds of failure (`Result.metadata["kind"]`) that say nothing about the goal."""


def failed(strategy: str, error: str, started: float, kind: str = "") -> Result:
    """A failed attempt that began at `started` (of `time.monotonic`)."""
    metadata = {"kind": kind} if kind else {}
    seconds = time.monotonic() - started
    return Result(False, strategy, (), seconds, error=error, metadata=metadata)


class Worker(Protocol):
    """One strategy. `run` claims; the scheduler has every claim checked."""

    @property
    def strategy(self) -> str: ...

    def probe(self) -> Availability: ...

    async def run(self, goal: Goal, timeout: float) -> Result: ...


class Hopeless(Exception):
    """This goal cannot be opened or worked on; the text says why."""


@dataclass(frozen=True, slots=True)
class Hole:
    """States that one script has to close, and the steps already done to reach them."""

    states: tuple[ProofState, ...]
    steps: tuple[str, ...] = ()


class LeanWorker(abc.ABC):
    """Borrows a session, opens the goal, and lets `close_hole` work on each hole in turn.

    The time limit begins when the session is there: waiting for one is not the strategy's.
    """

    strategy: str

    def __init__(self, lean: LeanAccess) -> None:
        self._lean = lean

    def probe(self) -> Availability:
        return Availability(True, f"core tactics on {self._lean.described}")

    @abc.abstractmethod
    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        """The steps that close the hole, or None. `deadline` is of `time.monotonic`."""

    async def run(self, goal: Goal, timeout: float) -> Result:
        started = time.monotonic()
        kind = UNAVAILABLE  # until there is a session
        try:
            async with self._lean.session() as session:
                started, kind = time.monotonic(), EXCEPTION
                async with asyncio.timeout(timeout):
                    tactics = await self._solve(session, goal, started + timeout)
        except TimeoutError:
            return failed(self.strategy, "timeout", started)
        except Hopeless as reason:
            return failed(self.strategy, str(reason), started)
        except Exception as error:
            return failed(self.strategy, f"{type(error).__name__}: {error}", started, kind)
        if tactics is None:
            return failed(self.strategy, "no script of this strategy closes the goal", started)
        return Result(True, self.strategy, tactics, time.monotonic() - started)

    async def _solve(
        self, session: AsyncLeanSession, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        scripts: list[tuple[str, ...]] = []
        await check_goal(self._lean, session, goal)
        for hole in await open_goal(session, goal):
            steps = await self.close_hole(session, hole, goal, deadline)
            if steps is None:
                return None
            scripts.append((*hole.steps, *steps))
        if goal.place is None:
            return scripts[0]
        return tuple("\n".join(steps) for steps in scripts)


async def check_goal(lean: LeanAccess, session: AsyncLeanSession, goal: Goal) -> None:
    """`Hopeless` if the goal's text and context are not a statement and hypotheses."""
    try:
        await lean.check_goal(goal, session)
    except UsageError as error:
        raise Hopeless(str(error)) from None


async def open_goal(session: AsyncLeanSession, goal: Goal) -> list[Hole]:
    """The goal's holes, ready for tactics; `Hopeless` if Lean does not take the statement."""
    if goal.place is not None:
        return await _holes_of_file(session, goal)
    steps = statements.introductions(goal)
    if goal.imports == DEFAULT_IMPORTS and not goal.preamble.strip():
        opened = await session.start(statements.closed_statement(goal))
    else:
        opened = await _only_sorry(session, statements.statement_file(goal))
    if steps and isinstance(opened, ProofState):
        opened = await session.run_tactic(opened, steps[0])
    return [Hole((_state(opened),), steps)]


class ThreadWorker(abc.ABC):
    """A strategy on a library that blocks: it runs in a thread of its own."""

    strategy: str

    async def run(self, goal: Goal, timeout: float) -> Result:
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def work() -> tuple[str, ...]:
            loop.call_soon_threadsafe(begun.set_result, None)
            return self.prove(goal, time.monotonic() + timeout)

        task = asyncio.create_task(asyncio.to_thread(work))
        try:
            with waiting():  # there are only so many threads
                await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
            started = time.monotonic()
            async with asyncio.timeout(timeout):
                tactics = await task
        except TimeoutError:
            return failed(self.strategy, "timeout", started)
        except Hopeless as reason:
            return failed(self.strategy, str(reason), started)
        except Exception as error:
            return failed(self.strategy, f"{type(error).__name__}: {error}", started, EXCEPTION)
        finally:
            task.cancel()
        return Result(True, self.strategy, tactics, time.monotonic() - started)

    @abc.abstractmethod
    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        """The tactics that close the goal; raises Hopeless if there are none."""


def _state(result: StepResult) -> ProofState:
    if isinstance(result, ProofState):
        return result
    if isinstance(result, TacticError):
        raise Hopeless(f"Lean does not take the goal: {result.message.splitlines()[0]}")
    raise unfinished(result)


def unfinished(result: Timeout | Cancelled | SessionLost) -> Exception:
    """What to raise where Lean did not come to an end; unlike `Hopeless`, no word on the goal."""
    if isinstance(result, SessionLost):
        return LeanError(f"Lean ended: {result.reason}")
    return TimeoutError()


async def _only_sorry(session: AsyncLeanSession, source: str) -> StepResult:
    result = await session.check(source, sorries=True, timeout=DEFAULT_CHECK_SECONDS)
    if not isinstance(result, CheckResult):
        return result
    if result.errors or result.stopped or not result.sorries:
        text = result.errors[0].text if result.errors else result.stopped
        return TacticError(text or "the statement did not elaborate", "statement")
    return result.sorries[-1].states[0]


async def _holes_of_file(session: AsyncLeanSession, goal: Goal) -> list[Hole]:
    assert goal.place is not None
    result = await session.check(
        goal.place.source,
        sorries=True,
        until=goal.place.declaration,
        timeout=DEFAULT_CHECK_SECONDS,
    )
    if not isinstance(result, CheckResult):
        raise unfinished(result)
    found = {(s.start, s.end): s for s in from_check(goal.place.source, result)}
    try:
        return [Hole(found[hole].states) for hole in goal.place.holes]
    except KeyError:
        raise Hopeless("the file has no `sorry` there any more") from None


async def run_on_all(
    session: AsyncLeanSession, states: Sequence[ProofState], tactic: str, timeout: float
) -> tuple[ProofState, ...] | None:
    """What a tactic leaves of each state; None as soon as one of them refuses it."""
    after: list[ProofState] = []
    for state in states:
        result = await session.run_tactic(state, tactic, timeout)
        if isinstance(result, SessionLost):
            raise unfinished(result)
        if not isinstance(result, ProofState):
            return None
        after.append(result)
    return tuple(after)
