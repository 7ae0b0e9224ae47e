"""Which policy finds more with the same number of evaluations: `python -m benchmarks.policies`.

Every policy at its defaults, AB-MCTS of treequest beside them, on the landscapes of
`landscapes.py`, with noise on every measurement. Half of the seeds were set aside while defaults
were chosen; the two halves are shown apart. Then what waiting costs: the share of time that eight
workers are busy when evaluations take log-normal times (sigma 1), and the evaluations that each
order needs to get to the same quality, in simulated time.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import treewright
from benchmarks.landscapes import LANDSCAPES, Landscape
from treewright.search import policies
from treewright.search.durable_search import Search
from treewright.search.tasks import Task

NOISE = 0.05
BUDGETS = (25, 50, 100, 200)
TUNED, HELD_OUT = range(100, 120), range(200, 220)
THEIRS = "treequest"
WORKERS = 8


def measured(landscape: Landscape, state: Any, rng: random.Random) -> float:
    return landscape.quality(state) + rng.gauss(0.0, NOISE)


def ours(landscape: Landscape, policy: str, seed: int) -> list[float]:
    """The true quality of the best by measurement, after each evaluation."""
    found: list[tuple[float, float]] = []

    def evaluate(task: Task) -> treewright.Result:
        rng = random.Random(task.seed)
        state = landscape.change(task.parent.data, rng)
        score = measured(landscape, state, rng)
        found.append((score, landscape.quality(state)))
        return treewright.Result(score, data=state)

    start = landscape.start()
    with treewright.open_search(
        policy=policy,
        seed=seed,
        budget=max(BUDGETS),
        root=start,
        root_score=measured(landscape, start, random.Random(seed)),
    ) as search:
        search.run(evaluate)
    return best_so_far(found)


def theirs(landscape: Landscape, seed: int) -> list[float]:
    """treequest's AB-MCTS-A at its defaults. Its scores are from 0 to 1; its root has none."""
    import numpy as np
    from treequest.algos.ab_mcts_a.algo import ABMCTSA

    np.random.seed(seed)
    random.seed(seed)
    found: list[tuple[float, float]] = []

    def generate(parent: Any) -> tuple[Any, float]:
        rng = random.Random(seed * 1000 + len(found))
        state = landscape.change(landscape.start() if parent is None else parent, rng)
        score = min(1.0, max(0.0, measured(landscape, state, rng)))
        found.append((score, landscape.quality(state)))
        return state, score

    algorithm = ABMCTSA()
    grown = algorithm.init_tree()
    for _ in range(max(BUDGETS)):
        grown = algorithm.step(grown, {"change": generate}, inplace=True)
    return best_so_far(found)


def best_so_far(found: Sequence[tuple[float, float]]) -> list[float]:
    best, curve = (-math.inf, 0.0), []
    for pair in found:
        best = max(best, pair)
        curve.append(best[1])
    return curve


def compare(seeds: Sequence[int]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """By landscape and policy: mean and standard error at each budget."""
    table: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for kind in LANDSCAPES:
        row = table[kind(0).name] = {}  # type: ignore[call-arg]
        for name in [*policies.known(), THEIRS]:
            curves = [
                theirs(kind(seed), seed) if name == THEIRS else ours(kind(seed), name, seed)  # type: ignore[call-arg]
                for seed in seeds
            ]
            row[name] = []
            for budget in BUDGETS:
                at = [curve[min(budget, len(curve)) - 1] for curve in curves]
                row[name].append((statistics.mean(at), statistics.stdev(at) / len(at) ** 0.5))
    return table


# -- what waiting costs ----------------------------------------------------------------------


def simulate(
    search: Search, evaluate: Callable[[Task], treewright.Result], seed: int
) -> tuple[float, list[int]]:
    """Runs a search in simulated time. Returns the share of busy time, and who came when.

    Evaluations take log-normal times with sigma 1. The end, when workers run out of work because
    the budget is used up, is not counted as waiting.
    """
    clock = busy = counted = 0.0
    under_way: list[tuple[float, int, Task]] = []
    came: list[int] = []
    chance = random.Random(seed)
    while True:
        while len(under_way) < WORKERS and (task := search.ask(wait=False)) is not None:
            heapq.heappush(under_way, (clock + chance.lognormvariate(0.0, 1.0), task.number, task))
        if not under_way:
            return busy / (counted * WORKERS), came
        until, number, task = under_way[0]
        if max(came, default=0) + WORKERS < (search.budget or 0):
            busy += (until - clock) * len(under_way)
            counted = until
        heapq.heappop(under_way)
        clock = until
        came.append(number)
        result = evaluate(task)
        search.tell(task, result.score, data=result.data)


def waiting(seeds: Sequence[int], budget: int = 400) -> list[tuple[str, float, float]]:
    """(order, share of busy time, evaluations to the quality that `live` has after half)."""
    orders: list[tuple[str, dict[str, Any]]] = [
        ("live", {"policy": "mcts", "order": "live"}),
        ("lookahead 8", {"policy": "mcts", "lookahead": 8}),
        ("lookahead 16", {"policy": "mcts", "lookahead": 16}),
        ("lookahead 32", {"policy": "mcts", "lookahead": 32}),
        ("barrier (beam)", {"policy": "beam", "lookahead": 16}),
    ]
    shares: dict[str, list[float]] = {name: [] for name, _ in orders}
    needed: dict[str, list[int]] = {name: [] for name, _ in orders}
    for seed in seeds:
        landscape = LANDSCAPES[0](seed)  # type: ignore[call-arg]

        def evaluate(task: Task, landscape: Landscape = landscape) -> treewright.Result:
            rng = random.Random(task.seed)
            state = landscape.change(task.parent.data, rng)
            return treewright.Result(measured(landscape, state, rng), data=state)

        start = landscape.start()
        goal = None
        for name, settings in orders:
            search = treewright.open_search(
                seed=seed, budget=budget, root=start, root_score=0.0, **settings
            )
            share, came = simulate(search, evaluate, seed)
            shares[name].append(share)
            node = {node.number: node for node in search.nodes}
            curve = best_so_far([(node[n].value, landscape.quality(node[n].data)) for n in came])
            goal = curve[budget // 2 - 1] if goal is None else goal
            reached = (i + 1 for i, quality in enumerate(curve) if quality >= goal)
            needed[name].append(next(reached, budget))
    return [
        (name, statistics.mean(shares[name]), statistics.median(needed[name])) for name, _ in orders
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, default=len(HELD_OUT), help="of each half")
    options = parser.parse_args()
    document: dict[str, Any] = {}
    for half, seeds in (("tuned on", TUNED), ("held out", HELD_OUT)):
        table = document[half] = compare(seeds[: options.seeds])
        print(f"\n{half}: true quality of the best by measurement, mean ± standard error")
        print(f"{'':>22}" + "".join(f"{budget:>15}" for budget in BUDGETS))
        for landscape, row in table.items():
            for name, cells in row.items():
                shown = "".join(f"{mean:>9.3f} ±{error:.3f}" for mean, error in cells)
                print(f"{landscape:>10} {name:>11}{shown}")
    print("\n8 workers, log-normal times: share of busy time, evaluations to the same score")
    document["waiting"] = waiting(HELD_OUT[: options.seeds])
    for name, share, needed in document["waiting"]:
        print(f"{name:>16} {share:8.3f} {needed:8.0f}")
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
