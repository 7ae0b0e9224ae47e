"""`python -m benchmarks.prove_bank [CLASS…]`: the bundled goals, by each policy and by cells.

Prints what was proved (and replayed), by class. Not part of `make bench`: it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from tests.mcts.bank import BANK, BankGoal, Sessions, bank, by_policy, proved, search

from treewright.cellview.runner import CellViewRunner
from treewright.lean.replay import Replayer
from treewright.lean.wasm.install import ensure_installed
from treewright.mcts.cell_settings import CellSettings
from treewright.mcts.expansion import Expander
from treewright.mcts.search import Runner
from treewright.search.andor import policies

SIMULATIONS = 200


def distributed(expander: Expander) -> Runner:
    return CellViewRunner(expander, CellSettings(agents=4), 0)


RUNNERS = {**{name: by_policy(name) for name in policies.known()}, "distributed": distributed}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prove_bank", description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS")
    parser.add_argument("--mode", choices=RUNNERS, action="append")
    parser.add_argument("--bank", type=Path, default=BANK)
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th goal")
    options = parser.parse_args()
    goals = [g for g in bank(options.bank) if not options.classes or g.kind in options.classes]
    goals = goals[:: options.every]
    home = ensure_installed()
    sessions = Sessions(home)
    try:
        with Replayer(home) as replayer:
            for mode in options.mode or RUNNERS:
                measure(mode, goals, sessions, replayer)
    finally:
        sessions.close()


def measure(mode: str, goals: list[BankGoal], sessions: Sessions, replayer: Replayer) -> None:
    count: Counter[str] = Counter()
    solved: Counter[str] = Counter()
    simulations = 0
    spent = inside = 0.0
    begun = time.perf_counter()
    for goal in goals:
        found = search(sessions, goal.text, SIMULATIONS, runner=RUNNERS[mode])
        done = found.script is not None and proved(replayer, goal.text, found.script)
        count[goal.kind] += 1
        solved[goal.kind] += done
        simulations += found.simulations
        spent += found.seconds
        inside += found.lean_seconds
        if not done:
            print(f"{mode}: not proved: {goal.id}: {goal.text}", flush=True)
    seconds = time.perf_counter() - begun
    for kind, total in count.items():
        print(f"{mode:12} {kind:14} {solved[kind]:3} of {total:3}")
    share = sum(solved.values()) / max(1, sum(count.values()))
    print(f"{mode:12} {'all':14} {sum(solved.values()):3} of {sum(count.values()):3}  {share:.0%}")
    print(f"{mode:12} {simulations} simulations, {seconds:.0f} s, in Lean {inside / spent:.1%}")


if __name__ == "__main__":
    main()
