"""Whole strategies, tried before the tree: closers, inductions, and lemmas found by testing.

A strategy opens a goal (by an induction, along the recursion of a function, or not at all) and
closes every case by a closer, after at most one further case distinction. Strategies take
milliseconds to fail, so all of them are tried before a tree is grown. If none closes the goal, Lean
looks for equations between small terms over the functions of the goal. Those that a strategy
proves become lemmas, and the strategies are tried again with them.

The result is a script. The caller offers it to the search as the first tactic for the root, so
that it is recorded, checked and replayed like every other tactic.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from treewright.lean.session.answers import Goal, ProofState
from treewright.lean.session.errors import LeanError
from treewright.lean.session.inputs import is_identifier
from treewright.lean.session.knowledge import Alternative, Equation, GoalTest, Knowledge, Variable
from treewright.proving.environment import LeanEnvironment, views
from treewright.proving.records import GoalView
from treewright.proving.tactics.goal_outline import Fresh, introduced, shape, words
from treewright.proving.tactics.known_lemmas import named_alternatives

TACTIC_HEARTBEATS = 20_000
"""The limit of one tactic, as `maxHeartbeats` counts: about a second of processor time."""
TACTIC_SECONDS = 20.0
"""The limit of one tactic that does not count heartbeats."""
STRATEGY_TRIES = 400
"""The most tactics of all strategies for one goal, before lemmas are looked for."""
DISCOVERY_TRIES = 1600
"""The most tactics of proving lemmas, and the goal with them."""
LEMMA_TRIES = 80
"""The most tactics of proving one lemma."""
UNTESTED = GoalTest("unknown", reason="Lean was lost")
_MOST_CASE_SPLITS = 3
_MOST_CASES = 12
_MOST_LEMMAS = 24
_MOST_EQUATIONS = 120
_MOST_NAMES = 14


@dataclass(frozen=True, slots=True)
class Proof:
    """A tactic and the proofs of the cases that it leaves.

    Each case has a label, such as `cons x xs ih`; without one it is written behind a bullet.
    """

    tactic: str
    cases: tuple[tuple[str, Proof], ...] = ()

    def lines(self) -> list[str]:
        """Return the lines of the script."""
        if not self.cases:
            return self.tactic.splitlines()
        has_labels = all(label for label, _ in self.cases)
        lines = [f"{self.tactic} with"] if has_labels else self.tactic.splitlines()
        if not has_labels and len(self.cases) == 1:
            return [*lines, *self.cases[0][1].lines()]
        for label, proof in self.cases:
            inner = proof.lines()
            if not has_labels:
                lines += [f"· {inner[0]}", *(f"  {line}" for line in inner[1:])]
            elif len(inner) == 1:
                lines.append(f"| {label} => {inner[0]}")
            else:
                lines += [f"| {label} =>", *(f"  {line}" for line in inner)]
        return lines


@dataclass(frozen=True, slots=True)
class Opening:
    """A tactic that opens a goal, and the labels of the cases that it leaves, if they have any."""

    tactic: str
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The tactic as Lean is asked: with a hole for every case."""
        if not self.labels:
            return self.tactic
        return f"{self.tactic} with " + " ".join(f"| {label} => ?_" for label in self.labels)


@dataclass(frozen=True, slots=True)
class Lemma:
    """A proved lemma, as a `have` of the script."""

    name: str
    statement: str
    proof: Proof

    def lines(self) -> list[str]:
        """Return the lines of the `have`."""
        inner = self.proof.lines()
        return [f"have {self.name} : {self.statement} := by", *(f"  {line}" for line in inner)]


class _LimitReached(Exception):
    """The limit of a part of the portfolio was reached."""


