"""Ten thousand random steps over a hundred goals, every success confirmed elsewhere.

    python -m benchmarks.lean_soak --steps 10000

A second session repeats every step that succeeded and must reach the same goals; every finished
proof goes through the replay check; every 50th failure is tried again in a fresh session.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass, field

from benchmarks.lean_goals import GOALS, TACTICS
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import ProofState, SessionLost, TacticError, Timeout
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

MAXIMUM_DEPTH = 8
STATES_PER_GOAL = 6
STEP_SECONDS = 5.0


@dataclass
class SoakReport:
    """What happened; `problems` must be empty."""

    steps: int = 0
    successes: int = 0
    failures: int = 0
    timeouts: int = 0
    lost: int = 0
    proofs: int = 0
    retried: int = 0
    seconds: float = 0.0
    heap_early: int = 0
    heap_late: int = 0
    rss_early: int = 0
    rss_late: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A state in the session under test, its twin in the verifier, and the way to it."""

    mine: ProofState
    twin: ProofState
    path: tuple[str, ...]


def soak(home: LeanHome, replayer: Replayer, steps: int, seed: int) -> SoakReport:
    chance = random.Random(seed)
    report = SoakReport()
    run = Run(home, replayer, report, chance, early=max(50, steps // 20))
    try:
        begun = time.perf_counter()
        while report.steps < steps:
            if report.steps % 1000 == 0:
                print(f"step {report.steps}, {len(report.problems)} problems", flush=True)
            run.goal(GOALS[(report.steps // 100) % len(GOALS)], min(100, steps - report.steps))
        report.seconds = time.perf_counter() - begun
        report.heap_late, report.rss_late = run.mine.heap_bytes, run.mine.memory().rss
    finally:
        run.close()
    return report


class Run:
    def __init__(
        self,
        home: LeanHome,
        replayer: Replayer,
        report: SoakReport,
        chance: random.Random,
        early: int,
    ) -> None:
        self.early = early
        self.home, self.replayer, self.report, self.chance = home, replayer, report, chance
        self.mine, self.twin = HostSession(home), HostSession(home)

    def close(self) -> None:
        self.mine.close()
        self.twin.close()

    def goal(self, statement: str, steps: int) -> None:
        """A random walk over one goal's proof states."""
        self.mine.reset()
        self.twin.reset()
        mine, twin = self.mine.start(statement), self.twin.start(statement)
        assert isinstance(mine, ProofState), mine
        assert isinstance(twin, ProofState), twin
        places = [Place(mine, twin, ())]
        for _ in range(steps):
            place = self.chance.choice(places)
            tactic = self.chance.choice(TACTICS)
            found = self.step(statement, place, tactic)
            self.report.steps += 1
            if self.report.steps == self.early:
                self.report.heap_early = self.mine.heap_bytes
                self.report.rss_early = self.mine.memory().rss
            if not self.mine.alive or not self.twin.alive:
                self.report.lost += 1
                self.close()
                self.mine, self.twin = HostSession(self.home), HostSession(self.home)
                return
            if found is not None and len(found.path) < MAXIMUM_DEPTH:
                places.append(found)
                if len(places) > STATES_PER_GOAL:
                    dropped = places.pop(self.chance.randrange(1, len(places)))
                    self.mine.free([dropped.mine])
                    self.twin.free([dropped.twin])

    def step(self, statement: str, place: Place, tactic: str) -> Place | None:
        result = self.mine.run_tactic(place.mine, tactic, STEP_SECONDS)
        path = (*place.path, tactic)
        if isinstance(result, ProofState):
            self.report.successes += 1
            twin = self.twin.run_tactic(place.twin, tactic, STEP_SECONDS * 4)
            if not isinstance(twin, ProofState) or twin.hash != result.hash:
                self.report.problems.append(f"{statement}: {path}: {result} but {twin}")
                return None
            if result.closed and result.complete:
                self.report.proofs += 1
                verdict = self.replayer.theorem(statement, "\n".join(path))
                if not verdict.proved:
                    self.report.problems.append(f"{statement}: {path}: {verdict}")
            return None if result.closed else Place(result, twin, path)
        if isinstance(result, Timeout):
            self.report.timeouts += 1
        elif isinstance(result, TacticError):
            self.report.failures += 1
            if self.report.failures % 50 == 0:
                self.retry(statement, place.path, tactic, result)
        elif not isinstance(result, SessionLost):
            self.report.problems.append(f"{statement}: {path}: {result}")
        return None

    def retry(self, statement: str, path: tuple[str, ...], tactic: str, first: TacticError) -> None:
        """The same failure from the beginning, in a session that has done nothing else."""
        self.report.retried += 1
        with HostSession(self.home) as fresh:
            state = fresh.start(statement)
            for earlier in path:
                assert isinstance(state, ProofState), (statement, path, state)
                state = fresh.run_tactic(state, earlier, STEP_SECONDS * 4)
            assert isinstance(state, ProofState), (statement, path, state)
            again = fresh.run_tactic(state, tactic, STEP_SECONDS * 4)
            if not isinstance(again, TacticError) or again.kind != first.kind:
                self.report.problems.append(f"{statement}: {path} {tactic}: {first} but {again}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    home = ensure_installed()
    with Replayer(home) as replayer:
        report = soak(home, replayer, options.steps, options.seed)
    for name, value in vars(report).items():
        if name != "problems":
            print(
                f"{name:<12} {value / 1e6:.0f} MB"
                if name[:4] in ("heap", "rss_")
                else f"{name:<12} {value}"
            )
    for problem in report.problems:
        print("PROBLEM", problem)
    raise SystemExit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
