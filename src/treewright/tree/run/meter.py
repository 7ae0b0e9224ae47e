"""A meter that keeps a run within its caps: allowances for evaluations, and when to stop.

Every evaluation gets an allowance when it starts: its share of the amount that is left under each
cap. A further evaluation starts only while the rest, after the allowances of the evaluations under
way, is enough for one like the most expensive so far. Otherwise the evaluations under way end
first, and free the rest of their allowances. An evaluation with too small a share is repeated
alone, with everything that is left.

Models are asked only if the largest cost of the call fits the allowance. Some agents report their
cost only afterwards, so an allowance cannot hold them back: until one of them has reported a cost
they run one at a time, and then several at once as long as each has four times the largest cost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from treewright.llm.usage import Usage
from treewright.tree.config import CommandBackend, Config, ScriptedBackend
from treewright.tree.deciding.caps import (
    ALL,
    FLAGS,
    IDEAS,
    Allowance,
    Caps,
    amount,
    describe,
    each,
    spent,
    used_of,
)
from treewright.tree.records.model import EvalOutcome, Evaluation, Manifest, Unset

_SECONDS_PER_HOUR = 3600.0
_UNKNOWN_COST_MARGIN = 4.0
"""Evaluations of unknown cost run at the same time while each may cost this many times the largest
cost so far."""


@dataclass(frozen=True, slots=True)
class CallCosts:
    """The costs of calls as far as the configuration tells them, by kind and role.

    Attributes:
        unknown: Calls of a cost that is not known before they end.
        largest: The largest cost of a call of a command-line agent.
    """

    unknown: frozenset[tuple[str, str]] = frozenset()
    largest: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(slots=True)
class Meter:
    """The meter of one invocation. `max_hours` limits the invocation, the caps limit the run.

    `why` says which limit was reached.
    """

    max_hours: float | None = None
    costs: CallCosts = CallCosts()
    why: str = ""
    is_out_of_time: bool = False
    _began: float = field(default_factory=time.monotonic)
    _allowances: dict[str, Allowance] = field(default_factory=dict)
    """The allowances of the evaluations under way."""
    _unrecorded: dict[str, Caps] = field(default_factory=dict)
    """Amounts that held evaluations have spent, which no event has recorded yet."""
    _started_at: dict[str, float] = field(default_factory=dict)
    """The starts of the evaluations under way."""
    _longest_seconds: float = 0.0
    """The duration of the longest evaluation of this invocation."""
    _given_all: set[str] = field(default_factory=set)
    """Evaluations that got everything that was left."""
    _one_at_a_time: bool = False
    """Whether an allowance was too small, so that each evaluation gets everything left."""
    _is_over: bool = False
    """Whether everything that was left was too small for an evaluation."""
    _largest: dict[tuple[str, str], float] | None = None
    """The largest cost of an evaluation so far, by kind and role; None before any was counted."""
    _is_scored: bool = False
    """Whether an evaluation was scored."""

    def control_state(self, manifest: Manifest) -> Literal["go", "wait", "end"]:
        """Return whether a further evaluation may start now, later, or not any more."""
        self._forget_ended(manifest)
        self.why = self._time_is_up() or self._first_reached(manifest)
        if self.why:
            return "wait" if self._allowances else "end"
        return "go" if self.may_start(manifest) else "wait"

    def may_start(self, manifest: Manifest) -> bool:
        """Return whether a further evaluation may start while others are under way."""
        if not self._allowances:
            return True
        alone = self._one_at_a_time or self._is_cost_unreported(manifest)
        return not alone and not self._first_reached(manifest, _UNKNOWN_COST_MARGIN)

    def allow(self, manifest: Manifest, eval_id: str, capacity: int) -> Allowance | None:
        """Return the allowance of an evaluation that is about to start; None without caps."""
        self._started_at[eval_id] = time.monotonic()
        caps = caps_of(manifest)
        if not caps:
            return None
        alone = self._one_at_a_time or self._is_cost_unreported(manifest)
        sharing = 1 if alone else max(1, capacity - len(self._allowances))
        if sharing == 1 and not self._allowances:
            self._given_all.add(eval_id)
        limits: Caps = {}
        for kind, role, left in self._left(manifest, caps):
            needed = self._needed(manifest, kind, role)
            if self._is_unknown(kind, role):
                needed *= _UNKNOWN_COST_MARGIN
            enough_for = int(left // needed) if needed > 0 else sharing
            limits.setdefault(kind, {})[role] = max(0.0, left) / max(1, min(sharing, enough_for))
        allowance = self._allowances[eval_id] = Allowance(limits)
        return allowance

    def fell_short(self, eval_id: str) -> None:
        """Note that the allowance of an evaluation was too small for it."""
        self._is_over = self._is_over or eval_id in self._given_all
        self._one_at_a_time = True

    def release(self, eval_id: str, outcome: EvalOutcome) -> None:
        """Replace the allowance of an evaluation that has ended by the amount it has spent. Its
        outcome is recorded later."""
        allowance = self._allowances.pop(eval_id, None)
        if allowance is not None:
            self._unrecorded[eval_id] = used_of(outcome, allowance.limits)

    def _first_reached(self, manifest: Manifest, margin: float = 1.0) -> str:
        """Return which cap has too little left for another evaluation, in words; "" if none has.

        Args:
            manifest: The run.
            margin: How many evaluations of unknown cost must still fit.
        """
        if self._is_over:
            return "what is left under the caps is not enough for an evaluation"
        caps = caps_of(manifest)
        for kind, role, left in self._left(manifest, caps) if caps else ():
            times = margin if self._is_unknown(kind, role) else 1.0
            needed = self._needed(manifest, kind, role)
            if left <= 0 or left < times * needed:
                used = amount(spent(manifest, role), kind)
                more = f", and another one may need {needed:.6g}" if 0 < left < needed else ""
                return f"{describe(kind, role)} is reached: {used:.6g} spent, {left:.6g} left{more}"
        return ""

    def _left(self, manifest: Manifest, caps: Caps) -> list[tuple[str, str, float]]:
        given = [*(each.limits for each in self._allowances.values()), *self._unrecorded.values()]
        return [
            (
                kind,
                role,
                limit
                - amount(spent(manifest, role), kind)
                - sum(limits.get(kind, {}).get(role, 0.0) for limits in given),
            )
            for kind, role, limit in each(caps)
        ]

    def _forget_ended(self, manifest: Manifest) -> None:
        ended = [e for e in self._started_at if manifest.evaluations[e].status != "running"]
        for eval_id in ended:
            self._longest_seconds = max(
                self._longest_seconds, time.monotonic() - self._started_at.pop(eval_id)
            )
            self._allowances.pop(eval_id, None)
            self._unrecorded.pop(eval_id, None)
            if self._largest is not None:
                self._count(manifest.evaluations[eval_id], self._largest)

    def _is_cost_unreported(self, manifest: Manifest) -> bool:
        """Return whether a role of unknown cost is capped and has reported no cost so far. A role
        that was part of a scored evaluation without reporting a cost will not report one."""
        largest = self._largest_costs(manifest)
        return not self._is_scored and any(
            self._is_unknown(kind, role) and largest.get((kind, role), 0.0) <= 0
            for kind, role, _ in each(caps_of(manifest))
        )

    def _is_unknown(self, kind: str, role: str) -> bool:
        return (kind, role) in self.costs.unknown

    def _needed(self, manifest: Manifest, kind: str, role: str) -> float:
        """Return the amount that another evaluation, or expansion, may need."""
        if role == IDEAS:
            return amount(spent(manifest, role), kind) / max(1, len(manifest.expanded))
        largest = self._largest_costs(manifest).get((kind, role), 0.0)
        return max(largest, self.costs.largest.get((kind, role), 0.0))

    def _largest_costs(self, manifest: Manifest) -> dict[tuple[str, str], float]:
        """Return the largest costs; all evaluations are counted the first time."""
        if self._largest is None:
            self._largest = {}
            for evaluation in manifest.evaluations.values():
                self._count(evaluation, self._largest)
        return self._largest

    def _count(self, evaluation: Evaluation, largest: dict[tuple[str, str], float]) -> None:
        if evaluation.finished_at is None:
            return
        self._is_scored |= evaluation.status == "completed"
        roles = {} if isinstance(evaluation.roles, Unset) else evaluation.roles
        for role, usage in {**roles, ALL: evaluation.usage}.items():
            for kind in FLAGS:
                largest[kind, role] = max(largest.get((kind, role), 0.0), amount(usage, kind))

    def _time_is_up(self) -> str:
        if self.max_hours is None:
            return ""
        left = self.max_hours * _SECONDS_PER_HOUR - (time.monotonic() - self._began)
        self.is_out_of_time = left <= 0 or left < self._longest_seconds
        if not self.is_out_of_time:
            return ""
        return f"--max-hours {self.max_hours:g} is reached, or would be before another one ends"


def known_costs(config: Config) -> CallCosts:
    """Return the known costs of calls. Command-line agents report theirs when they are done,
    unless the configuration gives a limit; chat endpoints know it before each call."""
    agents = config.agents
    roles = {"planner": agents.planner, "coder": agents.coder, "reviewer": agents.reviewer}
    unknown: set[tuple[str, str]] = set()
    largest: dict[tuple[str, str], float] = {}
    for role, backend in roles.items():
        if not isinstance(backend, CommandBackend | ScriptedBackend):
            continue
        told = Usage() if isinstance(backend, ScriptedBackend) else backend.most
        for kind in FLAGS:
            if limit := amount(told, kind):
                largest[kind, role] = limit
                largest[kind, ALL] = max(limit, largest.get((kind, ALL), 0.0))
            else:
                unknown |= {(kind, role), (kind, ALL)}
    return CallCosts(frozenset(unknown), largest)


def caps_of(manifest: Manifest) -> Caps:
    return {} if isinstance(manifest.caps, Unset) else manifest.caps