@dataclass(slots=True)
class Portfolio:
    """Tries whole strategies on the root of an environment.

    Args:
        environment: The goal in Lean.
        stop_asked: Returns whether the user asked to stop.
        seconds: The limit of all work, if there is one.
    """

    environment: LeanEnvironment
    stop_asked: Callable[[], bool] = lambda: False
    seconds: float | None = None
    tried: int = field(default=0, init=False)
    """The number of tactics tried."""
    lemmas: list[Lemma] = field(default_factory=list, init=False)
    """The lemmas proved so far."""
    _most: int = field(default=0, init=False)
    """The number of tactics at which the present part ends."""
    _end: float = field(default=float("inf"), init=False)
    _states: list[ProofState] = field(default_factory=list, init=False)
    _failed: set[tuple[str, int, tuple[str, ...]]] = field(default_factory=set, init=False)

    def solve(self) -> tuple[str, GoalTest]:
        """Test the root, and return a script that closes it; '' if no strategy does.

        No strategy is tried on a goal that tests show to be false.

        Raises:
            LeanError: Lean cannot be started again.
        """
        if self.seconds is not None:
            self._end = time.monotonic() + self.seconds
        tested = UNTESTED
        try:
            root = self.environment.root_state()
            tested = self.environment.test(root)
            script = "" if tested.outcome == "false" else self._solve(root)
            return script, tested
        except LeanError:
            self.environment.root_state()  # raises if Lean does not come back
            return "", tested
        finally:
            self.environment.free(self._states)

    def _solve(self, root: ProofState) -> str:
        try:
            knowledge = self.environment.knowledge(0)
            self._most = STRATEGY_TRIES
            try:
                if proof := self._prove(root, knowledge, ()):
                    return "\n".join(proof.lines())
            except _LimitReached:
                pass
            if not knowledge.reachable:
                return ""
            self._most = self.tried + DISCOVERY_TRIES
            return self._prove_with_lemmas(root, knowledge)
        except _LimitReached:
            return ""

    # -- strategies -----------------------------------------------------------------------

    def _prove(
        self, state: ProofState, knowledge: Knowledge, lemmas: Sequence[str], deepest: int = 2
    ) -> Proof | None:
        """Try every opening, first with closers only, then with case distinctions."""
        names = tuple(dict.fromkeys([*knowledge.reachable[:_MOST_NAMES], *lemmas]))
        before: list[str] = []
        goal = views(state.goals)[0]
        if shape(goal.target).kind in ("forall", "implies"):
            intro = f"intro {' '.join(introduced(goal))}"
            opened = self._run(state, intro)
            if opened is None or len(opened.goals) != 1:
                return None
            before, state = [intro], opened
            knowledge, goal = self.environment.survey(state), views(state.goals)[0]
            names = tuple(dict.fromkeys([*names, *knowledge.reachable[:_MOST_NAMES]]))
        for depth in range(deepest):
            if proof := self._close(state, names, depth):
                return _after(before, proof)
            for opening in openings(goal, knowledge):
                if proof := self._open(state, opening, names, depth):
                    return _after(before, proof)
        return None

    def _open(
        self, state: ProofState, opening: Opening, names: tuple[str, ...], depth: int
    ) -> Proof | None:
        """Open a goal and close every case."""
        opened = self._run(state, opening.text)
        if opened is None:
            return None
        if len(opened.goals) > _MOST_CASES:
            return None
        if opening.labels and len(opened.goals) != len(opening.labels):
            return None
        cases: list[tuple[str, Proof]] = []
        for place in range(len(opened.goals)):
            case = opened if len(opened.goals) == 1 else self._focus(opened, place)
            proof = self._close(case, names, depth)
            if proof is None:
                return None
            cases.append((opening.labels[place] if opening.labels else "", proof))
        return Proof(opening.tactic, tuple(cases))

    def _close(self, state: ProofState, names: tuple[str, ...], depth: int) -> Proof | None:
        """Close a goal by a closer, or after up to `depth` case distinctions."""
        goal = state.goals[0]
        key = (goal.hash, depth, names)
        if key in self._failed:
            return None
        if depth == 0 or (goal.hash, 0, names) not in self._failed:
            for closer in closers(goal, names):
                if self._closes(state, closer):
                    return Proof(self._shortened(state, closer, names))
            self._failed.add((goal.hash, 0, names))
        if depth > 0:
            knowledge = self.environment.survey(state)
            for opening in case_splits(views(state.goals)[0], knowledge, names):
                if proof := self._open(state, opening, names, depth - 1):
                    return proof
        self._failed.add(key)
        return None

    def _shortened(self, state: ProofState, closer: str, names: Sequence[str]) -> str:
        """Return a shorter closer that still closes the goal. Its tries are not counted."""
        tried = self.tried
        try:
            return self._shorter(state, closer, names)
        except _LimitReached:
            return closer
        finally:
            self.tried = tried

    def _shorter(self, state: ProofState, closer: str, names: Sequence[str]) -> str:
        for simple in ("rfl", "simp", "simp_all", "omega"):
            if simple != closer and self._closes(state, simple):
                return simple
        head, bracket, _ = closer.partition(" [")
        if not bracket or "<;>" in closer:
            return closer
        kept = list(names)
        for name in names:
            fewer = [other for other in kept if other != name]
            shorter = f"{head} [{', '.join(fewer)}]" if fewer else head
            if self._closes(state, shorter):
                kept = fewer
        listed = f" [{', '.join(kept)}]" if kept else ""
        if head == "simp_all" and self._closes(state, f"simp{listed}"):
            return f"simp{listed}"
        return f"{head}{listed}"

    # -- lemmas ---------------------------------------------------------------------------

    def _prove_with_lemmas(self, root: ProofState, knowledge: Knowledge) -> str:
        """Prove equations over the functions of the goal, and the goal with them.

        Equations are tried by size. Those that fail are tried again with the lemmas proved since.
        """
        found = self.environment.explore(root)
        waiting = sorted(found.equations, key=_rank)[:_MOST_EQUATIONS]
        state = root
        while waiting:
            failed: list[Equation] = []
            tried_with = before = len(self.lemmas)
            for place, equation in enumerate(waiting):
                lemma, later = self._prove_lemma(state, knowledge, equation)
                if lemma is not None and later is not None:
                    self.lemmas.append(lemma)
                    state = later
                elif later is not None:
                    failed.append(equation)
                is_last = place + 1 == len(waiting) or _rank(waiting[place + 1]) != _rank(equation)
                if is_last and len(self.lemmas) > tried_with:
                    tried_with = len(self.lemmas)
                    if proof := self._prove(state, knowledge, [one.name for one in self.lemmas]):
                        return self._without_superfluous(proof)
                if len(self.lemmas) >= _MOST_LEMMAS:
                    return ""
            if len(self.lemmas) == before:
                return ""
            waiting = failed
        return ""

    def _prove_lemma(
        self, state: ProofState, knowledge: Knowledge, equation: Equation
    ) -> tuple[Lemma | None, ProofState | None]:
        """Return the lemma if it is proved, and the goal with the lemma.

        Without a goal the equation is of no use: Lean rejects it, or `simp` proves it anyway.
        """
        known = [one.name for one in self.lemmas]
        name = lemma_name(equation, {*known, *(h.name for h in state.goals[0].hypotheses)})
        binders = " ".join(f"({x} : {of})" for x, of in equation.binders)
        statement = f"∀ {binders}, ({equation.left} : {equation.type}) = {equation.right}"
        opened = self._run(state, f"have {name} : {statement} := ?_")
        if opened is None or len(opened.goals) != 2:
            return None, None
        later, own = (self._focus(opened, place) for place in (0, 1))
        names = ", ".join(dict.fromkeys([*knowledge.reachable, *known]))
        if self._closes(own, f"intros; simp [{names}]; done"):
            return None, None
        most, self._most = self._most, min(self._most, self.tried + LEMMA_TRIES)
        try:
            proof = self._prove(own, knowledge, known)
        except _LimitReached:
            proof = None
        finally:
            self._most = most
        lemma = None if proof is None else Lemma(name, statement, proof)
        return lemma, later

    def _without_superfluous(self, proof: Proof) -> str:
        """Return the script with the lemmas that it needs."""

        def script(lemmas: Sequence[Lemma]) -> str:
            return "\n".join([*(line for one in lemmas for line in one.lines()), *proof.lines()])

        kept = list(self.lemmas)
        for lemma in reversed(self.lemmas):
            fewer = [one for one in kept if one is not lemma]
            if self.environment.closes(script(fewer)):
                kept = fewer
        return script(kept)

    # -- Lean -----------------------------------------------------------------------------

    def _closes(self, state: ProofState, tactic: str) -> bool:
        end = self._run(state, tactic)
        return end is not None and end.closed and end.complete and not end.uses_sorry

    def _run(self, state: ProofState, tactic: str) -> ProofState | None:
        """Return the state after a tactic; None if it fails."""
        if self.tried >= self._most or time.monotonic() > self._end or self.stop_asked():
            raise _LimitReached
        self.tried += 1
        result = self.environment.try_tactic(state, tactic, TACTIC_SECONDS, TACTIC_HEARTBEATS)
        if result is not None:
            self._states.append(result)
        return result

    def _focus(self, state: ProofState, goal: int) -> ProofState:
        part = self.environment.focus(state, goal)
        self._states.append(part)
        return part


