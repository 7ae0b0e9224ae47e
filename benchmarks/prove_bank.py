"""`python -m benchmarks.prove_bank [CLASS…]`: the bundled goals, by each policy and by cells.

Prints what was proved (and replayed), by class. Not part of `make bench`: it takes minutes.

`--bank bench/further.jsonl` takes the goals that were left out of the set. Rules are tuned on the
half of these whose ids have a sha256 that begins with an even digit; `--half` chooses. Of the other
half no statement is shown.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from pathlib import Path

from tests.proving.bank import BANK, BankGoal, Sessions, bank, by_policy, proved, search

from treewright.cellview.runner import CellViewRunner
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.verify.replayer import Replayer
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander
from treewright.proving.search import Runner
from treewright.search.andor import policies

SIMULATIONS = 200
STEP_HELP = "what a tactic may take by the clock; more where a process has a small part of a core"


def distributed(expander: Expander) -> Runner:
    return CellViewRunner(expander, CellSettings(agents=4), 0)


RUNNERS = {**{name: by_policy(name) for name in policies.known()}, "distributed": distributed}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prove_bank", description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS")
    parser.add_argument("--mode", choices=RUNNERS, action="append")
    parser.add_argument("--bank", type=Path, default=BANK)
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th goal")
    parser.add_argument("--half", choices=("tuned-on", "held-out", "both"), default="both")
    parser.add_argument("--only", default="", metavar="PATTERN", help="of ids")
    parser.add_argument("--step-seconds", type=float, default=10.0, help=STEP_HELP)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    goals = [
        goal
        for goal in bank(options.bank)
        if not options.classes or goal.kind in options.classes
        if options.half == "both" or goal.held_out == (options.half == "held-out")
        if re.search(options.only, goal.id)
    ]
    goals = goals[:: options.every]
    home = ensure_installed()
    sessions = Sessions(home)
    try:
        with Replayer(home) as replayer:
            for mode in options.mode or RUNNERS:
                measure(mode, goals, sessions, replayer, options)
    finally:
        sessions.close()


def measure(
    mode: str,
    goals: list[BankGoal],
    sessions: Sessions,
    replayer: Replayer,
    options: argparse.Namespace,
) -> None:
    halves: Counter[bool] = Counter()
    count: Counter[str] = Counter()
    solved: Counter[str] = Counter()
    simulations = 0
    spent = inside = 0.0
    begun = time.perf_counter()
    for goal in goals:
        found = search(
            sessions,
            goal.text,
            SIMULATIONS,
            runner=RUNNERS[mode],
            step_seconds=options.step_seconds,
        )
        done = found.script is not None and proved(replayer, goal.text, found.script)
        count[goal.kind] += 1
        solved[goal.kind] += done
        halves[goal.held_out] += done
        simulations += found.simulations
        spent += found.seconds
        inside += found.lean_seconds
        aside = goal.held_out and options.bank != BANK  # rules were tuned on all of the bank
        shown = "" if aside else f": {goal.text}"
        took = f"{found.simulations} simulations, {found.seconds:.1f} s"
        if options.verbose or not done:
            print(f"{mode}: {'' if done else 'not '}proved: {goal.id} ({took}){shown}", flush=True)
        if options.verbose and done and not aside:
            print("    " + (found.script or "").replace("\n", "\n    "), flush=True)
    seconds = time.perf_counter() - begun
    for kind, total in count.items():
        print(f"{mode:12} {kind:14} {solved[kind]:3} of {total:3}")
    for aside in (False, True) if options.bank != BANK else ():
        which = "held out" if aside else "tuned on"
        total = sum(goal.held_out == aside for goal in goals)
        print(f"{mode:12} {which:14} {halves[aside]:3} of {total:3}")
    share = sum(solved.values()) / max(1, sum(count.values()))
    print(f"{mode:12} {'all':14} {sum(solved.values()):3} of {sum(count.values()):3}  {share:.0%}")
    print(f"{mode:12} {simulations} simulations, {seconds:.0f} s, in Lean {inside / spent:.1%}")


if __name__ == "__main__":
    main()
