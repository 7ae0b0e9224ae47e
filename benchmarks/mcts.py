"""Proof search without Lean: simulations per second against treequest, growth, cell-view overhead.

    python -m benchmarks.mcts

The problem is the same for all: every goal takes four tactics, each leaves one new goal, nothing
is ever solved, and a goal's value is a hash of its path. A simulation adds one node. All figures of
a table are from this one run, in turns, in CPU time: nothing here waits.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence

from treequest.algos.standard_mcts import StandardMCTS

from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import CellSettings
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.environment import Outcome, Subgoal
from treewright.proving.expansion import Expander
from treewright.proving.records import Candidate, GoalView
from treewright.proving.search import Runner
from treewright.proving.tactics.source import Suggestions
from treewright.search.andor import policies

ACTIONS = ("a", "b", "c", "d")
_SUGGESTIONS = Suggestions(tuple(Candidate(action, 0.25) for action in ACTIONS))
_WINDOW = 60
_CELL_RUNS = 9
_MCTS = policies.Mcts()


def score(path: str) -> float:
    return (hash(path) & 0xFFFF) / 0xFFFF


class Paths:
    """A goal is the string of the tactics that led to it."""

    def __init__(self) -> None:
        self._paths = {0: ""}

    def root(self) -> Subgoal:
        return Subgoal("", (GoalView(""),), (0,))

    def apply(self, node: int, tactic: str) -> Outcome:
        path = self._paths[node] + tactic
        return Outcome("goals", (Subgoal(path, (GoalView(path),), (0,)),))

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        if children:
            self._paths[children[0]] = self._paths[parent] + tactic


class FourTactics:
    name = "four"

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        return _SUGGESTIONS


def expander() -> Expander:
    return Expander(Paths(), FourTactics(), lambda goals: score(goals[0].target), batch=1)


def centralized(policy: policies.Policy = _MCTS) -> Runner:
    return CentralizedEngine(expander(), policy)


def cellview(agents: int) -> Runner:
    settings = CellSettings(agents=agents, inflight=min(agents, 2))
    return CellViewRunner(expander(), settings, seed=0)


def ours(runner: Runner) -> Callable[[], None]:
    return lambda: _ignore(runner.step())


def theirs() -> Callable[[], None]:
    algorithm = StandardMCTS(samples_per_action=1)
    state = algorithm.init_tree()

    def generate(action: str) -> Callable[[str | None], tuple[str, float]]:
        return lambda parent: ((parent or "") + action, score((parent or "") + action))

    functions = {action: generate(action) for action in ACTIONS}

    def step() -> None:
        nonlocal state
        state = algorithm.step(state, functions, inplace=True)

    return step


def _ignore(_: object) -> None:
    return


def grow(step: Callable[[], None], sizes: Sequence[int], window: int = _WINDOW) -> list[float]:
    """Seconds per step, over a window that ends at each of these sizes."""
    done, times = 0, []
    for size in sizes:
        while done < size - window:
            step()
            done += 1
        begun = time.process_time()
        for _ in range(window):
            step()
        times.append((time.process_time() - begun) / window)
        done += window
    return times


def in_turns(
    makers: Sequence[Callable[[], Callable[[], None]]], sizes: Sequence[int], runs: int
) -> list[list[float]]:
    """For each maker the median at each size, with runs of all makers in turns."""
    rows = [[grow(make(), sizes) for make in makers] for _ in range(runs)]
    return [
        [statistics.median(column) for column in zip(*each, strict=True)]
        for each in zip(*rows, strict=True)
    ]


def side_by_side(
    one: Callable[[], None], other: Callable[[], None], size: int, measured: int
) -> tuple[float, float]:
    """Seconds per step of each over the last so many steps up to a size, in turns of a window.

    What is there when measuring begins is out of the collector's sight: a full collection takes
    as long as hundreds of steps, and whose turn it falls into is chance.
    """
    for step in (one, other):
        for _ in range(size - measured):
            step()
    gc.collect()
    gc.freeze()
    spent = [0.0, 0.0]
    order = [(0, one), (1, other)]
    for _ in range(measured // _WINDOW):
        order.reverse()
        for which, step in order:
            begun = time.process_time()
            for _ in range(_WINDOW):
                step()
            spent[which] += time.process_time() - begun
    gc.unfreeze()
    count = measured // _WINDOW * _WINDOW
    return spent[0] / count, spent[1] / count


def main() -> None:
    print("treequest against the centralized engine, microseconds a step")
    for sizes, runs in (((100,), 60), ((1000, 3000), 7)):
        mine, other = in_turns((lambda: ours(centralized()), theirs), sizes, runs)
        for size, own, their in zip(sizes, mine, other, strict=True):
            print(
                f"  {size:>6} nodes   {own * 1e6:8.1f}   treequest {their * 1e6:8.1f}   "
                f"{their / own:6.1f} x"
            )

    print("by policy, microseconds a simulation")
    kinds = [policies.make(name) for name in policies.known()]
    sizes = (100, 300)
    costs = in_turns([lambda kind=kind: ours(centralized(kind)) for kind in kinds], sizes, 9)
    for kind, cost in zip(kinds, costs, strict=True):
        shown = "   ".join(
            f"{seconds * 1e6:8.1f} at {size}" for size, seconds in zip(sizes, cost, strict=True)
        )
        print(f"  {kind.name:12} {shown}")

    print("growth of the centralized engine, microseconds a simulation")
    sizes = (1_000, 10_000, 100_000)
    rows = [grow(ours(centralized()), sizes, 1000) for _ in range(3)]
    growth = [statistics.median(column) for column in zip(*rows, strict=True)]
    for size, seconds in zip(sizes, growth, strict=True):
        print(f"  {size:>7} nodes   {seconds * 1e6:8.1f}   {seconds / growth[0]:5.2f} x")

    print("cell-view over centralized, microseconds an iteration up to 3,000 nodes")
    for agents in (1, 2, 4, 8):
        ratios: list[float] = []
        costs: list[float] = []
        for _ in range(_CELL_RUNS):
            base, cell = side_by_side(ours(centralized()), ours(cellview(agents)), 3000, 1200)
            ratios.append(cell / base)
            costs.append(cell)
        ratios.sort()
        cost = statistics.median(costs) * 1e6
        print(
            f"  {agents} agents   {cost:8.1f}   {statistics.median(ratios):5.2f} x   "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {_CELL_RUNS} runs)"
        )

    tracemalloc.start()
    runner = centralized()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20_000):
        runner.step()
    used = tracemalloc.get_traced_memory()[0] - before
    nodes = len(runner.tree.nodes)
    each = used / nodes
    print(f"memory: {each:.0f} bytes a node with goal, frontier and edge ({nodes} nodes)")


if __name__ == "__main__":
    main()