def _rank(equation: Equation) -> int:
    """Return the rank of an equation: small ones without constructors are the likeliest lemmas."""
    return equation.size + 2 * equation.constructors


def _after(before: Sequence[str], proof: Proof) -> Proof:
    for tactic in reversed(before):
        proof = Proof(tactic, (("", proof),))
    return proof


def closers(goal: Goal, names: Sequence[str]) -> Iterator[str]:
    """Yield tactics that close a goal or fail within milliseconds, the quickest first."""
    listed = f" [{', '.join(names)}]" if names else ""
    yield f"simp_all{listed}"
    if not names:
        yield "omega"
    yield f"grind{listed}"
    if names:
        yield f"simp_all{listed} <;> grind{listed}"
        yield "omega"


def openings(goal: GoalView, knowledge: Knowledge) -> Iterator[Opening]:
    """Yield inductions for a goal: plain, with generalized variables, and along functions."""
    values = [v for v in knowledge.variables if _is_value(v)]
    inductive = [v for v in values if v.made_of and v.made_of.recursive and v.made_of.plain]
    inductive.sort(key=lambda v: (not v.shown, -v.drives))
    for variable in inductive:
        yield _induction(variable, goal)
    for call in knowledge.calls:
        yield Opening(f"fun_induction {call.function} {' '.join(call.arguments)}")
    for variable in inductive:
        if others := [v.name for v in values if v is not variable and v.shown]:
            yield _induction(variable, goal, others)
    for variable in knowledge.variables:
        made_of = variable.made_of if variable.kind == "proof" and variable.accessible else None
        if made_of is not None and made_of.recursive and made_of.plain:
            yield _induction(variable, goal)


