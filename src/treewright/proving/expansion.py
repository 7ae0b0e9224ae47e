"""Trying tactics on a node and entering their outcomes into the graph. Both runners use it.

An expansion has two halves, because the first may overlap with Lean and the second may not:
`propose` asks the tactic source, `attempt` runs tactics in Lean and changes the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from treewright.lean.session.knowledge import Knowledge
from treewright.proving.environment import Environment, Outcome
from treewright.proving.learning import LearnedPriors, Lesson, Try, lessons_of_search
from treewright.proving.records import Attempt, Candidate, GoalView, NodeRecord
from treewright.proving.tactics.known_lemmas import KnownTactics
from treewright.proving.tactics.source import (
    Frontier,
    Suggestions,
    TacticSource,
    combined_suggestions,
)
from treewright.search.andor.graph import Changes, Child, Edge, Graph, Node, Status

Estimate = Callable[[Sequence[GoalView]], float]
Recorded = Callable[[int, int], Suggestions | None]
"""Returns the suggestions that a trace has for a node and a round, or None."""
Known = Callable[[int], Knowledge]
"""Returns Lean's knowledge about a node."""


class Expansion:
    """The candidates, attempts and changes of one expansion of a node."""

    __slots__ = ("attempts", "candidates", "changes", "complete", "grew", "new", "value")

    def __init__(self) -> None:
        self.candidates: tuple[Candidate, ...] | None = None
        self.complete = False
        self.grew = False
        self.attempts: list[Attempt] = []
        self.new: list[NodeRecord] = []
        self.changes = Changes()
        self.value = 0.0


