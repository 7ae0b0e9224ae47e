"""Documents about an experiment: its grid, the state of each run, and the results.

A finished run never changes, so its measures are read once. Comparisons are computed again only
when another run has finished.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec

from treewright.cellview.experiment import comparisons
from treewright.cellview.experiment.comparisons import Comparison, Curve, Group
from treewright.cellview.experiment.execution import decode_plan
from treewright.cellview.experiment.layout import CELL, CELLS, PLAN
from treewright.cellview.experiment.plan import Plan, PlannedRun, runs_of
from treewright.cellview.experiment.results import MeasuredRun, decode_result
from treewright.dashboard import run_files
from treewright.dashboard.live_run import Liveness, RunCache, read_liveness
from treewright.dashboard.roots import RunRef
from treewright.dashboard.run_files import Signature, signature
from treewright.kernel.errors import StorageError
from treewright.kernel.storage.run_directory import LEASE_DIR
from treewright.proving.layout import RUN, TRACE

_MAX_PLAN_BYTES = 8 << 20
_MAX_RESULT_BYTES = 1 << 20
_MAX_STATEMENT = 400


class ExperimentLibrary:
    """The experiments that were asked for, kept in memory; plans and measures are small."""

    def __init__(self, most: int = 50) -> None:
        self._runs = RunCache(_LoadedExperiment, lambda _: 1, most)

    def summary(self, run: RunRef) -> dict[str, Any]:
        """Return the summary for the home page and the head of the experiment's page."""
        held = self._open(run)
        with held.lock:
            return held.refresh().summary()

    def overview(self, run: RunRef) -> dict[str, Any]:
        """Return the whole document of the experiment's page."""
        held = self._open(run)
        with held.lock:
            held.refresh()
            return {"run": held.summary(), "plan": held.plan_shown(), "cells": held.cells()} | (
                held.results()
            )

    def _open(self, run: RunRef) -> _LoadedExperiment:
        found = self._runs.get(run)
        self._runs.shrink()
        return found


