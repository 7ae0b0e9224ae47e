"""Running attempts: alone or as a race, with the replay check of claims and a record of each.

In a race the first success that the replay check accepts wins. The other attempts are cancelled;
the ledger records their CPU time, but a cancelled attempt says nothing about its strategy.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.bandit import Bandit
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.attempts import TRIALS, Attempt, Status
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.attempt import AttemptRequest
from treewright.orchestrator.workers.meter import Meter, current_meter
from treewright.orchestrator.workers.worker import EXCEPTION, UNAVAILABLE
from treewright.proving.learning import Lesson

RunRequest = Callable[[AttemptRequest, Meter], Awaitable[Result]]
"""Runs an attempt on some executor and charges the meter with its usage."""
Verify = Callable[[Goal, Sequence[str], float], Awaitable[Verdict]]
VERIFY_SECONDS = 120.0
_STATUSES_WITH_LESSONS = TRIALS - {"rejected"}
"""Attempts with these statuses give lessons. A rejected script gives none, because it may have
closed goals by forbidden means."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run that attempts belong to, and the lessons that its searches are given."""

    run_id: str
    toolchain: str
    lessons: tuple[Lesson, ...] = ()


class AttemptRunner:
    """Runs the attempts of one run. Every result that it returns is recorded already."""

    def __init__(
        self,
        config: OrchestratorConfig,
        run_request: RunRequest,
        verify: Verify,
        ledger: Ledger,
        bandit: Bandit,
        run: RunContext,
    ) -> None:
        self._config = config
        self._run_request = run_request
        self._verify = verify
        self._bandit = bandit
        self._run = run
        self._ledger = ledger
        self._unwritten: list[Attempt] = []
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._numbers: Counter[str] = Counter()
        """The highest number of each kind of attempt that the run has recorded so far."""
        for row in ledger.query("SELECT attempt_key FROM attempts WHERE run_id = ?", [run.run_id]):
            stem, _, number = row["attempt_key"].rpartition("/")
            if number.isdecimal():
                self._numbers[stem] = max(self._numbers[stem], int(number))
        self.wasted_cpu_seconds = 0.0
        self.proved: set[str] = set()
        """Ids of goals with a proof that the replay check accepted in this process."""

    def close(self) -> None:
        """Return when every attempt is written."""
        self._writer.shutdown()

    async def race(self, goal: Goal, strategies: Sequence[str]) -> list[Result]:
        """Try strategies at the same time; if one wins, its result is the last of the list."""
        pending = {asyncio.create_task(self.attempt(goal, strategy)) for strategy in strategies}
        results: list[Result] = []
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                results += sorted((task.result() for task in done), key=lambda r: r.success)
                if results[-1].success:
                    break
        finally:
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)
        return results

    async def attempt(self, goal: Goal, strategy: str) -> Result:
        """Try one strategy on one goal, check its claim, and record the attempt."""
        budget = self._config.timeout(strategy)
        request = AttemptRequest(goal, strategy, budget, self._run.lessons)
        return await self._record_run(request, lambda meter: self._run_request(request, meter))

    async def check_cached(self, goal: Goal, tactics: Sequence[str]) -> Result:
        """Check the tactics that closed an equal goal before, and record the attempt."""

        async def claim(meter: Meter) -> Result:
            return Result(True, StrategyType.CACHE, tuple(tactics))

        budget = self._config.timeout(StrategyType.CACHE)
        return await self._record_run(AttemptRequest(goal, StrategyType.CACHE, budget), claim)

    async def check_stored_proof(self, goal: Goal, tactics: Sequence[str]) -> Verdict:
        """Return the replay check's verdict on a proof that an earlier process recorded."""
        try:
            verdict = await self._verify(goal, tactics, VERIFY_SECONDS)
        except UsageError as error:
            return Verdict("original", str(error))
        except TreewrightError as error:
            return Verdict("lost", str(error))
        if verdict.proved:
            self.proved.add(goal.id)
        return verdict

    async def _record_run(
        self, request: AttemptRequest, work: Callable[[Meter], Awaitable[Result]]
    ) -> Result:
        """Run an attempt, have its claim checked, and return when it is recorded."""
        goal, strategy = request.goal, request.strategy
        meter = Meter()
        current_meter.set(meter)
        key = self._next_key(request)
        started = time.monotonic()
        try:
            result = msgspec.structs.replace(await work(meter), strategy=strategy)
            result, status = await self._check(goal, _without_waiting(result, started, meter))
        except asyncio.CancelledError:
            self.wasted_cpu_seconds += meter.cpu_seconds
            seconds = time.monotonic() - started
            result = Result(False, strategy, (), seconds, error="cancelled")
            result = _with_meter(_without_waiting(result, started, meter), meter)
            await self._record(key, request, result, "cancelled", meter)
            raise
        result = _with_meter(result, meter)
        await self._record(key, request, result, status, meter)
        if status in TRIALS and strategy != StrategyType.CACHE:
            self._bandit.tell(strategy, goal.goal_class, result.success, result.time_seconds)
        return result

    async def _check(self, goal: Goal, result: Result) -> tuple[Result, Status]:
        """Turn a claim into a success or a failure by the replay check."""
        if not result.success:
            kind = result.metadata.get("kind")
            if kind == UNAVAILABLE:
                return result, "unavailable"
            if kind == EXCEPTION:
                return result, "error"
            return result, "timeout" if result.error == "timeout" else "failed"
        try:
            verdict = await self._verify(goal, result.tactics, VERIFY_SECONDS)
        except TreewrightError as error:
            return _broken(result, f"the replay check could not be done: {error}"), "error"
        if verdict.proved:
            self.proved.add(goal.id)
            metadata = {**result.metadata, "axioms": list(verdict.axioms)}
            return msgspec.structs.replace(result, metadata=metadata), "proved"
        error = f"the replay check says {verdict.reason}: {verdict.detail}"
        if verdict.is_fault:
            return _broken(result, error), "error"
        return msgspec.structs.replace(result, success=False, error=error), "rejected"

    def _next_key(self, request: AttemptRequest) -> str:
        """Return the key of the next attempt of this kind.

        Keys are numbered, so that a second try is a new row. Two processes that continue the same
        run give the same attempt the same key, so that it is recorded once.
        """
        run_id, budget = self._run.run_id, request.budget
        stem = f"{run_id}/{request.goal.id}/{request.strategy}/{budget:g}"
        self._numbers[stem] += 1
        return f"{stem}/{self._numbers[stem]}"

    async def _record(
        self, key: str, request: AttemptRequest, result: Result, status: Status, meter: Meter
    ) -> None:
        """Record an attempt, also if the caller is cancelled; return when it is on disk."""
        goal = request.goal
        if status not in TRIALS:
            # An attempt that is no trial must not take the key of another process's trial.
            key += f"/{uuid.uuid4().hex}"
        self._unwritten.append(
            Attempt(
                key=key,
                run_id=self._run.run_id,
                goal_id=goal.id,
                goal_hash=Ledger.hash_goal(goal),
                target_hash=Ledger.hash_goal(goal.text),
                goal_text=goal.shown,
                goal_class=goal.goal_class,
                strategy=request.strategy,
                status=status,
                time_seconds=result.time_seconds,
                cpu_seconds=round(meter.cpu_seconds, 3),
                budget=request.budget,
                toolchain=self._run.toolchain,
                imports=goal.imports,
                tactics=result.tactics,
                subgoals=result.subgoals,
                error=result.error,
                metadata=result.metadata,
                lessons=tuple(meter.lessons) if status in _STATUSES_WITH_LESSONS else (),
            )
        )
        loop = asyncio.get_running_loop()
        await asyncio.shield(loop.run_in_executor(self._writer, self._write))

    def _write(self) -> None:
        """Write all attempts that ended so far: those that end during a commit share the next."""
        batch = self._unwritten[:]
        if batch:
            self._ledger.record(batch)
            del self._unwritten[: len(batch)]


def _without_waiting(result: Result, started: float, meter: Meter) -> Result:
    """Return the result with its time reduced to the time in which the worker did not wait."""
    worked = max(0.0, time.monotonic() - started - meter.waited_seconds)
    return msgspec.structs.replace(result, time_seconds=min(result.time_seconds, worked))


def _with_meter(result: Result, meter: Meter) -> Result:
    """Return the result with the waiting time and the usage of models in its metadata."""
    found: dict[str, Any] = {}
    if waited := round(meter.waited_seconds, 3):
        found["waited_seconds"] = waited
    if meter.usage is not None:
        found["usage"] = msgspec.to_builtins(meter.usage)
    return msgspec.structs.replace(result, metadata={**result.metadata, **found})


def _broken(result: Result, error: str) -> Result:
    """Return a claim that could not be checked as a failure of the kind `exception`."""
    metadata = {**result.metadata, "kind": EXCEPTION}
    return msgspec.structs.replace(result, success=False, error=error, metadata=metadata)
