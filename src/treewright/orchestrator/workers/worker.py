"""The interface of a worker, and the base classes of workers that use Lean or a thread.

`run` reports every failure on a goal as a failed `Result` with its error. Only a cancellation is
raised; it ends the attempt at once and keeps the Lean session running.
"""

from __future__ import annotations

import abc
import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

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
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS, LeanError
from treewright.lean.sorries import from_check
from treewright.orchestrator.goals import statements
from treewright.orchestrator.types import DEFAULT_IMPORTS, Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a strategy can run here, the reason, and a hint how to make it available."""

    available: bool
    detail: str
    hint: str = ""


EXCEPTION = "exception"
UNAVAILABLE = "unavailable"
"""Kinds of failure (`Result.metadata["kind"]`) that are no verdict on the goal."""


def failed(strategy: str, error: str, started: float, kind: str = "") -> Result:
    """Return the result of a failed attempt that began at `started` (of `time.monotonic`)."""
    metadata = {"kind": kind} if kind else {}
    seconds = time.monotonic() - started
    return Result(False, strategy, (), seconds, error=error, metadata=metadata)


class NoProof(Exception):
    """The strategy has no proof of this goal, or cannot work on it; the text is the reason."""


def failed_by(error: Exception, strategy: str, started: float, kind: str = EXCEPTION) -> Result:
    """Return the result of an attempt that an exception ended.

    A `TimeoutError` and a `NoProof` are verdicts; `kind` is the kind of any other failure.
    """
    if isinstance(error, TimeoutError):
        return failed(strategy, "timeout", started)
    if isinstance(error, NoProof):
        return failed(strategy, str(error), started)
    return failed(strategy, f"{type(error).__name__}: {error}", started, kind)


class SimpleWorker(Protocol):
    """The least that an object needs to be a worker."""

    @property
    def strategy(self) -> str: ...

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Try the goal for `timeout` seconds. The scheduler has a reported success checked."""
        ...


class Worker(SimpleWorker, Protocol):
    """One strategy."""

    def probe(self) -> Availability:
        """Return whether the strategy can run here. No process or request is started."""
        ...


RunFunction: TypeAlias = Callable[[Goal, float], Awaitable[Result]]
WorkerLike: TypeAlias = Worker | SimpleWorker | RunFunction
"""A worker as a caller of the scheduler may give it."""

_PREFIX = "run_"
_FORMS = "give `async def run_<strategy>(goal, timeout)` or an object with `strategy` and `run`"


@dataclass(frozen=True, slots=True)
class _GivenWorker:
    """A worker made of a function, or of an object without a probe."""

    strategy: str
    run: RunFunction

    def probe(self) -> Availability:
        return Availability(True, "given by the caller")


def as_workers(given: Iterable[WorkerLike]) -> list[Worker]:
    """Return the workers that a caller gives as functions or objects.

    Raises:
        UsageError: A worker is of neither form, or two workers have the same strategy.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError("workers takes a list of workers: write [...] around the worker")
    workers: dict[str, Worker] = {}
    for each in given:
        worker = _as_worker(each)
        if worker.strategy in workers:
            raise UsageError(
                f"two workers have the strategy {str(worker.strategy)!r}; give one of them"
            )
        workers[worker.strategy] = worker
    return list(workers.values())


def _as_worker(given: Any) -> Worker:
    if inspect.isclass(given):
        raise UsageError(f"{given.__name__} is a class, not a worker: give an instance of it")
    if inspect.isroutine(given):
        name = given.__name__
        strategy, run = name.removeprefix(_PREFIX), given
        if strategy == name or not strategy:
            raise UsageError(f"the function {name} is no worker: {_FORMS}")
    elif hasattr(given, "strategy") and hasattr(given, "run"):
        strategy, run = given.strategy, given.run
        name = f"{type(given).__name__}.run"
    else:
        raise UsageError(f"an object of type {type(given).__name__} is no worker: {_FORMS}")
    if not isinstance(strategy, str) or strategy in ("", StrategyType.CACHE):
        raise UsageError(
            f"the strategy of {name} cannot be {str(strategy)!r}: give it another name"
        )
    if inspect.isroutine(run) and not inspect.iscoroutinefunction(run):
        raise UsageError(f"{name} must be an `async def`")
    try:
        inspect.signature(run).bind(None, 0.0)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must take a goal and a timeout") from None
    if hasattr(given, "probe"):
        return cast("Worker", given)
    return cast("Worker", _GivenWorker(strategy, run))


@dataclass(frozen=True, slots=True)
class Hole:
    """The proof states that one script has to close, and the steps that led to them."""

    states: tuple[ProofState, ...]
    steps: tuple[str, ...] = ()


class LeanWorker(abc.ABC):
    """A strategy that borrows a Lean session, opens the goal, and closes its holes in turn.

    The time limit begins when the session is borrowed; waiting for a session does not count.
    """

    strategy: str

    def __init__(self, lean: LeanAccess) -> None:
        self._lean = lean

    def probe(self) -> Availability:
        """Return that core tactics are available with the Lean of this run."""
        return Availability(True, f"core tactics on {self._lean.description}")

    @abc.abstractmethod
    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        """Return the steps that close the hole, or None. `deadline` is of `time.monotonic`."""

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Try the goal in a borrowed session."""
        started = time.monotonic()
        kind = UNAVAILABLE  # until a session is borrowed
        try:
            async with self._lean.session() as session:
                started, kind = time.monotonic(), EXCEPTION
                async with asyncio.timeout(timeout):
                    tactics = await self._solve(session, goal, started + timeout)
        except Exception as error:
            return failed_by(error, self.strategy, started, kind)
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
    """Raise `NoProof` if the goal's text and context are not a statement and hypotheses."""
    try:
        await lean.check_goal(goal, session)
    except UsageError as error:
        raise NoProof(str(error)) from None


