"""Keeping a run within its caps: allowances for what is under way, and when to stop.

Work is handed out as long as what is left, after the allowances of all that is under way, is
enough for an evaluation as they were so far: as they are on average where it is known before a call
what it may cost, else as the most expensive one. Where it is not enough, what is under way ends
first: what it has not used is there again. An evaluation that its share was too little for is
tried once more alone, with all that is left.

Of some agents nobody knows what a call may cost: an allowance cannot hold them back. While nothing
is known of them, there is one at a time; afterwards several, as long as each has four times what
the most expensive one has cost.
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
_MARGIN = 4.0
"""How much more than the most expensive one each of several may cost."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of a call before it is made, by kind and role."""

    unknown: frozenset[tuple[str, str]] = frozenset()
    """Of these nobody knows what they may cost."""
    most: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """What the configuration says that a call of a command-line agent uses at most."""


@dataclass(slots=True)
class Meter:
    """Of one invocation. `max_hours` is its own; the caps are the run's."""

    max_hours: float | None = None
    prior: Prior = Prior()
    why: str = ""
    """What was reached, in words."""
    is_out_of_time: bool = False
    _began: float = field(default_factory=time.monotonic)
    _out: dict[str, Allowance] = field(default_factory=dict)
    _unrecorded: dict[str, Caps] = field(default_factory=dict)
    """What was spent by evaluations that are over and wait for a verdict."""
    _since: dict[str, float] = field(default_factory=dict)
    _longest: float = 0.0
    _whole: set[str] = field(default_factory=set)
    _one_at_a_time: bool = False
    _is_over: bool = False
    _ended: int | None = None
    """How many evaluations have an outcome."""
    _largest: dict[tuple[str, str], float] = field(default_factory=dict)
    """What one evaluation has cost at most, by kind and role."""
    _is_scored: bool = False

    def word(self, manifest: Manifest) -> Literal["go", "wait", "end"]:
        """Whether a further evaluation may start now."""
        self._forget_ended(manifest)
        self.why = self._time_is_up() or self._first_reached(manifest)
        if self.why:
            return "wait" if self._out else "end"
        return "go" if self.may_start(manifest) else "wait"

    def may_start(self, manifest: Manifest) -> bool:
        """Whether another one may start beside those that are under way."""
        if not self._out:
            return True
        alone = self._one_at_a_time or self._knows_nothing(manifest)
        return not alone and not self._first_reached(manifest, _MARGIN)

    def allow(self, manifest: Manifest, eval_id: str, capacity: int) -> Allowance | None:
        """The allowance of an evaluation that is about to start; None where nothing is capped."""
        self._since[eval_id] = time.monotonic()
        caps = caps_of(manifest)
        if not caps:
            return None
        alone = self._one_at_a_time or self._knows_nothing(manifest)
        sharing = 1 if alone else max(1, capacity - len(self._out))
        if sharing == 1 and not self._out:
            self._whole.add(eval_id)
        limits: Caps = {}
        for kind, role, left in self._left(manifest, caps):
            needed = self._needed(manifest, kind, role)
            if self._is_unknown(kind, role):
                needed *= _MARGIN
            enough_for = int(left // needed) if needed > 0 else sharing
            limits.setdefault(kind, {})[role] = max(0.0, left) / max(1, min(sharing, enough_for))
        allowance = self._out[eval_id] = Allowance(limits)
        return allowance

    def fell_short(self, eval_id: str) -> None:
        """An evaluation could not go on with what it was given: all there was, or its share."""
        self._is_over = self._is_over or eval_id in self._whole
        self._one_at_a_time = True

    def held(self, eval_id: str, outcome: EvalOutcome) -> None:
        """An evaluation is over and its verdict has to wait: it spends no more than it has."""
        allowance = self._out.pop(eval_id, None)
        if allowance is not None:
            self._unrecorded[eval_id] = used_of(outcome, allowance.limits)

    def _first_reached(self, manifest: Manifest, margin: float = 1.0) -> str:
        """Which cap has too little left for another one; of unknown cost, for so many."""
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
        given = [*(each.limits for each in self._out.values()), *self._unrecorded.values()]
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
        ended = [e for e in self._since if manifest.evaluations[e].status != "running"]
        for eval_id in ended:
            self._longest = max(self._longest, time.monotonic() - self._since.pop(eval_id))
            self._out.pop(eval_id, None)
            self._unrecorded.pop(eval_id, None)
            if self._ended is not None:
                self._count(manifest.evaluations[eval_id])

    def _knows_nothing(self, manifest: Manifest) -> bool:
        """Whether a role of unknown cost is capped, and nothing has told what it costs. One that
        was scored without telling will not tell."""
        self._look(manifest)
        return not self._is_scored and any(
            self._is_unknown(kind, role)
            and self._typical(manifest, kind, role) <= 0
            and self._largest.get((kind, role), 0.0) <= 0
            for kind, role, _ in each(caps_of(manifest))
        )

    def _is_unknown(self, kind: str, role: str) -> bool:
        return (kind, role) in self.prior.unknown

    def _needed(self, manifest: Manifest, kind: str, role: str) -> float:
        """What must be left for another evaluation, or expansion."""
        needed = self._typical(manifest, kind, role)
        needed = max(needed, self.prior.most.get((kind, role), 0.0))
        if not self._is_unknown(kind, role):
            return needed
        return max(needed, self._largest.get((kind, role), 0.0))

    def _look(self, manifest: Manifest) -> int:
        """How many evaluations have an outcome; all are looked at once."""
        if self._ended is None:
            self._ended = 0
            for evaluation in manifest.evaluations.values():
                self._count(evaluation)
        return self._ended

    def _count(self, evaluation: Evaluation) -> None:
        if evaluation.finished_at is None or self._ended is None:
            return
        self._ended += 1
        self._is_scored |= evaluation.status == "completed"
        roles = {} if isinstance(evaluation.roles, Unset) else evaluation.roles
        for role, usage in {**roles, ALL: evaluation.usage}.items():
            for kind in FLAGS:
                largest = self._largest.get((kind, role), 0.0)
                self._largest[kind, role] = max(largest, amount(usage, kind))

    def _typical(self, manifest: Manifest, kind: str, role: str) -> float:
        """What one evaluation, or one expansion, has cost on average."""
        used = amount(spent(manifest, role), kind)
        if role == IDEAS:
            return used / max(1, len(manifest.expanded))
        if role == ALL:
            used -= amount(spent(manifest, IDEAS), kind)
        return used / max(1, self._look(manifest))

    def _time_is_up(self) -> str:
        if self.max_hours is None:
            return ""
        left = self.max_hours * _SECONDS_PER_HOUR - (time.monotonic() - self._began)
        self.is_out_of_time = left <= 0 or left < self._longest
        if not self.is_out_of_time:
            return ""
        return f"--max-hours {self.max_hours:g} is reached, or would be before another one ends"


def prior_of(config: Config) -> Prior:
    """Command-line agents say what they have cost when they are done, unless the configuration
    says what they cost at most; of a chat endpoint that is known before each call."""
    agents = config.agents
    roles = {"planner": agents.planner, "coder": agents.coder, "reviewer": agents.reviewer}
    unknown: set[tuple[str, str]] = set()
    most: dict[tuple[str, str], float] = {}
    for role, backend in roles.items():
        if not isinstance(backend, CommandBackend | ScriptedBackend):
            continue
        told = Usage() if isinstance(backend, ScriptedBackend) else backend.most
        for kind in FLAGS:
            if limit := amount(told, kind):
                most[kind, role] = limit
                most[kind, ALL] = max(limit, most.get((kind, ALL), 0.0))
            else:
                unknown |= {(kind, role), (kind, ALL)}
    return Prior(frozenset(unknown), most)


def caps_of(manifest: Manifest) -> Caps:
    return {} if isinstance(manifest.caps, Unset) else manifest.caps
