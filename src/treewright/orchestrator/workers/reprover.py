"""`reprover`: models propose tactics for a state, and Lean tries them, likely states first."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from treewright.lean.session.answers import ProofState
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.verify.restrictions import find_escapes
from treewright.orchestrator.byt5 import reprover as models
from treewright.orchestrator.byt5.model import Stopped
from treewright.orchestrator.byt5.reprover import ReProver, Suggestion
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import current_meter
from treewright.orchestrator.workers.worker import (
    UNAVAILABLE,
    Availability,
    Hole,
    LeanWorker,
    failed,
    failed_by,
    key_of_states,
    run_on_all,
)
from treewright.premises.index import Premise, PremiseIndex
from treewright.premises.index_builder import default_path

WIDTH = 4
_STEP_SECONDS = 10.0
T = TypeVar("T")
# Cost, order of arrival, states, and the steps that led to the states.
_Waiting = tuple[float, int, tuple[ProofState, ...], tuple[str, ...]]


class Proposer(Protocol):
    """Proposes tactics to the search."""

    def propose(self, state: str, stop: Callable[[], bool]) -> list[Suggestion]: ...


class ReproverWorker:
    """Runs ReProver's models from a directory, by default the one in TREEWRIGHT_REPROVER.

    The models are read when they are first needed.
    """

    strategy = StrategyType.REPROVER

    def __init__(
        self, lean: LeanAccess, directory: Path | None = None, premises: Path | None = None
    ) -> None:
        self._lean = lean
        self._directory = directory or models.configured_directory()
        self._premises = premises
        self._models: ReProver | None = None
        self._loading = threading.Lock()

    def probe(self) -> Availability:
        """Return whether the models and the premise index are there; nothing is loaded."""
        directory = self._directory
        layout = "a directory with generator/ and retriever/, each with config.json and weights"
        if directory is None:
            return Availability(False, f"{models.VARIABLE} is not set", f"set it to {layout}")
        if not models.has_model(directory / "generator"):
            hint = f"{models.VARIABLE} has to name {layout} as model.safetensors"
            return Availability(False, f"there is no model at {directory / 'generator'}", hint)
        if not models.has_model(directory / "retriever"):
            return Availability(True, f"{directory}: generation without retrieval")
        if not self._index_path().is_file():
            choice = self._lean.choice
            which = f" --lean {choice.backend}" if choice is not None else ""
            hint = f"make it with: treewright premises build --lexical{which}"
            return Availability(False, "retrieval needs a premise index", hint)
        return Availability(True, f"{directory}: retrieval and generation")

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Search with the models' tactics; `metadata` has the premises that they were shown."""
        started = time.monotonic()
        availability = self.probe()
        if not availability.available:
            return failed(self.strategy, availability.detail, started, UNAVAILABLE)
        try:
            loaded = await asyncio.to_thread(self._load)
            index = PremiseIndex.open(self._index_path(goal.imports)) if loaded.retrieves else None
            proposer = ModelProposer(loaded, index)
        except Exception as error:
            return failed_by(error, self.strategy, started, UNAVAILABLE)
        with contextlib.closing(proposer):
            result = await ProposalSearch(self._lean, proposer).run(goal, timeout)
        metadata = result.metadata | {"premises": list(proposer.used)}
        return msgspec.structs.replace(result, metadata=metadata)

    def _load(self) -> ReProver:
        with self._loading:
            if self._models is None:
                assert self._directory is not None
                self._models = ReProver(self._directory)
            return self._models

    def _index_path(self, imports: Sequence[str] = ("Init",)) -> Path:
        lean = self._lean
        return self._premises or default_path(imports, lean.choice, lean.start)


class ModelProposer:
    """Retrieval and generation for one goal; `used` has the premises that the model was shown."""

    def __init__(self, loaded: ReProver, index: PremiseIndex | None) -> None:
        self._models = loaded
        self._index = index
        self.used: dict[str, None] = {}

    def close(self) -> None:
        """Close the premise index."""
        if self._index is not None:
            self._index.close()

    def propose(self, state: str, stop: Callable[[], bool]) -> list[Suggestion]:
        """Return the model's tactics for a state, likely ones first."""
        premises: list[Premise] = []
        if self._index is not None:
            candidates = self._index.lexical(state, models.CANDIDATES)
            premises = self._models.rerank(state, candidates, stop)
        self.used |= {premise.name: None for premise in premises}
        return self._models.tactics(state, premises, WIDTH, stop)


class ProposalSearch(LeanWorker):
    """Best-first search; the score of a state is the sum of its tactics' scores."""

    strategy = StrategyType.REPROVER

    def __init__(self, lean: LeanAccess, proposer: Proposer) -> None:
        super().__init__(lean)
        self._proposer = proposer

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        order = itertools.count()
        waiting: list[_Waiting] = [(0.0, next(order), hole.states, ())]
        seen = {key_of_states(hole.states)}
        while waiting:
            cost, _, states, steps = heapq.heappop(waiting)
            shown = next(state.pretty for state in states if state.goals)
            for suggestion in await _in_thread(
                lambda stop, shown=shown: self._proposer.propose(shown, stop)
            ):
                if find_escapes(suggestion.tactic):
                    continue
                left = max(0.1, min(_STEP_SECONDS, deadline - time.monotonic()))
                after = await run_on_all(session, states, suggestion.tactic, left)
                if after is None or key_of_states(after) in seen:
                    continue
                seen.add(key_of_states(after))
                path = (*steps, suggestion.tactic)
                if all(state.complete for state in after):
                    return path
                if any(state.goals for state in after):
                    heapq.heappush(waiting, (cost - suggestion.score, next(order), after, path))
        return None


async def _in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run work in a thread. A cancellation tells the work to stop and does not wait for it."""
    unwanted = threading.Event()
    meter = current_meter.get()

    def run() -> T:
        before = time.thread_time()
        try:
            return work(unwanted.is_set)
        except Stopped:
            raise asyncio.CancelledError from None
        finally:
            if meter is not None:
                meter.cpu_seconds += time.thread_time() - before

    try:
        return await asyncio.to_thread(run)
    finally:
        unwanted.set()


strategy = Strategy(
    "retrieval and tactic generation with ByT5 models",
    60.0,
    lambda tools: ReproverWorker(tools.lean),
)
