"""The best partial proof of an unproved goal: script, open goals, near lemmas.

It is read off the graph when the search is over. No result rests on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterator, Sequence

from treewright.lean.session.answers import Goal
from treewright.proving.records import GoalView, NearLemma, PartialProof
from treewright.proving.script.extraction import extract, render
from treewright.proving.script.formatting import Style, write_styled
from treewright.proving.search import Runner
from treewright.search.andor.graph import Edge, Graph, Node, Status

_MOST_OPEN = 8
_MOST_LEMMAS = 5
_LONGEST_GOAL = 2000
_GIVEN_UP = 1.0  # cost of a goal on which every proposed tactic was tried
_DEEPER = 0.01  # cost of a step, for each step above it; it keeps scripts finite
_SOLVED_SIBLING = 0.06  # bonus of a step that leaves several goals, some of them solved
_NAMED = re.compile(r"(?:exact|apply|refine|rw|simp|simp_all|simpa|grind|erw|omega)\b(?P<rest>.*)")
_LEMMA = re.compile(r"(?<![\w.'✝])[^\W\d][\w'!?]*(?:\.[^\W\d][\w'!?]*)*")
_NO_LEMMAS = {
    "only", "using", "at", "with", "by", "fun", "if", "then", "else", "let", "have", "show", "from",
    "absurd", "exact", "rfl", "trivial",
}  # fmt: skip


def find_best_partial(
    runner: Runner, holds: Callable[[str], bool] = lambda script: False, indent: int = 2
) -> PartialProof:
    """Return the best partial proof of a search.

    Args:
        runner: The runner of the search.
        holds: Returns whether Lean accepts a script with `sorry` for its open goals.
        indent: The indentation of a block.
    """
    tree, goals = runner.tree, runner.expander.goals
    costs, edges = _cheapest_edges(tree)
    left: list[Node] = []
    used: set[int] = set()

    def choose(node: Node) -> Edge | None:
        edge = edges.get(node.id)
        if edge is not None:
            used.add(edge.id)
        return edge

    step = extract(tree.root, choose, goals, left)
    script = write_styled(step, Style(indent))
    if not holds(script):
        script = render(step)
    if step.tactic == "sorry":
        script = ""
    shown = dict.fromkeys("\n\n".join(map(_pretty, goals(node))) for node in left)
    at = {node.id for node in left} | {tree.edges[edge].parent.id for edge in used}
    lemmas = find_near_lemmas(tree, goals, at, costs, used)
    return PartialProof(script, tuple(shown)[:_MOST_OPEN], tuple(lemmas))


def _cheapest_edges(tree: Graph) -> tuple[dict[int, float], dict[int, Edge]]:
    """Return, for each goal, the least that is open below it and the edge that leads there."""
    costs: dict[int, float] = {}
    edges: dict[int, Edge] = {}
    for node in sorted(tree.nodes, key=lambda node: -node.rank):
        if node.status is Status.SOLVED and node.solution is not None:
            costs[node.id], edges[node.id] = 0.0, node.solution
            continue
        costs[node.id] = -math.log(max(node.estimate, 1e-9))
        costs[node.id] += _GIVEN_UP * (node.status is Status.DEAD)
        for edge in node.edges:
            cost = _edge_cost(edge, costs)
            if cost < costs[node.id]:
                costs[node.id], edges[node.id] = cost, edge
    return costs, edges


def _edge_cost(edge: Edge, costs: dict[int, float]) -> float:
    """Return the cost of an edge: the open goals below it, and the steps to reach it."""
    some = any(child.status is Status.SOLVED for child in edge.children)
    whole = sum(costs[child.id] for child in edge.children)
    return whole + _DEEPER * (1 + edge.parent.depth) - _SOLVED_SIBLING * some


def find_near_lemmas(
    tree: Graph,
    goals: Callable[[Node], tuple[GoalView, ...]],
    at: Container[int],
    costs: dict[int, float] | None = None,
    used: Container[int] = (),
) -> Iterator[NearLemma]:
    """Yield lemmas that applied at some goals and are not `used`; those that left least first."""
    costs = _cheapest_edges(tree)[0] if costs is None else costs
    found: dict[str, tuple[float, Edge]] = {}
    for edge in tree.edges:
        if edge.id in used or edge.parent.id not in at or edge.status is Status.SOLVED:
            continue
        if _only_grows(edge, goals):
            continue
        cost = _edge_cost(edge, costs)
        for name in find_lemmas(edge.action, goals(edge.parent)):
            if name not in found or cost < found[name][0]:
                found[name] = (cost, edge)
    best = sorted(found.items(), key=lambda item: item[1][0])[:_MOST_LEMMAS]
    for name, (_, edge) in best:
        open_goals = [c for c in edge.children if c.status is not Status.SOLVED]
        leaves = tuple(view.target for child in open_goals for view in goals(child))
        yield NearLemma(name, edge.action, goals(edge.parent)[0].target, leaves[:_MOST_OPEN])


def _only_grows(edge: Edge, goals: Callable[[Node], tuple[GoalView, ...]]) -> bool:
    """Return whether an edge only leaves a longer form of its goal; many lemmas do that."""
    left = [view for child in edge.children for view in goals(child)]
    return len(left) == 1 and len(_pretty(left[0])) > len(_pretty(goals(edge.parent)[0]))


def find_lemmas(tactic: str, goals: Sequence[GoalView]) -> list[str]:
    """Return the names in a tactic that are neither hypotheses nor words of the tactic language."""
    found = _NAMED.match(tactic)
    if found is None:
        return []
    rest = found["rest"].split(" at ")[0]
    local = {h.name for goal in goals for h in goal.hypotheses}
    bound = set(re.findall(r"(?:fun|with|⟨|,|\|)\s*([^\W\d]\w*)\s*(?==>|,|⟩)", rest))
    names = [
        name
        for name in _LEMMA.findall(rest)
        if name.split(".")[0] not in local | bound | _NO_LEMMAS and (len(name) > 2 or "." in name)
    ]
    return list(dict.fromkeys(names))


def _pretty(view: GoalView) -> str:
    text = Goal("", view.target, hypotheses=view.hypotheses, case=view.case).pretty
    return text if len(text) <= _LONGEST_GOAL else text[: _LONGEST_GOAL - 1] + "…"
