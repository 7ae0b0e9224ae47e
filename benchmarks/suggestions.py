"""`python -m benchmarks.suggestions`: Lean's own suggestion tactics on goals of the bank.

How long each takes and how often it closes the goal, beside what a survey takes. A minute.
"""

from __future__ import annotations

import statistics
import time

from tests.proving.bank import bank

from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.orchestrator.workers.meter import cpu_seconds
from treewright.proving.environment import views
from treewright.proving.tactics.goal_outline import introduced

TACTICS = ("exact?", "rw?", "try?", "grind +suggestions", "simp_all? +suggestions")
EVERY = 14
SECONDS = 30.0


def main() -> None:
    took: dict[str, list[float]] = {}
    closed: dict[str, int] = {}
    goals = [goal for goal in bank() if not goal.one_step][::EVERY]
    with HostSession(ensure_installed()) as session:
        for goal in goals:
            state = session.start(goal.text)
            assert isinstance(state, ProofState)
            names = introduced(views(state.goals)[0])
            after = session.run_tactic(state, f"intro {' '.join(names)}") if names else state
            state = after if isinstance(after, ProofState) else state
            for tactic in ("survey", *TACTICS):
                before = cpu_seconds(session.pid)
                begun = time.perf_counter()
                if tactic == "survey":
                    session.survey(state, library=True)
                    done = False
                else:
                    result = session.run_tactic(state, tactic, SECONDS)
                    done = isinstance(result, ProofState) and result.closed and result.complete
                spent = cpu_seconds(session.pid) - before
                took.setdefault(tactic, []).append(spent)
                closed[tactic] = closed.get(tactic, 0) + done
                print(f"{goal.id:24} {tactic:24} {spent:6.2f} s {time.perf_counter() - begun:6.1f}")
    for tactic, times in took.items():
        print(
            f"{tactic:24} closes {closed[tactic]} of {len(goals)}; processor time: "
            f"median {statistics.median(times):.2f} s, most {max(times):.2f} s"
        )


if __name__ == "__main__":
    main()
