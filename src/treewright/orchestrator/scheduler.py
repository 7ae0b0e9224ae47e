"""The scheduler: which strategies for which goal, when, and how many at once.

Goals wait in light and heavy lanes; the throttle holds starts back while the machine is busy;
the bandit ranks the strategies; the best few race, on one of the kernel's executors. This process
decides and writes; every attempt is in the ledger before anything follows from it.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from treewright.orchestrator import strategies
from treewright.orchestrator.config import OrchestratorConfig, from_profile
from treewright.orchestrator.ledger.counting import IS_TRIAL, STUB_TOOLCHAIN, stub_ledger
from treewright.orchestrator.ledger.file import DEFAULT_PATH
from treewright.orchestrator.ledger.store import Ledger
from treewright.orchestrator.scheduling.bandit import Bandit
from treewright.orchestrator.scheduling.dispatch import Attempting, Dispatch, beside
from treewright.orchestrator.scheduling.lanes import Lanes
from treewright.orchestrator.scheduling.race import Attempts, Verify
from treewright.orchestrator.scheduling.stopping import unless_set
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.scheduling.working_off import Observer, WorkingOff
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.base import EXCEPTION, UNAVAILABLE, Worker
from treewright.orchestrator.workers.factory import make_workers
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import Meter
from treewright.orchestrator.workers.stub import StubWorker
from treewright.orchestrator.workers.trying import AttemptRequest, Strategies

__all__ = ["Goal", "Result", "Scheduler", "StrategyType"]

CACHE_THRESHOLD = 0.7
_PROGRESS_EVERY = 50


class Scheduler:
    """Closes goals. `run_goal` for one, `process_queue` for many; `close` ends its processes.

    What is not given is made: the ledger of the current directory (that of the stubs with
    profile 0), the settings of the profile, every worker that is available here.
    """

    def __init__(
        self,
        config: OrchestratorConfig | None = None,
        *,
        ledger: Ledger | None = None,
        workers: Iterable[Worker] | None = None,
        lean: LeanAccess | None = None,
        verify: Verify | None = None,
        throttle: Throttle | None = None,
        run_id: str = "",
        attempting: Attempting | None = None,
    ) -> None:
        self.config = config or from_profile()
        self._attempting = attempting or beside(self.config)
        self._dispatch: Dispatch | None = None
        self.run_id = run_id or uuid.uuid4().hex[:12]
        self._owns_ledger, self._owns_lean = ledger is None, lean is None
        self.ledger = Ledger(self._default_ledger()) if ledger is None else ledger
        sessions = self._attempting.lean_sessions(self.config)
        self.lean = LeanAccess(sessions, start=Path.cwd()) if lean is None else lean
        self.throttle = throttle or Throttle(self.config.cpu_target, alpha=self.config.cpu_alpha)
        if workers is None:
            workers = make_workers(self.config, self.lean, self.ledger.path)
        self.workers: dict[str, Worker] = {}
        self.excluded: dict[str, str] = {}
        for worker in workers:
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
            strategies=strategies.in_order(self.workers),
            limits={name: strategies.seconds(name) for name in self.workers},
        )
        self._attempts = Attempts(
            self.config,
            self._try,
            verify or self.lean.verify,
            self.ledger,
            self.bandit,
            self.run_id,
            self._toolchain,
            self.ledger.lessons_of_run(self.run_id) if self.config.lessons else (),
        )
        self._tried = self._tried_in_run()
        self._goals_in_work = 0
        self._stopping = asyncio.Event()

    def _default_ledger(self) -> Path:
        return stub_ledger(DEFAULT_PATH) if self.config.profile == 0 else DEFAULT_PATH

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Writes what is left to write; ends the Lean and closes the ledger that it opened."""
        self.shutdown()
        if self._owns_lean:
            await self.lean.close()
        if self._dispatch is not None:
            await asyncio.to_thread(self._dispatch.close)
        self._attempts.close()
        if self._owns_ledger:
            self.ledger.close()

    @property
    def wasted_cpu_seconds(self) -> float:
        """What cancelled attempts of this scheduler used."""
        return self._attempts.wasted_cpu_seconds

    @property
    def proved(self) -> frozenset[str]:
        """Ids of goals whose proof the replay check has accepted in this process."""
        return frozenset(self._attempts.proved)

    async def recheck(self, goals: Mapping[str, Goal], tell: Callable[[str], None]) -> None:
        """Has the replay check look again at what an earlier process of this run recorded.

        A ledger is a file that anybody may have changed: a success in it is a claim. One that
        does not hold is withdrawn, and the goal is tried again; `tell` is told of both.
        """
        stored = [s for s in self.ledger.stored_proofs(self.run_id) if s.goal_id in goals]
        for number, claim in enumerate(stored, start=1):
            if self._stopping.is_set():
                return
            if number % _PROGRESS_EVERY == 1:
                tell(f"checking stored proofs again: {number - 1} of {len(stored)}")
            if claim.goal_id in self.proved:
                continue
            work = self._attempts.still_holds(goals[claim.goal_id], claim.tactics)
            verdict = await unless_set(self._stopping, work)
            if verdict is None or verdict.proved:
                continue
            why = f"{verdict.reason}: {verdict.detail}"
            tell(f"{claim.goal_id}: its stored proof does not hold ({why}); it is tried again")
            if not verdict.is_fault:
                self.ledger.withdraw(claim, f"the replay check of the stored proof says {why}")

    @property
    def success_rate(self) -> dict[str, float]:
        """The moving average of each strategy's successes, over all goals."""
        return {strategy: self.bandit.arm(strategy).success_rate for strategy in self.workers}

    @property
    def trials(self) -> dict[str, int]:
        """How often each strategy was tried to its end."""
        return {strategy: self.bandit.arm(strategy).trials for strategy in self.workers}

    @property
    def cpu_ema(self) -> float:
        """The moving average of the load per core, as the throttle has read it so far."""
        return self.throttle.ema

    # -- choosing -------------------------------------------------------------------------

    def ucb_score(self, strategy: str, goal_class: str = "") -> float:
        return self.bandit.score(strategy, goal_class)

    def select_strategies(self, goal: Goal, n: int | None = None) -> list[str]:
        """The best n strategies that have not failed on this goal yet."""
        return self._untried(goal)[: n or self.config.speculation]

    def _untried(self, goal: Goal) -> list[str]:
        done = self._tried.get(goal.id, frozenset())
        open_ = [s for s in self.workers if s not in done and not self._is_duplicate(goal, s)]
        return self.bandit.rank(open_, goal.goal_class)

    def _is_duplicate(self, goal: Goal, strategy: str) -> bool:
        return self.config.reuse and self.ledger.check_duplicate(
            goal,
            strategy,
            toolchain=self._toolchain,
            imports=goal.imports,
            budget=self.config.timeout(strategy),
        )

    def _tried_in_run(self) -> dict[str, set[str]]:
        """What an interrupted run of this name has tried already without success."""
        tried: dict[str, set[str]] = {}
        for row in self.ledger.query(
            "SELECT goal_id, strategy FROM attempts WHERE run_id = ? AND success = 0 "  # noqa: S608
            f"AND {IS_TRIAL}",
            [self.run_id],
        ):
            tried.setdefault(row["goal_id"], set()).add(row["strategy"])
        return tried

    # -- one goal -------------------------------------------------------------------------

    async def run_goal(self, goal: Goal) -> Result:
        """Tries strategies, the best few at a time, until one succeeds or none is left."""
        self._goals_in_work += 1
        try:
            return await self._run_goal(goal)
        finally:
            self._goals_in_work -= 1

    async def _run_goal(self, goal: Goal) -> Result:
        if (cached := await self._try_cache(goal)) is not None:
            return cached
        failures: list[Result] = []
        started: set[str] = set()
        while left := [s for s in self._untried(goal) if s not in started]:
            batch = left[: self._width()]
            started.update(batch)
            results = await self._attempts.race(goal, batch)
            winner = results[-1]
            if winner.success:
                return winner
            # One that could not begin may be tried again when the goal comes back.
            ended = {
                r.strategy
                for r in results
                if r.strategy is not None and r.metadata.get("kind") != UNAVAILABLE
            }
            self._tried.setdefault(goal.id, set()).update(ended)
            failures += results
        return _summary(failures)

    def _width(self) -> int:
        """How many strategies race on a goal: where goals share Lean, its share of it.

        A race for a session that another goal waits for only makes both slower.
        """
        if self._goals_in_work <= 1:
            return self.config.speculation
        share = self.config.lean_sessions // self._goals_in_work
        return max(1, min(self.config.speculation, share))

    async def try_strategy(self, goal: Goal, strategy: str) -> Result:
        """One strategy of the caller's choice; checked and recorded like any attempt."""
        return await self._attempts.attempt(goal, strategy)

    async def _try(self, request: AttemptRequest, meter: Meter) -> Result:
        if self._dispatch is None:
            strategies = Strategies(self.workers, asyncio.get_running_loop())
            self._dispatch = Dispatch(self._attempting.make(strategies.attempt))
        return await self._dispatch.run(request, meter)

    async def _try_cache(self, goal: Goal) -> Result | None:
        if not self.config.reuse:
            return None
        cached = self.ledger.get_cached_tactics(goal)
        if cached is None or cached["success_rate"] <= CACHE_THRESHOLD:
            return None
        started = time.monotonic()
        result = await self._attempts.check_cached(goal, cached["tactics"])
        if result.metadata.get("kind") != EXCEPTION:  # that the check broke says nothing of it
            seconds = time.monotonic() - started - result.metadata.get("waited_seconds", 0.0)
            self.ledger.note_cache_use(goal, success=result.success, seconds=seconds)
        return result if result.success else None

    # -- many goals -----------------------------------------------------------------------

    async def process_queue(
        self, queue: asyncio.Queue[Goal], on_result: Observer | None = None
    ) -> dict[str, Result]:
        """Works until the queue is empty and every goal has a result, or until `shutdown`."""
        lanes: Lanes[Goal] = Lanes(self.config.max_light, self.config.max_heavy)
        work = WorkingOff(self.run_goal, lanes, self.throttle, self._stopping, on_result)
        return await work.all_of(queue)

    def shutdown(self) -> None:
        """Stops `process_queue`: what runs is cancelled, recorded as such, and can go on later."""
        self._stopping.set()


def _summary(failures: list[Result]) -> Result:
    """One result for a goal that no strategy closed."""
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
        "; ".join(f"{r.strategy}: {r.error}" for r in failures),
        dict(chosen.metadata),
    )