class Expander:
    """Grows the graph of one goal. Only `ask` may be called from several threads.

    With `keeps_tries` it keeps every try in memory for `lessons`, with the prior that the tactic
    had before earlier lessons adjusted it. From the adjusted prior, the next lessons would undo the
    earlier ones.
    """

    def __init__(
        self,
        environment: Environment,
        source: TacticSource,
        estimate: Estimate,
        *,
        batch: int = 8,
        discount: float = 0.97,
        recorded: Recorded = lambda node, round_number: None,
        known: Known | None = None,
        learned: LearnedPriors | None = None,
        keeps_tries: bool = False,
    ) -> None:
        self._environment = environment
        self._recorded = recorded
        self._known = known
        self._known_tactics = KnownTactics()
        self._learned = learned
        self._keeps_tries = keeps_tries
        self._source = source
        self._estimate = estimate
        self._batch = batch
        self._discount = discount
        self._goals: dict[int, tuple[GoalView, ...]] = {}
        self._frontiers: dict[int, Frontier] = {}
        self.attempts = 0
        self.tries: list[Try] = []
        self._unadjusted_priors: dict[int, dict[str, float]] = {}
        self._offered: tuple[Candidate, ...] = ()
        root = environment.root()
        self.tree = Graph(root.key, estimate(root.goals))
        self._goals[0] = root.goals
        self.root = NodeRecord(0, root.key, root.goals)

    @property
    def overlaps(self) -> bool:
        """Whether the source is slow and may be asked from threads."""
        return bool(getattr(self._source, "overlaps", False))

    def lessons(self) -> list[Lesson]:
        """Return the lessons of the search so far. Needs `keeps_tries`."""
        assert self._keeps_tries, "tries were not kept"
        return lessons_of_search(self.tree, self._goals.__getitem__, self.tries)

    def offer(self, candidates: Sequence[Candidate]) -> None:
        """Let scripts for the root be tried before what the sources suggest for it.

        Their `source` is one of `OFFERED_SOURCES`, so that a replay finds them in the trace.
        """
        self._offered = tuple(candidates)

    def goals(self, node: Node) -> tuple[GoalView, ...]:
        return self._goals[node.id]

    def round_number(self, node: Node) -> int | None:
        """Return the round of suggestions that the node needs next; None if it needs none."""
        frontier = self._frontiers.get(node.id)
        if frontier is None:
            return 0
        return None if frontier.untried or frontier.complete else frontier.rounds

    def ask(self, node: Node, round_number: int) -> Suggestions:
        """Ask the source for suggestions. Changes nothing."""
        known = self._recorded(node.id, round_number)
        return known or self._source.suggest(self._goals[node.id], round_number)

    def propose(self, node: Node, suggestions: Suggestions, expansion: Expansion) -> None:
        """Enter suggestions, and those from Lean's knowledge, into the node's frontier."""
        frontier = self._frontiers.setdefault(node.id, Frontier())
        if self._known is not None and self._recorded(node.id, frontier.rounds) is None:
            knowledge = self._known(node.id)
            more = self._known_tactics.suggest(self._goals[node.id], knowledge, frontier.rounds)
            suggestions = combined_suggestions(suggestions, more, whole=frontier.rounds == 0)
        if self._keeps_tries:
            priors = self._unadjusted_priors.setdefault(node.id, {})
            for candidate in suggestions.candidates:
                priors.setdefault(candidate.tactic, candidate.prior or 0.0)
        if self._learned is not None and self._recorded(node.id, frontier.rounds) is None:
            weighed = self._learned.adjust(self._goals[node.id], suggestions.candidates)
            suggestions = Suggestions(weighed, suggestions.complete)
        if node.id == 0 and self._recorded(0, frontier.rounds) is None and frontier.rounds == 0:
            suggestions = Suggestions(
                (*self._offered, *suggestions.candidates), suggestions.complete
            )
        frontier.merge(suggestions.candidates, suggestions.complete)
        expansion.candidates = suggestions.candidates
        expansion.complete = suggestions.complete

    def exclude(self, edge: Edge) -> None:
        """Take an edge out of the graph; another tactic with the same result may take its place."""
        self.tree.exclude(edge)
        frontier = self._frontiers[edge.parent.id]
        frontier.results.discard(tuple(child.key for child in edge.children))

    def expand(self, node: Node) -> Expansion:
        """Propose if the node needs suggestions, then attempt."""
        expansion = Expansion()
        round_number = self.round_number(node)
        if round_number is not None:
            self.propose(node, self.ask(node, round_number), expansion)
        self.attempt(node, expansion)
        return expansion

    def attempt(self, node: Node, expansion: Expansion) -> None:
        """Try the next candidates. Stops early when the node is settled."""
        frontier = self._frontiers[node.id]
        for _ in range(self._batch):
            if not frontier.untried or node.status is not Status.OPEN:
                break
            self._try(node, frontier, expansion)
            if self._keeps_tries:
                attempt = expansion.attempts[-1]
                prior = self._unadjusted_priors[node.id].get(attempt.tactic, 0.0)
                self.tries.append(Try(node.id, attempt, prior))
        if node.status is Status.OPEN and frontier.complete and not frontier.untried:
            self.tree.exhaust(node, expansion.changes)
        expansion.value = self._provability(node)

    def _try(self, node: Node, frontier: Frontier, expansion: Expansion) -> None:
        candidate = frontier.take()
        outcome = self._environment.apply(node.id, candidate.tactic)
        self.attempts += 1
        if outcome.kind not in ("goals", "closed"):
            expansion.attempts.append(
                Attempt(candidate.tactic, outcome.kind, outcome.ms, detail=outcome.detail)
            )
            return
        keys = tuple([subgoal.key for subgoal in outcome.subgoals])
        if keys in frontier.results:
            self._environment.bind(node.id, candidate.tactic, ())
            attempt = Attempt(candidate.tactic, "duplicate", outcome.ms, keys=keys)
        else:
            frontier.results.add(keys)
            attempt = self._enter(node, candidate, outcome, keys, expansion)
        expansion.attempts.append(attempt)

    def _enter(
        self,
        node: Node,
        candidate: Candidate,
        outcome: Outcome,
        keys: tuple[str, ...],
        expansion: Expansion,
    ) -> Attempt:
        """Add an edge for a tactic that worked, unless it leads back to a goal it came from."""
        layout = tuple([subgoal.layout for subgoal in outcome.subgoals])
        known = len(self.tree.nodes)
        children = [Child(s.key, self._estimate(s.goals)) for s in outcome.subgoals]
        edge = self.tree.add_edge(
            node, outcome.script or candidate.tactic, candidate.prior, children, expansion.changes
        )
        if edge is None:
            self._environment.bind(node.id, candidate.tactic, ())
            return Attempt(candidate.tactic, "rejected", outcome.ms, keys=keys)
        edge.layout = layout
        expansion.grew = True
        for child, subgoal in zip(edge.children, outcome.subgoals, strict=True):
            if child.id >= known and child.id not in self._goals:
                self._goals[child.id] = subgoal.goals
                expansion.new.append(NodeRecord(child.id, child.key, subgoal.goals))
        identities = tuple([child.id for child in edge.children])
        self._environment.bind(node.id, candidate.tactic, identities)
        return Attempt(
            candidate.tactic,
            outcome.kind,
            outcome.ms,
            edge.id,
            identities,
            layout,
            keys,
            outcome.script,
        )

    def _provability(self, node: Node) -> float:
        """Return the provability of a node after the attempts.

        It comes from the best live edge; without one it is a fraction of the first estimate.
        """
        if node.status is not Status.OPEN:
            return node.value
        if node.live:
            return self._discount * max(edge.promise for edge in node.live)
        return node.estimate * _NO_LIVE_EDGE_FACTOR


_NO_LIVE_EDGE_FACTOR = 0.5
"""The factor on the estimate of an open node after attempts that left no live edge."""
_TOKEN = re.compile(r"[A-Za-z_α-ωΑ-Ω✝₀-₉.']+|\d+|[^\sA-Za-z\d]")
_HALF_AT_TOKENS = 40.0
"""A target with this many tokens has the estimate 1/2."""
_EXISTS_FACTOR = 0.8
_FALSE_TARGET_FACTOR = 0.6
_MOST_ESTIMATE = 0.95
"""The largest estimate of a goal that was not tried."""


def estimate_provability(goals: Sequence[GoalView]) -> float:
    """Return a first guess, from 0 to 1, that goals are provable together.

    It is the product over the goals. Short targets, targets that are a hypothesis and closed facts
    look good; existentials and long targets look worse. The number of tactics that apply is not
    considered.
    """
    value = 1.0
    for goal in goals:
        value *= _estimate_one(goal)
    return value


def _estimate_one(goal: GoalView) -> float:
    target = goal.target
    if target == "True" or any(h.type == target for h in goal.hypotheses):
        return _MOST_ESTIMATE
    value = 1.0 / (1.0 + len(_TOKEN.findall(target)) / _HALF_AT_TOKENS)
    if "∃" in target:
        value *= _EXISTS_FACTOR
    if target == "False":
        value *= _FALSE_TARGET_FACTOR
    return min(_MOST_ESTIMATE, value)
