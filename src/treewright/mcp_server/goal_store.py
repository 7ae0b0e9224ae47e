"""The goals that answers have named, with their proof states.

A state lives as long as its Lean session. After that, it is made again from its origin: the text
and its `sorry`, or the statement, and the tactics since. The oldest goals are dropped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.mcp_server.warm_lean import WarmLean

MAX_GOALS = 1_000
MAX_BYTES = 32 << 20
Making = Callable[[HostSession], ProofState]


@dataclass(slots=True, eq=False)
class KeptGoal:
    """A named goal. `make` makes its state in a session; `weight` is its size in bytes."""

    name: str
    lean: WarmLean
    make: Making
    session: HostSession
    state: ProofState
    weight: int = 0

    def in_session(self, session: HostSession) -> ProofState:
        """Return the state in a session; it is made again if it was in another session."""
        if session is not self.session:
            self.session, self.state = session, self.make(session)
        return self.state


class GoalStore:
    """The named goals of a server. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, KeptGoal] = OrderedDict()
        self._freed: list[KeptGoal] = []
        self._bytes = 0
        self._last = 0

    def keep(
        self,
        lean: WarmLean,
        make: Making,
        session: HostSession,
        state: ProofState,
        weight: int = 0,
    ) -> KeptGoal:
        with self._lock:
            self._last += 1
            goal = KeptGoal(f"g{self._last}", lean, make, session, state, weight)
            self._kept[goal.name] = goal
            self._bytes += weight
            while len(self._kept) > MAX_GOALS or (self._bytes > MAX_BYTES and len(self._kept) > 1):
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.weight
                self._freed.append(oldest)
            return goal

    def find(self, name: str) -> KeptGoal:
        with self._lock:
            goal = self._kept.get(name)
            if goal is None:
                raise UsageError(
                    f"there is no goal {name!r}, or it was dropped; call lean_goals again"
                )
            self._kept.move_to_end(name)
            return goal

    def take_freed(self, session: HostSession) -> list[ProofState]:
        """Return the states of a session with goals that were dropped."""
        with self._lock:
            mine = [goal.state for goal in self._freed if goal.session is session]
            self._freed = [
                goal for goal in self._freed if goal.session is not session and goal.session.alive
            ]
            return mine

    def __len__(self) -> int:
        return len(self._kept)
