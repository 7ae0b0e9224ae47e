"""Summaries of runs, computed at most twice a second for any number of pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from treewright.dashboard import orchestrator_view, proof_view
from treewright.dashboard.experiment_view import ExperimentLibrary
from treewright.dashboard.proof_view import ProofLibrary
from treewright.dashboard.roots import Roots, RunRef
from treewright.dashboard.tree_library import TreeLibrary

_FRESH_SECONDS = 0.5
_MAX_CACHED = 1000


class Summaries:
    """Caches the summary of each run, and the list of all runs."""

    def __init__(self, roots: Roots) -> None:
        self.trees = TreeLibrary()
        self.proofs = ProofLibrary()
        self.experiments = ExperimentLibrary()
        self._roots = roots
        self._made: dict[str, tuple[float, int, Any]] = {}
        self._changes = 0
        self._locks: dict[str, asyncio.Lock] = {}

    async def all_runs(self) -> dict[str, Any]:
        """Return the summaries of all runs, the newest first."""
        return await self._fresh("", self._all)

    async def of(self, run: RunRef) -> dict[str, Any]:
        return await self._fresh(run.key, lambda: self.describe(run))

    def describe(self, run: RunRef) -> dict[str, Any]:
        match run.kind:
            case "tree":
                return self.trees.summary(run)
            case "proof":
                return proof_view.summary(self.proofs.open(run))
            case "experiment":
                return self.experiments.summary(run)
            case "bank":
                return orchestrator_view.summary(run)

    def _all(self) -> dict[str, Any]:
        runs = [self.describe(run) for run in self._roots.scan()]
        runs.sort(key=lambda run: run.get("created_at") or "", reverse=True)
        return {"roots": self._roots.names, "runs": runs}

    def forget(self) -> None:
        """Invalidate all summaries, also those that are being computed."""
        self._changes += 1

    async def _fresh(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a cached document, or compute it once for all waiting requests."""
        known = self._known(key)
        if known is not None:
            return known
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._known(key)
            if known is not None:
                return known
            if len(self._made) > _MAX_CACHED:
                self._made.clear()
                self._locks = {key: self._locks[key]}
            changes = self._changes
            found = await run_in_threadpool(make)
            self._made[key] = (time.monotonic(), changes, found)
            return found

    def _known(self, key: str) -> Any:
        made, changes, found = self._made.get(key, (0.0, -1, None))
        fresh = changes == self._changes and time.monotonic() - made < _FRESH_SECONDS
        return found if fresh else None
