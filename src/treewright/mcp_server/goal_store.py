"""Goals that were handed out, by name: where they came from, and their state in a session.

A state lives as long as its session. When that is gone, it is made again from where it came: the
text and its `sorry`, or the statement, and the tactics since. The oldest are forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanSession
from treewright.mcp_server.warm_lean import WarmLean

MOST_GOALS = 1_000
MOST_BYTES = 32 << 20
Making = Callable[[LeanSession], ProofState]


@dataclass(slots=True, eq=False)
class KeptGoal:
    """`make` makes its state in a session; `weight` is what it keeps in memory."""

    name: str
    lean: WarmLean
    make: Making
    session: HostSession
    state: ProofState
    weight: int = 0

    def in_session(self, session: HostSession) -> ProofState:
        """Its state there, made again if it was in another one."""
        if session is not self.session:
            self.session, self.state = session, self.make(session)
        return self.state


class Goals:
    """May be used by several threads."""

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
            while len(self._kept) > MOST_GOALS or (
                self._bytes > MOST_BYTES and len(self._kept) > 1
            ):
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.weight
                self._freed.append(oldest)
            return goal

    def find(self, name: str) -> KeptGoal:
        with self._lock:
            goal = self._kept.get(name)
            if goal is None:
                raise UsageError(f"there is no goal {name!r} (any more); ask lean_goals for it")
            self._kept.move_to_end(name)
            return goal

    def take_freed(self, session: HostSession) -> list[ProofState]:
        """States of a session that nobody can name any more."""
        with self._lock:
            mine = [goal.state for goal in self._freed if goal.session is session]
            self._freed = [
                goal for goal in self._freed if goal.session is not session and goal.session.alive
            ]
            return mine

    def __len__(self) -> int:
        return len(self._kept)
