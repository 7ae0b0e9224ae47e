"""How provable a goal looks before anything was tried on it.

A guess between 0 and 1 from its shape alone: short targets, targets that stand among the
hypotheses, closed facts look good; existentials and long targets look worse. It does not ask how
many tactics apply: being expandable is not being provable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from treewright.proving.records import GoalView

_TOKEN = re.compile(r"[A-Za-z_α-ωΑ-Ω✝₀-₉.']+|\d+|[^\sA-Za-z\d]")
_HALF_AT_TOKENS = 40.0
_EXISTS = 0.8
_FALSE_TARGET = 0.6
_NEARLY_CERTAIN = 0.95


def estimate(goals: Sequence[GoalView]) -> float:
    """The product over goals that must be solved together."""
    value = 1.0
    for goal in goals:
        value *= _estimate_one(goal)
    return value


def _estimate_one(goal: GoalView) -> float:
    target = goal.target
    if target == "True" or any(h.type == target for h in goal.hypotheses):
        return _NEARLY_CERTAIN
    value = 1.0 / (1.0 + len(_TOKEN.findall(target)) / _HALF_AT_TOKENS)
    if "∃" in target:
        value *= _EXISTS
    if target == "False":
        value *= _FALSE_TARGET
    return min(_NEARLY_CERTAIN, value)
