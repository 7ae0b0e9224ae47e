"""The scheduler: it decides which strategies try which goal, when, and how many at once.

Goals wait in light and heavy lanes. The throttle delays starts while the machine is busy, the
bandit ranks the strategies, and the best few race on one of the kernel's executors. This process
makes every decision and every record; an attempt is in the ledger before the scheduler acts on it.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from treewright.orchestrator import strategies
from treewright.orchestrator.bandit import Bandit
from treewright.orchestrator.config import OrchestratorConfig, from_profile, with_settings
from treewright.orchestrator.ledger.attempts import IS_TRIAL, STUB_TOOLCHAIN, stub_ledger_path
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.ledger.schema import DEFAULT_PATH
from treewright.orchestrator.scheduling.attempt_runner import AttemptRunner, RunContext, Verify
from treewright.orchestrator.scheduling.dispatch import AttemptBackend, Dispatch, local_backend
from treewright.orchestrator.scheduling.lanes import Lanes, Ticket
from treewright.orchestrator.scheduling.stop_signals import run_unless_set
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.attempt import AttemptRequest, LocalStrategies
from treewright.orchestrator.workers.factory import StubWorker, make_workers
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import Meter
from treewright.orchestrator.workers.worker import (
    EXCEPTION,
    UNAVAILABLE,
    Worker,
    WorkerLike,
    as_workers,
)

__all__ = ["Goal", "Result", "Scheduler", "StrategyType"]

OnResult = Callable[[Goal, Result], None]

CACHE_THRESHOLD = 0.7
_MAX_RETRIES = 3
_PROGRESS_INTERVAL = 50


class Scheduler:
    """Closes goals by a portfolio of strategies.

    `run_goal` tries one goal, `process_queue` many; `close`, or `async with`, ends the processes.

    Args:
        config: The settings; by default those of the profile.
        ledger: Records every attempt; by default `.treewright/ledger.db` of the current
            directory (`stubs-ledger.db` with profile 0).
        workers: Functions `async def run_<strategy>(goal, timeout)`, or objects with `strategy`
            and `run`; by default the workers of every strategy in the portfolio.
        lean: The Lean processes; by default the scheduler starts and ends its own.
        verify: Decides whether a claim is a proof; by default the replay check.
        throttle: Delays starts; by default by `cpu_target` and `cpu_alpha`.
        run_id: The run to record attempts under; by default a new one.
        backend: Where attempts run; by default in threads of this process.
        settings: Single settings of `OrchestratorConfig`, such as `max_heavy=2`.

    Raises:
        UsageError: A setting or a worker is not of the documented form.
    """

    def __init__(
        self,
        config: OrchestratorConfig | None = None,
        *,
        ledger: Ledger | None = None,
        workers: Iterable[WorkerLike] | None = None,
        lean: LeanAccess | None = None,
        verify: Verify | None = None,
        throttle: Throttle | None = None,
        run_id: str = "",
        backend: AttemptBackend | None = None,
        **settings: Any,
    ) -> None:
        self.config = with_settings(config or from_profile(), settings)
        given = None if workers is None else as_workers(workers)
        self._backend = backend or local_backend(self.config)
        self._dispatch: Dispatch | None = None
        self.run_id = run_id or uuid.uuid4().hex[:12]
        self._owns_ledger, self._owns_lean = ledger is None, lean is None
        if ledger is None:
            is_stub = self.config.profile == 0
            ledger = Ledger(stub_ledger_path(DEFAULT_PATH) if is_stub else DEFAULT_PATH)
        self.ledger = ledger
        sessions = self._backend.lean_sessions(self.config)
        self.lean = LeanAccess(sessions, start=Path.cwd()) if lean is None else lean
        self.throttle = throttle or Throttle(self.config.cpu_target, alpha=self.config.cpu_alpha)
        if given is None:
            given = make_workers(self.config, self.lean, self.ledger.path)
        self.workers: dict[str, Worker] = {}
        self.excluded: dict[str, str] = {}
        for worker in given:
            probe = worker.probe()
            if probe.available:
                self.workers[worker.strategy] = worker
            else:
                self.excluded[worker.strategy] = probe.detail
        stubs = any(isinstance(worker, StubWorker) for worker in self.workers.values())
        self._toolchain = STUB_TOOLCHAIN if stubs else self.lean.toolchain
        self.bandit = Bandit(
            self.ledger.arms(),
            exploration=self.config.exploration,
            strategies=strategies.sort_names(self.workers),
            limits={name: strategies.default_timeout(name) for name in self.workers},
        )
        lessons = self.ledger.lessons_of_run(self.run_id) if self.config.lessons else ()
        self._runner = AttemptRunner(
            self.config,
            self._run_request,
            verify or self.lean.verify,
            self.ledger,
            self.bandit,
            RunContext(self.run_id, self._toolchain, lessons),
        )
        self._tried: dict[str, set[str]] = {}
        """The strategies that failed on each goal, also before this run was interrupted."""
        for row in self.ledger.query(
            "SELECT goal_id, strategy FROM attempts WHERE run_id = ? AND success = 0 "  # noqa: S608
            f"AND {IS_TRIAL}",
            [self.run_id],
        ):
            self._tried.setdefault(row["goal_id"], set()).add(row["strategy"])
        self._active_goals = 0
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Write the remaining records; close the Lean and the ledger that this scheduler opened."""
        self.shutdown()
        if self._owns_lean:
            await self.lean.close()
        if self._dispatch is not None:
            await asyncio.to_thread(self._dispatch.close)
        self._runner.close()
        if self._owns_ledger:
            self.ledger.close()

    @property
    def wasted_cpu_seconds(self) -> float:
        """The CPU time of this scheduler's cancelled attempts."""
        return self._runner.wasted_cpu_seconds

    @property
    def proved(self) -> frozenset[str]:
        """Ids of goals with a proof that the replay check has accepted in this process."""
        return frozenset(self._runner.proved)

    @property
    def success_rate(self) -> dict[str, float]:
        """The moving average of each strategy's successes, over all goals."""
        return {strategy: self.bandit.arm(strategy).success_rate for strategy in self.workers}

    @property
    def trials(self) -> dict[str, int]:
        """The number of trials of each strategy."""
        return {strategy: self.bandit.arm(strategy).trials for strategy in self.workers}

    @property
    def cpu_ema(self) -> float:
        """The moving average of the load per core, as far as the throttle has read it."""
        return self.throttle.ema

    async def recheck(self, goals: Mapping[str, Goal], announce: Callable[[str], None]) -> None:
        """Give the proofs that an earlier process of this run recorded to the replay check.

        Anyone may have changed the ledger's file, so a success in it is a claim. A proof that the
        replay check refuses is withdrawn, and its goal is tried again; `announce` is told so.
        """
        stored = [s for s in self.ledger.stored_proofs(self.run_id) if s.goal_id in goals]
        for number, claim in enumerate(stored, start=1):
            if self._stopping.is_set():
                return
            if number % _PROGRESS_INTERVAL == 1:
                announce(f"checking stored proofs again: {number - 1} of {len(stored)}")
            if claim.goal_id in self.proved:
                continue
            work = self._runner.check_stored_proof(goals[claim.goal_id], claim.tactics)
            verdict = await run_unless_set(self._stopping, work)
            if verdict is None or verdict.proved:
                continue
            why = f"{verdict.reason}: {verdict.detail}"
            problem = "could not be checked" if verdict.is_fault else "does not hold"
            announce(
                f"{claim.goal_id}: its stored proof {problem} ({why}); the goal is tried again"
            )
            if not verdict.is_fault:
                self.ledger.withdraw(claim, f"the replay check of the stored proof says {why}")

    # -- choosing -------------------------------------------------------------------------

    def ucb_score(self, strategy: str, goal_class: str = "") -> float:
        """Return the bandit's score of a strategy for a class of goals (`""`: all goals)."""
        return self.bandit.score(strategy, goal_class)

    def select_strategies(self, goal: Goal, n: int | None = None) -> list[str]:
        """Return the best `n` strategies that have not failed on this goal yet."""
        return self._untried(goal)[: n or self.config.speculation]

    def _untried(self, goal: Goal) -> list[str]:
        def is_duplicate(strategy: str) -> bool:
            return self.config.reuse and self.ledger.check_duplicate(
                goal,
                strategy,
                toolchain=self._toolchain,
                imports=goal.imports,
                budget=self.config.timeout(strategy),
            )

        done = self._tried.get(goal.id, frozenset())
        open_ = [s for s in self.workers if s not in done and not is_duplicate(s)]
        return self.bandit.rank(open_, goal.goal_class)

    # -- one goal -------------------------------------------------------------------------

    async def run_goal(self, goal: Goal) -> Result:
        """Try strategies, the best few at a time, until one succeeds or none is left."""
        self._active_goals += 1
        try:
            return await self._run_goal(goal)
        finally:
            self._active_goals -= 1

    async def _run_goal(self, goal: Goal) -> Result:
        if (cached := await self._try_cache(goal)) is not None:
            return cached
        failures: list[Result] = []
        started: set[str] = set()
        while left := [s for s in self._untried(goal) if s not in started]:
            batch = left[: self._race_width()]
            started.update(batch)
            results = await self._runner.race(goal, batch)
            winner = results[-1]
            if winner.success:
                return winner
            # An unavailable strategy may be tried again when the goal comes back.
            ended = {
                r.strategy
                for r in results
                if r.strategy is not None and r.metadata.get("kind") != UNAVAILABLE
            }
            self._tried.setdefault(goal.id, set()).update(ended)
            failures += results
        return _summary(failures)

    def _race_width(self) -> int:
        """Return how many strategies race on a goal.

        Goals that are active at the same time share the Lean sessions equally: a race for a
        session that another goal waits for would delay both.
        """
        if self._active_goals <= 1:
            return self.config.speculation
        share = self.config.lean_sessions // self._active_goals
        return max(1, min(self.config.speculation, share))

    async def try_strategy(self, goal: Goal, strategy: str) -> Result:
        """Try one strategy; its claim is checked and recorded like any attempt."""
        return await self._runner.attempt(goal, strategy)

    async def _run_request(self, request: AttemptRequest, meter: Meter) -> Result:
        if self._dispatch is None:
            local = LocalStrategies(self.workers, asyncio.get_running_loop())
            self._dispatch = Dispatch(self._backend.make(local.attempt))
        return await self._dispatch.run(request, meter)

    async def _try_cache(self, goal: Goal) -> Result | None:
        """Return a success of the tactics that closed an equal goal before, or None."""
        if not self.config.reuse:
            return None
        cached = self.ledger.get_cached_tactics(goal)
        if cached is None or cached["success_rate"] <= CACHE_THRESHOLD:
            return None
        started = time.monotonic()
        result = await self._runner.check_cached(goal, cached["tactics"])
        if result.metadata.get("kind") != EXCEPTION:
            seconds = time.monotonic() - started - result.metadata.get("waited_seconds", 0.0)
            self.ledger.note_cache_use(goal, success=result.success, seconds=seconds)
        return result if result.success else None

    # -- many goals -----------------------------------------------------------------------

    async def process_queue(
        self, queue: asyncio.Queue[Goal], on_result: OnResult | None = None
    ) -> dict[str, Result]:
        """Work until the queue is empty and every goal has a result, or until `shutdown`.

        Args:
            queue: The goals; more may be put in while the work goes on.
            on_result: Called with each goal and its result.

        Returns:
            The result of each finished goal, by the goal's id.
        """
        lanes: Lanes[Goal] = Lanes(self.config.max_light, self.config.max_heavy)
        running: dict[asyncio.Task[Result], Ticket[Goal]] = {}
        results: dict[str, Result] = {}

        async def start(goal: Goal) -> Result:
            await self.throttle()  # its pause delays no other goal
            return await self.run_goal(goal)

        def settle(result: Result, ticket: Ticket[Goal]) -> None:
            if result.metadata.get("kind") == UNAVAILABLE and ticket.retries < _MAX_RETRIES:
                lanes.retry(ticket, time.monotonic())
                return
            lanes.release(ticket)
            results[ticket.item.id] = result
            if on_result is not None:
                on_result(ticket.item, result)

        try:
            while not self._stopping.is_set():
                while not queue.empty():
                    goal = queue.get_nowait()
                    lanes.submit(goal, heavy=goal.heavy)
                if (ticket := lanes.admit(time.monotonic())) is not None:
                    running[asyncio.create_task(start(ticket.item))] = ticket
                elif not running and not lanes.waiting and queue.empty():
                    break
                else:
                    due = lanes.next_due
                    left = None if due is None else max(0.0, due - time.monotonic())
                    await run_unless_set(self._stopping, _first_end(running, left))
                for task in [task for task in running if task.done()]:
                    settle(task.result(), running.pop(task))
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
        # A goal that was proved before its cancellation took effect keeps its result.
        for task, ticket in running.items():
            if not task.cancelled() and task.exception() is None and task.result().success:
                settle(task.result(), ticket)
        return results

    def shutdown(self) -> None:
        """Stop `process_queue`: cancel and record the running attempts; they can go on later."""
        self._stopping.set()


async def _first_end(tasks: Iterable[asyncio.Task[Any]], timeout: float | None) -> None:
    """Return when a task ends, or after `timeout` seconds."""
    if waiting := list(tasks):
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(timeout or 0.0)


def _summary(failures: list[Result]) -> Result:
    """Return one result for a goal that no strategy closed."""
    if not failures:
        return Result(
            False,
            StrategyType.CACHE,
            error="nothing to try: every available strategy was tried before with this budget",
        )
    unavailable = [r for r in failures if r.metadata.get("kind") == UNAVAILABLE]
    chosen = (unavailable or failures)[-1]
    return Result(
        False,
        chosen.strategy,
        (),
        sum(r.time_seconds for r in failures),
        tuple(dict.fromkeys(s for r in failures for s in r.subgoals)),
        "; ".join(f"{r.strategy}: {r.error or 'no proof'}" for r in failures),
        dict(chosen.metadata),
    )
