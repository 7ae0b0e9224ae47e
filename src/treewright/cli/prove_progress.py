"""Progress lines of `prove`: one rewritten line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TextIO

from treewright.cli.options import is_verbose
from treewright.kernel.text import numbers
from treewright.kernel.text.printable import visible
from treewright.llm.usage import describe_usage
from treewright.llm.usage_log import UsageLog
from treewright.proving.phases import Observer
from treewright.proving.records import GoalResult, Iteration, PartialProof
from treewright.proving.targets import GoalSpec
from treewright.search.andor.graph import Graph, Status

_SIMULATIONS_PER_LINE = 50
_STUCK_THRESHOLD = 5
"""A goal that was tried this often without success is reported as stuck."""
_MAX_WIDTH = 60


def narrator(stream: TextIO) -> Observer:
    """Return an observer that prints the progress of a proof run.

    With `--verbose` it prints a line for every simulation.
    """
    verbose = is_verbose()
    terminal = stream.isatty() and not verbose
    per_line = 1 if verbose else _SIMULATIONS_PER_LINE
    search = _GoalSearch()

    def say(text: str, end: str = "\n") -> None:
        text = visible(text)
        if terminal:
            width = shutil.get_terminal_size().columns - 1
            text = text if end else _cut(text, width)
            stream.write(f"\r{text:<{width}}{end}")
        else:
            stream.write(f"{text}\n")
        stream.flush()

    def goal(spec: GoalSpec, total: int) -> None:
        search.begin(spec.statement)
        say(f"goal {spec.number + 1} of {total}: {spec.name}")

    def iteration(line: Iteration, tree: Graph) -> None:
        search.note(line)
        if terminal:
            say(f"  {search.count(line)}; {search.doing(line)}", end="")
        elif search.turns % per_line == 0:
            stuck = search.stuck(tree)
            say(f"  {search.count(line)}; {search.doing(line)}{stuck and '; ' + stuck}")

    def result(spec: GoalSpec, line: GoalResult) -> None:
        detail = f": {line.detail}" if line.detail else ""
        after = numbers.count(line.iterations, "simulation")
        say(f"  {spec.name}: {line.status} after {after}{detail}")
        if line.check is not None and line.check.reason == "axiom":
            say(
                "  --axioms names the axioms that a proof may rest on; start a new run to change it"
            )

    def negation(spec: GoalSpec, early: bool) -> None:
        so_far = "no proof so far; looking briefly" if early else "no proof; looking"
        say(f"  {spec.name}: {so_far} for one of its negation")

    def retry(spec: GoalSpec, names: Sequence[str]) -> None:
        search.begin(spec.statement)
        say(f"  {spec.name}: again without {', '.join(names)}")

    def fault(spec: GoalSpec, why: str) -> None:
        say(f"  {spec.name}: unchecked: {why}")

    def trouble(names: tuple[str, ...], error: str) -> None:
        say(f"{error}; left alone because of it: {', '.join(names)}")

    def spent(log: UsageLog) -> None:
        if log.answers:
            say(f"treewright: {describe_usage(log.answers, log.usage)}")

    return Observer(goal, iteration, result, negation, retry, fault, trouble=trouble, spent=spent)


def describe_goals(goals: Sequence[GoalResult]) -> Iterator[str]:
    """Yield lines about the goals of a run: status, script, and the best partial proof."""
    for goal in goals:
        suffix = f": {goal.detail}" if goal.detail else ""
        yield f"{goal.name}: {goal.status}{suffix}"
        yield from (f"  {line}" for line in goal.proof.splitlines())
        if goal.partial is not None:
            yield from (f"  {line}" for line in describe_partial(goal.partial))


def describe_partial(partial: PartialProof) -> Iterator[str]:
    """Yield lines about the best partial proof: its open goals, and lemmas that nearly fit."""
    if partial.script:
        yield "the best partial proof:"
        yield from (f"  {line}" for line in partial.script.splitlines())
        yield f"leaves {numbers.count(len(partial.open), 'goal')} open:"
    else:
        yield "no tactic made progress; the open goal is:"
    for goal in partial.open:
        yield from (f"  {line}" for line in goal.splitlines())
    if partial.lemmas:
        yield "lemmas that nearly fit:"
    for near in partial.lemmas:
        left = " and ".join(f"⊢ {_cut(_flat(target), _MAX_WIDTH)}" for target in near.leaves)
        yield f"  {near.name}: `{_flat(near.tactic)}` leaves {left}"


class _GoalSearch:
    """Counts the simulations of one goal's search, for the progress lines."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, statement: str) -> None:
        self.turns = 0
        self._targets = {0: statement}
        self._tries: Counter[int] = Counter()

    def note(self, line: Iteration) -> None:
        self.turns += 1
        for node in line.new:
            self._targets[node.id] = node.goals[0].target if node.goals else ""
        if line.node is not None:
            self._tries[line.node] += 1

    def count(self, line: Iteration) -> str:
        counters = line.counters
        goals = f"{numbers.count(counters.nodes, 'goal')}, {counters.solved} solved"
        return f"{numbers.count(self.turns, 'simulation')}, {goals}"

    def doing(self, line: Iteration) -> str:
        if not line.attempts or line.node is None:
            return f"{line.reason}"
        tactic = _cut(_flat(line.attempts[-1].tactic), _MAX_WIDTH // 2)
        return f"trying `{tactic}` on {self._shown(line.node)}"

    def stuck(self, tree: Graph) -> str:
        """Return the open goal that was tried most often, as text; empty below the threshold."""
        waiting = ((n, t) for n, t in self._tries.items() if tree.nodes[n].status is Status.OPEN)
        node, tries = max(waiting, key=lambda pair: pair[1], default=(0, 0))
        return f"stuck at {self._shown(node)}, tried {tries} times" * (tries >= _STUCK_THRESHOLD)

    def _shown(self, node: int) -> str:
        return f"⊢ {_cut(_flat(self._targets.get(node, '').rpartition('⊢ ')[2]), _MAX_WIDTH)}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
