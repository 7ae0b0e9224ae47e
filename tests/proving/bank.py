"""The bundled goal set, and one search on one of its goals."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.environment import LeanEnvironment
from treewright.proving.expansion import Expander, estimate_provability
from treewright.proving.script import extraction
from treewright.proving.search import Runner
from treewright.proving.tactics.core import CoreTactics
from treewright.search.andor import policies
from treewright.search.andor.policies import Mcts

BANK = Path(__file__).parents[2] / "bench" / "bank.jsonl"
LARGEST_HEAP = 1_200_000_000


class BankGoal(msgspec.Struct, frozen=True, rename={"kind": "class"}):
    """A line of the bank; docs/tactics.md describes the fields."""

    id: str
    text: str
    kind: str
    estimated_difficulty: float
    one_step: bool = False
    min_steps: int = 0

    @property
    def held_out(self) -> bool:
        """Whether rules are not tuned on it; by the same rule as for the levels."""
        return int(hashlib.sha256(self.id.encode()).hexdigest()[0], 16) % 2 == 1


def bank(path: Path = BANK) -> list[BankGoal]:
    return [msgspec.json.decode(line, type=BankGoal) for line in path.read_bytes().splitlines()]


class LastingSession(HostSession):
    """One Lean for many goals: an environment that closes it only empties it."""

    lasting = False

    def close(self) -> None:
        if not self.lasting or not self.alive or self.heap_bytes > LARGEST_HEAP:
            super().close()
        else:
            self.reset()


@dataclass
class Sessions:
    """Hands out the session at hand, or a new one if that is gone."""

    home: LeanHome
    kind: type[LastingSession] = LastingSession
    session: LastingSession | None = None

    def __call__(self) -> LastingSession:
        if self.session is None or not self.session.alive:
            self.session = self.kind(self.home)
            self.session.lasting = True
        return self.session

    def close(self) -> None:
        if self.session is not None:
            self.session.lasting = False
            self.session.close()


@dataclass(frozen=True)
class Searched:
    """The end of a search: a script if it found one, and its cost."""

    script: str | None
    simulations: int
    seconds: float
    lean_seconds: float


def centralized(expander: Expander) -> Runner:
    return CentralizedEngine(expander, Mcts())


def by_policy(name: str, **options: object) -> Callable[[Expander], Runner]:
    policy = policies.make(name, options)
    return lambda expander: CentralizedEngine(expander, policy)


def search(
    sessions: Sessions,
    statement: str,
    simulations: int = 200,
    *,
    runner: Callable[[Expander], Runner] = centralized,
    step_seconds: float = 10.0,
) -> Searched:
    environment = LeanEnvironment(
        sessions, lambda session: session.start(statement), step_seconds=step_seconds
    )
    try:
        sessions()  # its start is not part of the search
        begun = time.perf_counter()
        expander = Expander(
            environment, CoreTactics(), estimate_provability, known=environment.knowledge
        )
        engine = runner(expander)
        done = 0
        while not engine.finished and done < simulations:
            engine.step()
            done += 1
        seconds = time.perf_counter() - begun
        engine.drain()
        engine.tree.check()
        root = engine.tree.root
        script = extraction.render(extraction.extract(root)) if root.solution else None
        return Searched(script, done, seconds, environment.lean_seconds)
    finally:
        environment.close()


def proved(replayer: Replayer, statement: str, script: str) -> bool:
    return replayer.theorem(statement, script).proved