class _LoadedExperiment:
    """One experiment, with the plan and the results that were read so far."""

    def __init__(self, run: RunRef) -> None:
        self.run = run
        self.lock = threading.RLock()
        self._plan: Plan | None = None
        self._runs: list[PlannedRun] = []
        self._results: dict[str, MeasuredRun] = {}
        self._begun: set[str] = set()
        self._created: dict[str, str] = {}
        self._problem = ""
        self._signature: Signature | None = None
        self._shown: tuple[int, dict[str, Any]] | None = None

    def refresh(self) -> _LoadedExperiment:
        try:
            self._read_plan()
            self._problem = self._read_results()
        except (StorageError, OSError) as error:
            self._problem = str(error)
        return self

    def _read_plan(self) -> None:
        path = self.run.path / PLAN
        found = signature(path)
        if found == self._signature and self._plan is not None:
            return
        data = _bytes(self.run.path, PLAN, _MAX_PLAN_BYTES)
        if data is None:
            raise StorageError(f"cannot read {path}")
        self._plan = decode_plan(data, path)
        self._runs = runs_of(self._plan)
        self._results, self._shown, self._signature = {}, None, found

    def _read_results(self) -> str:
        """Read new results. Return the error of the first unreadable one, or an empty text."""
        self._begun = set(run_files.list_directories(self.run.path, CELLS))
        problem = ""
        for planned in self._runs:
            if planned.cell_id in self._results or planned.cell_id not in self._begun:
                continue
            name = f"{CELLS}/{planned.cell_id}/{CELL}"
            try:
                data = _bytes(self.run.path, name, _MAX_RESULT_BYTES)
                if data is not None:
                    found = decode_result(data, self.run.path / name, planned)
                    self._results[planned.cell_id] = found
            except (StorageError, OSError) as error:
                problem = problem or str(error)
        return problem

    def summary(self) -> dict[str, Any]:
        done, of = len(self._results), len(self._runs)
        solved = sum(result.solved for result in self._results.values())
        over = f"all {of} runs are finished, {solved} proved" if of and done == of else None
        now = read_liveness(self.run.path / LEASE_DIR, over)
        if self._problem:
            now = Liveness("damaged", self._problem)
        return {
            "key": self.run.key,
            "kind": self.run.kind,
            "run_id": self.run.run_id,
            "created_at": self._created_at(),
            "liveness": now,
            "progress": {"done": done, "of": of, "proved": solved},
            "seconds": sum(result.seconds for result in self._results.values()),
            "eta_seconds": None,
            "problem": self._problem,
        }

    def _created_at(self) -> str | None:
        """Return the start of the first run, because the plan has no time."""
        for cell in self._begun - self._created.keys():
            if (found := _created(self.run.path, f"{CELLS}/{cell}/{RUN}")) is not None:
                self._created[cell] = found
        return min(self._created.values(), default=None)

    def plan_shown(self) -> dict[str, Any] | None:
        plan = self._plan
        if plan is None:
            return None
        goals = [
            {"name": goal.name, "statement": goal.statement[:_MAX_STATEMENT]} for goal in plan.goals
        ]
        return {
            "name": plan.name,
            "modes": plan.modes,
            "agents": plan.agents,
            "arms": [arm.name for arm in plan.arms],
            "seeds": plan.seeds,
            "goals": goals,
            "simulations": plan.simulations,
            "time_limit": plan.time_limit,
        }

    def cells(self) -> list[dict[str, Any]]:
        """Return the grid, in the order of the runs."""
        return [self._cell(planned) for planned in self._runs]

    def _cell(self, planned: PlannedRun) -> dict[str, Any]:
        cell = {
            "id": planned.cell_id,
            "setup": _setup(planned),
            "arm": planned.arm.name,
            "goal": planned.goal.name,
            "seed": planned.seed,
        }
        result = self._results.get(planned.cell_id)
        if result is None:
            return {**cell, "state": self._state(planned), "opens": self._opens(planned)}
        return {
            **cell,
            "state": result.status,
            "opens": True,
            "steps": result.steps,
            "attempts": result.attempts,
            "seconds": result.seconds,
            "detail": result.detail[:_MAX_STATEMENT],
        }

    def _opens(self, planned: PlannedRun) -> bool:
        """Return whether the proof run has files that a page can show."""
        directory = f"{CELLS}/{planned.cell_id}"
        return any(run_files.resolve(self.run.path, f"{directory}/{name}") for name in (RUN, TRACE))

    def _state(self, planned: PlannedRun) -> str:
        if planned.cell_id not in self._begun:
            return "waiting"
        lease = self.run.path / CELLS / planned.cell_id / LEASE_DIR
        return "running" if read_liveness(lease, None).state == "running" else "interrupted"

    def results(self) -> dict[str, Any]:
        """Return the comparisons of the finished runs."""
        if self._shown is None or self._shown[0] != len(self._results):
            self._shown = len(self._results), self._compute()
        return self._shown[1]

    def _compute(self) -> dict[str, Any]:
        if self._plan is None:
            return {"groups": [], "damage": [], "central": [], "curves": []}
        groups = comparisons.groups_of(self._plan, self._results)
        return {
            "groups": [_group(group, self._plan) for group in groups],
            "damage": [_comparison(one) for one in comparisons.under_damage(groups)],
            "central": [_comparison(one) for one in comparisons.against_centralized(groups)],
            "curves": [_curve(one) for one in comparisons.curves(self._plan, groups)],
        }


def _setup(planned: PlannedRun) -> str:
    return Group(planned.mode, planned.agents, planned.arm).setup


def _group(group: Group, plan: Plan) -> dict[str, Any]:
    return {
        "setup": group.setup,
        "arm": group.arm.name,
        "runs": len(group.members),
        "solved": group.solved(),
        "steps": group.steps(plan.simulations),
        "attempts": group.attempts(),
        "gain_over_dip": group.gain_over_dip(),
        "alike": group.alike_beyond_chance(),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "setup": one.group.setup,
        "arm": one.group.arm.name,
        "placebo": one.group.arm.placebo,
        "found": one.found,
    }


def _curve(one: Curve) -> dict[str, Any]:
    return {"agents": one.agents, "label": one.label, "found": one.found}


def _created(base: Path, name: str) -> str | None:
    """Return the start of a proof run, or None if its record is missing."""
    data = _bytes(base, name, _MAX_PLAN_BYTES)
    try:
        document = msgspec.json.decode(data) if data is not None else {}
    except (msgspec.DecodeError, RecursionError):
        return None
    found = document.get("created_at") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None


def _bytes(base: Path, name: str, limit: int) -> bytes | None:
    """Return a file of the experiment, or None if it is missing or outside the experiment."""
    read = run_files.read(base, name, limit)
    return read[0].encode("utf-8", "replace") if read is not None else None