async def open_goal(session: AsyncLeanSession, goal: Goal) -> list[Hole]:
    """Return the goal's holes, ready for tactics; raise `NoProof` if Lean refuses the goal."""
    if goal.place is not None:
        result = await session.check(
            goal.place.source,
            sorries=True,
            until=goal.place.declaration,
            timeout=DEFAULT_CHECK_SECONDS,
        )
        if not isinstance(result, CheckResult):
            raise interruption(result)
        found = {(s.start, s.end): s for s in from_check(goal.place.source, result)}
        try:
            return [Hole(found[hole].states) for hole in goal.place.holes]
        except KeyError:
            raise NoProof("the file has no `sorry` there any more") from None
    if goal.imports == DEFAULT_IMPORTS and not goal.preamble.strip():
        state = require_state(await session.start(statements.closed_statement(goal)))
    else:
        source = statements.statement_file(goal)
        result = await session.check(source, sorries=True, timeout=DEFAULT_CHECK_SECONDS)
        if not isinstance(result, CheckResult):
            raise interruption(result)
        if result.errors or result.stopped or not result.sorries:
            text = result.errors[0].text if result.errors else result.stopped
            raise _refusal(text or "the statement did not elaborate")
        state = result.sorries[-1].states[0]
    steps = statements.introductions(goal)
    if steps:
        state = require_state(await session.run_tactic(state, steps[0]))
    return [Hole((state,), steps)]


def require_state(result: StepResult) -> ProofState:
    """Return the state in which a goal begins; raise `NoProof` if Lean refuses the goal."""
    if isinstance(result, ProofState):
        return result
    if isinstance(result, TacticError):
        raise _refusal(result.message)
    raise interruption(result)


def _refusal(message: str) -> NoProof:
    return NoProof(f"Lean does not take the goal: {message.splitlines()[0]}")


def interruption(result: Timeout | Cancelled | SessionLost) -> Exception:
    """Return the exception for an interrupted Lean; unlike `NoProof`, it is no verdict."""
    if isinstance(result, SessionLost):
        return LeanError(f"Lean ended: {result.reason}")
    return TimeoutError()


async def run_on_all(
    session: AsyncLeanSession, states: Sequence[ProofState], tactic: str, timeout: float
) -> tuple[ProofState, ...] | None:
    """Return each state after a tactic, or None if the tactic fails on one of them."""
    after: list[ProofState] = []
    for state in states:
        result = await session.run_tactic(state, tactic, timeout)
        if isinstance(result, SessionLost):
            raise interruption(result)
        if not isinstance(result, ProofState):
            return None
        after.append(result)
    return tuple(after)


def key_of_states(states: Sequence[ProofState]) -> str:
    """Return a key that is equal for equal states."""
    return " ".join(state.hash for state in states)