def case_splits(goal: GoalView, knowledge: Knowledge, names: Sequence[str]) -> Iterator[Opening]:
    """Yield case distinctions: on conditions, after simplification too, and on values."""
    if names:
        yield Opening(f"simp_all [{', '.join(names)}]\nrepeat' split")
    elif "if " in goal.target or "match " in goal.target:
        yield Opening("split")
    values = [v for v in knowledge.variables if _is_value(v) and v.made_of]
    values.sort(key=lambda v: (not v.shown, -v.drives))
    for variable in values[:_MOST_CASE_SPLITS]:
        assert variable.made_of is not None
        labels = named_alternatives(
            variable.made_of.alternatives, variable.name, goal, inductive=False
        )
        if labels:
            yield Opening(f"cases {variable.name}", labels)


def _is_value(variable: Variable) -> bool:
    return variable.kind == "data" and variable.accessible


def _induction(variable: Variable, goal: GoalView, others: Sequence[str] = ()) -> Opening:
    assert variable.made_of is not None
    alternatives: Sequence[Alternative] = variable.made_of.alternatives
    labels = named_alternatives(alternatives, variable.name, goal, inductive=True)
    generalizing = f" generalizing {' '.join(others)}" if others else ""
    return Opening(f"induction {variable.name}{generalizing}", labels)


def lemma_name(equation: Equation, taken: set[str]) -> str:
    """Return a name for a lemma by the functions of its left side, such as `rev_append`."""
    found = [w for w in re.findall(r"[^\W\d][\w.']*", equation.left) if w[:1].isalpha()]
    variables = {name for name, _ in equation.binders}
    parts = [w.rpartition(".")[2].lower() for w in found if w not in variables]
    base = "_".join(dict.fromkeys(parts[:3])) or "lemma"
    name = base if is_identifier(base) and base not in equation.functions else f"{base}_eq"
    return name if name not in taken else Fresh(taken | words(equation.left)).name(name)
