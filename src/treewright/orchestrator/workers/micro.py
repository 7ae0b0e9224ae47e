"""`micro`: Lean's own closing tactics, cheap ones first, on the goal and after opening steps."""

from __future__ import annotations

import time

from treewright.lean.session.answers import ProofState
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, StrategyType
from treewright.orchestrator.workers.worker import Hole, LeanWorker, key_of_states, run_on_all

CHEAP_CLOSERS = ("rfl", "trivial", "assumption", "decide", "simp", "omega")
EXPENSIVE_CLOSERS = ("simp_all", "grind")
OPENERS = ("intros", "intros; subst_vars", "intros; constructor", "intros; funext _")
_SHARE = 3
"""One tactic gets at most one part in this many of the strategy's time."""


_Start = tuple[tuple[str, ...], tuple[ProofState, ...]]
"""Steps, and the states that they lead to."""


class MicroWorker(LeanWorker):
    """Tries closing tactics on the states, and on the states after an opening step."""

    strategy = StrategyType.MICRO

    async def close_hole(
        self, session: AsyncLeanSession, hole: Hole, goal: Goal, deadline: float
    ) -> tuple[str, ...] | None:
        share = max(0.1, (deadline - time.monotonic()) / _SHARE)
        if steps := await _first_closer(session, [((), hole.states)], CHEAP_CLOSERS, share):
            return steps
        seen = {key_of_states(hole.states)}
        starts: list[_Start] = [((), hole.states)]
        for opener in OPENERS:
            opened = await run_on_all(session, hole.states, opener, share)
            if opened is None:
                continue
            if _closed(opened):
                return (opener,)
            if key_of_states(opened) not in seen:
                seen.add(key_of_states(opened))
                starts.append(((opener,), opened))
        if steps := await _first_closer(session, starts[1:], CHEAP_CLOSERS, share):
            return steps
        return await _first_closer(session, starts, EXPENSIVE_CLOSERS, share)


async def _first_closer(
    session: AsyncLeanSession, starts: list[_Start], closers: tuple[str, ...], share: float
) -> tuple[str, ...] | None:
    """Try each closer on all starts, cheap closers first; return the first script that closes."""
    for closer in closers:
        for steps, states in starts:
            single = all(len(state.goals) == 1 for state in states)
            tactic = closer if single else f"all_goals {closer}"
            left = await run_on_all(session, states, tactic, share)
            if left is not None and _closed(left):
                return (*steps, tactic)
    return None


def _closed(states: tuple[ProofState, ...]) -> bool:
    return all(state.complete for state in states)


strategy = Strategy("core tactics, cheap ones first", 8.0, lambda tools: MicroWorker(tools.lean))
