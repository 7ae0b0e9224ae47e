"""What `prove` says while it works: one rewritten line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import TextIO

from treewright.kernel.rendering.terminal import visible
from treewright.mcts.prove import Observer
from treewright.mcts.records import Iteration, VerdictReached
from treewright.mcts.targets import GoalSpec
from treewright.search.andor.graph import Graph

_PLAIN_EVERY = 50


def narrator(stream: TextIO) -> Observer:
    terminal = stream.isatty()
    begun = [0]

    def say(text: str, end: str = "\n") -> None:
        text = visible(text)
        stream.write(f"\r{text:<78}{end}" if terminal else f"{text}\n")
        stream.flush()

    def goal(spec: GoalSpec, total: int) -> None:
        begun[0] = 0
        say(f"goal {spec.number + 1} of {total}: {spec.name}")

    def iteration(line: Iteration, tree: Graph) -> None:
        begun[0] += 1
        if not terminal and begun[0] % _PLAIN_EVERY:
            return
        counters = line.counters
        text = (
            f"  {begun[0]} simulations, {counters.nodes} goals, {counters.solved} solved, "
            f"root {line.root_value:.2f}"
        )
        say(text, end="")

    def verdict(spec: GoalSpec, line: VerdictReached) -> None:
        detail = f": {line.detail}" if line.detail else ""
        say(f"  {spec.name}: {line.status} after {line.iterations} simulations{detail}")

    def negation(spec: GoalSpec) -> None:
        say(f"  {spec.name}: no proof; looking for one of its negation")

    def fault(spec: GoalSpec, why: str) -> None:
        say(f"  {spec.name}: unchecked: {why}")

    return Observer(goal, iteration, verdict, negation, fault)
