"""Attempts: having one made, its claim checked, recording it; and several side by side.

The first success that the replay check accepts wins. The others are cancelled; what they cost
is recorded, and that they did not win says nothing about them.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.attempts import Attempt, Status
from treewright.orchestrator.ledger.counting import TRIALS
from treewright.orchestrator.ledger.store import Ledger
from treewright.orchestrator.ledger.writer import LedgerWriter
from treewright.orchestrator.scheduling.bandit import Bandit
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.base import EXCEPTION, UNAVAILABLE
from treewright.orchestrator.workers.meter import Meter, current_meter
from treewright.orchestrator.workers.trying import AttemptRequest
from treewright.proving.learning import Lesson

Try = Callable[[AttemptRequest, Meter], Awaitable[Result]]
"""Has an attempt made, wherever; what it uses goes to the meter."""
Verify = Callable[[Goal, Sequence[str], float], Awaitable[Verdict]]
VERIFY_SECONDS = 120.0
_TEACHING = TRIALS - {"rejected"}
"""What the replay check refuses teaches nothing: its tactics may have closed what they must not."""


class Attempts:
    """Runs attempts of one run. What it returns is recorded already."""

    def __init__(
        self,
        config: OrchestratorConfig,
        try_: Try,
        verify: Verify,
        ledger: Ledger,
        bandit: Bandit,
        run_id: str,
        toolchain: str,
        lessons: tuple[Lesson, ...] = (),
    ) -> None:
        self._config = config
        self._try = try_
        self._verify = verify
        self._bandit = bandit
        self._run_id = run_id
        self._toolchain = toolchain
        self._lessons = lessons
        self._writer = LedgerWriter(ledger)
        self._numbers = _numbers_so_far(ledger, run_id)
        self.wasted_cpu_seconds = 0.0
        self.proved: set[str] = set()
        """Goals whose proof the replay check accepted in this process."""

    def close(self) -> None:
        self._writer.close()

    async def race(self, goal: Goal, strategies: Sequence[str]) -> list[Result]:
        """Tries strategies side by side; the last result is the winner's, if one won."""
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
        """One strategy on one goal, from start to record."""
        budget = self._config.timeout(strategy)
        request = AttemptRequest(goal, strategy, budget, self._lessons)
        return await self._recorded(request, lambda meter: self._try(request, meter))

    async def check_cached(self, goal: Goal, tactics: Sequence[str]) -> Result:
        """What closed an equal goal before, straight to the replay check."""

        async def claim(meter: Meter) -> Result:
            return Result(True, StrategyType.CACHE, tuple(tactics))

        budget = self._config.timeout(StrategyType.CACHE)
        return await self._recorded(AttemptRequest(goal, StrategyType.CACHE, budget), claim)

    async def still_holds(self, goal: Goal, tactics: Sequence[str]) -> Verdict:
        """The replay check of a proof that an earlier process recorded."""
        try:
            verdict = await self._verify(goal, tactics, VERIFY_SECONDS)
        except UsageError as error:
            return Verdict("original", str(error))
        except TreewrightError as error:
            return Verdict("lost", str(error))
        if verdict.proved:
            self.proved.add(goal.id)
        return verdict

    async def _recorded(
        self, request: AttemptRequest, work: Callable[[Meter], Awaitable[Result]]
    ) -> Result:
        goal, strategy, budget = request.goal, request.strategy, request.budget
        meter = Meter()
        current_meter.set(meter)
        key = self._next_key(goal, strategy, budget)
        started = time.monotonic()
        try:
            result = msgspec.structs.replace(await work(meter), strategy=strategy)
            result, status = await self._judged(goal, _without_waiting(result, started, meter))
        except asyncio.CancelledError:
            self.wasted_cpu_seconds += meter.cpu_seconds
            seconds = time.monotonic() - started
            result = Result(False, strategy, (), seconds, error="cancelled")
            result = _with_meter(_without_waiting(result, started, meter), meter)
            await self._record(key, goal, strategy, result, "cancelled", budget, meter)
            raise
        result = _with_meter(result, meter)
        await self._record(key, goal, strategy, result, status, budget, meter)
        if status in TRIALS and strategy != StrategyType.CACHE:
            self._bandit.tell(strategy, goal.goal_class, result.success, result.time_seconds)
        return result

    async def _judged(self, goal: Goal, result: Result) -> tuple[Result, Status]:
        """A claim becomes a success only by the replay check."""
        if not result.success:
            return result, _status_of_failure(result)
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

    def _next_key(self, goal: Goal, strategy: str, budget: float) -> str:
        """Numbered, so that a second try is a row of its own.

        Two processes that go on with the same run give what they do twice the same key.
        """
        stem = f"{self._run_id}/{goal.id}/{strategy}/{budget:g}"
        self._numbers[stem] += 1
        return f"{stem}/{self._numbers[stem]}"

    async def _record(
        self,
        key: str,
        goal: Goal,
        strategy: str,
        result: Result,
        status: Status,
        budget: float,
        meter: Meter,
    ) -> None:
        if status not in TRIALS:
            key += f"/{uuid.uuid4().hex}"  # must not stand in the way of another's real trial
        await self._writer.record(
            Attempt(
                key=key,
                run_id=self._run_id,
                goal_id=goal.id,
                goal_hash=Ledger.hash_goal(goal),
                target_hash=Ledger.hash_goal(goal.text),
                goal_text=goal.shown,
                goal_class=goal.goal_class,
                strategy=strategy,
                status=status,
                time_seconds=result.time_seconds,
                cpu_seconds=round(meter.cpu_seconds, 3),
                budget=budget,
                toolchain=self._toolchain,
                imports=goal.imports,
                tactics=result.tactics,
                subgoals=result.subgoals,
                error=result.error,
                metadata=result.metadata,
                lessons=tuple(meter.lessons) if status in _TEACHING else (),
            )
        )


def _numbers_so_far(ledger: Ledger, run_id: str) -> Counter[str]:
    """The highest number of each attempt that an earlier process of this run recorded."""
    numbers: Counter[str] = Counter()
    for row in ledger.query("SELECT attempt_key FROM attempts WHERE run_id = ?", [run_id]):
        stem, _, number = (row["attempt_key"] or "").rpartition("/")
        if number.isdecimal():
            numbers[stem] = max(numbers[stem], int(number))
    return numbers


def _without_waiting(result: Result, started: float, meter: Meter) -> Result:
    """A worker's time is at most what it did not wait."""
    worked = max(0.0, time.monotonic() - started - meter.waited_seconds)
    return msgspec.structs.replace(result, time_seconds=min(result.time_seconds, worked))


def _with_meter(result: Result, meter: Meter) -> Result:
    """With how long it waited for its turn, and what it used of a model, if it did."""
    found: dict[str, Any] = {}
    if waited := round(meter.waited_seconds, 3):
        found["waited_seconds"] = waited
    if meter.usage is not None:
        found["usage"] = msgspec.to_builtins(meter.usage)
    return msgspec.structs.replace(result, metadata={**result.metadata, **found})


def _broken(result: Result, error: str) -> Result:
    metadata = {**result.metadata, "kind": EXCEPTION}
    return msgspec.structs.replace(result, success=False, error=error, metadata=metadata)


def _status_of_failure(result: Result) -> Status:
    kind = result.metadata.get("kind", "")
    if kind == UNAVAILABLE:
        return "unavailable"
    if kind == EXCEPTION:
        return "error"
    return "timeout" if result.error == "timeout" else "failed"
