"""Goals as a search and its trace see them: apart if they can be, the same in every process."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from treewright.lean.types import Goal, ProofState
from treewright.proving.records import GoalView

_INTERNAL = re.compile(r"(\?m|\?u|_uniq|_fvar|_mvar)\.\d+")


def together(state: ProofState) -> tuple[tuple[int, ...], ...]:
    """The goals of a state by what must be solved together, in order of their first goals.

    Goals that share metavariables with others form one group, all of them: a script can close
    the single goals one by one and then go on with the rest.
    """
    single = [group for group in state.groups if len(group) == 1]
    linked = sorted(index for group in state.groups if len(group) > 1 for index in group)
    return tuple(sorted([*single, tuple(linked)] if linked else single))


def views(goals: Sequence[Goal]) -> tuple[GoalView, ...]:
    return tuple(_view(goal) for goal in goals)


def _view(goal: Goal) -> GoalView:
    hypotheses = tuple(
        msgspec.structs.replace(h, type=stable(h.type), value=h.value and stable(h.value))
        for h in goal.hypotheses
    )
    # Lean adds a scope to a case's name; the number in it depends on the session.
    case = goal.case and goal.case.partition("._@")[0]
    return GoalView(stable(goal.target), hypotheses, case)


def stable(text: str) -> str:
    """Lean numbers what has no name as it goes; here by order of appearance instead."""
    numbers: dict[str, int] = {}

    def renumber(found: re.Match[str]) -> str:
        return f"{found.group(1)}.{numbers.setdefault(found.group(0), len(numbers) + 1)}"

    return _INTERNAL.sub(renumber, text)
