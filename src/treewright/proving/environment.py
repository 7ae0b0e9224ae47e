"""The environment of one goal: it applies tactics to nodes and returns the goals that are left.

Goals appear as views, which read the same in every process. `LeanEnvironment` asks a Lean session,
strictly one step at a time. It remembers the tactic that led to each node. When Lean was lost, or
in another process, it makes the proof state of a node again, from the root.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from treewright.lean.session.answers import (
    Cancelled,
    CheckResult,
    Goal,
    ProofState,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.errors import LeanError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.knowledge import NOTHING_KNOWN, Exploration, GoalTest, Knowledge
from treewright.lean.verify.additions import new_errors
from treewright.proving.records import GoalView, OutcomeKind

_Told = TypeVar("_Told")
_LIBRARY_SEARCH = re.compile(
    r"^(exact|apply|simp|simp_all|rw|grind|omega)\?|^(try\?|show_term|hint$|canonical$)"
)
"""Tactics that search and report another tactic. They count only if they close the goal."""
_TRY_THIS = re.compile(r"Try this:\s*(?:\[\w+\]\s*)?(.+)", re.DOTALL)
_AXIOMS_LINE = re.compile(
    r"'(?P<name>[^'].*)' depends on axioms:\s*\[(?P<axioms>[^\]]*)\]", re.DOTALL
)
_LONGEST_DETAIL = 300
_FREE_BATCH = 64
"""States that the search does not need are freed in batches of this size."""
_INTERNAL = re.compile(r"(\?m|\?u|_uniq|_fvar|_mvar)\.\d+")


class Subgoal(msgspec.Struct, frozen=True, gc=False):
    """Goals that a tactic left and that must be solved together; `layout` are their positions."""

    key: str
    goals: tuple[GoalView, ...]
    layout: tuple[int, ...] = ()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a tactic. `script` is the text to write in a proof, if that differs."""

    kind: OutcomeKind
    subgoals: tuple[Subgoal, ...] = ()
    ms: float = 0.0
    script: str = ""
    detail: str = ""


class Environment(Protocol):
    """The environment of one goal. It knows nodes by their numbers; the root is 0."""

    def root(self) -> Subgoal:
        """Open the goal."""
        ...

    def apply(self, node: int, tactic: str) -> Outcome:
        """Try a tactic on a node."""
        ...

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Tell which nodes the subgoals of the last outcome of `tactic` on `parent` became."""
        ...

    def knowledge(self, node: int) -> Knowledge:
        """Return lemmas and facts that may help with a node."""
        ...


class GoalError(LeanError):
    """The goal does not elaborate."""


class LeanEnvironment:
    """One goal in a Lean session, which this object replaces when it is lost.

    Two environments may share a session, one step at a time. Each frees its own states, and makes
    them again if the other environment has lost the session.
    """

    def __init__(
        self,
        factory: Callable[[], HostSession],
        opening: Callable[[HostSession], StepResult],
        *,
        step_seconds: float = 5.0,
        heap_limit: int = 1_500_000_000,
        without: Sequence[str] = (),
    ) -> None:
        """See the class. A tactic that uses a declaration of `without` is an error."""
        self._factory = factory
        self._opening = opening
        self._step_seconds = step_seconds
        self._heap_limit = heap_limit
        self.without = tuple(without)
        self._session: HostSession | None = None
        self._states: dict[int, ProofState] = {}
        # For each node: its parent, the tactic that led to it, and its position among the groups.
        self._origins: dict[int, tuple[int, str, int]] = {}
        self._keys: dict[int, str] = {}
        self._unbound_states: dict[tuple[int, str], tuple[ProofState, ...]] = {}
        self._unneeded_states: list[ProofState] = []
        self.lean_seconds = 0.0
        self.sessions_lost = 0

    def root(self) -> Subgoal:
        """Open the goal.

        Raises:
            GoalError: The goal does not elaborate; the error is Lean's message.
        """
        state = self._open_root()
        self._keys[0] = state.hash
        return Subgoal(state.hash, views(state.goals), tuple(range(len(state.goals))))

    def apply(self, node: int, tactic: str) -> Outcome:
        """Try a tactic. If Lean was lost, try it a second time: the tactic need not be the cause.

        Raises:
            LeanError: Lean cannot be started again. That is a fault, and no outcome.
        """
        outcome = self._apply(node, tactic)
        if outcome.kind == "lost":
            outcome = self._apply(node, tactic)
        if outcome.kind == "lost":
            self._require_lean()
        return outcome

    def _require_lean(self) -> None:
        """Raise LeanError if Lean does not even open the goal: then no tactic was the cause."""
        try:
            self._state(0)
        except LeanError as error:
            raise LeanError(f"Lean does not stay alive: {_short(str(error))}") from None

    def _apply(self, node: int, tactic: str) -> Outcome:
        try:
            state = self._state(node)
        except LeanError as error:
            return Outcome("lost", detail=_short(str(error)))
        result = self._ask(lambda session: self._run(session, state, tactic, self._step_seconds))
        match result:
            case ProofState():
                outcome = self._outcome_of_state(node, tactic, result)
                if outcome.kind == "goals" and _LIBRARY_SEARCH.match(tactic):
                    self.bind(node, tactic, ())  # frees the states: the search will not use them
                    return Outcome("error", ms=result.ms, detail="found nothing that closes it")
                if outcome.kind == "closed" and _LIBRARY_SEARCH.match(tactic):
                    return self._follow_advice(state, result)
                return outcome
            case TacticError():
                kind = "exhausted" if result.kind == "exhausted" else "error"
                return Outcome(kind, ms=result.ms, detail=_short(result.message))
            case Timeout():
                return Outcome("timeout", ms=result.ms, detail=f"over {result.seconds:g} s")
            case Cancelled():
                return Outcome("timeout", ms=result.ms, detail="cancelled")
            case SessionLost():
                return Outcome("lost", ms=result.ms, detail=_short(result.reason))

    def knowledge(self, node: int) -> Knowledge:
        """Return Lean's knowledge about a node; nothing if Lean cannot give any.

        A lost Lean is asked a second time. Raises LeanError if Lean cannot be started again.
        """
        for _ in range(2):
            try:
                state = self._state(node)
                assert self._session is not None
                begun = time.perf_counter()
                try:
                    return self._session.survey(state, library=True)
                finally:
                    self.lean_seconds += time.perf_counter() - begun
            except LeanError:
                if self._session is not None and self._session.alive:
                    return NOTHING_KNOWN
                self._drop_session()
        self._require_lean()
        return NOTHING_KNOWN

    # -- beside the graph -----------------------------------------------------------------

    def root_state(self) -> ProofState:
        """Return the proof state of the root. Raises LeanError if Lean does not open it."""
        return self._state(0)

    def try_tactic(
        self, state: ProofState, tactic: str, seconds: float, heartbeats: int = 0
    ) -> ProofState | None:
        """Return the state after a tactic; None if it fails. The caller frees the state.

        Raises:
            LeanError: Lean was lost, and all states with it.
        """
        result = self._ask(
            lambda session: session.run_tactic(state, tactic, seconds, heartbeats=heartbeats)
        )
        if isinstance(result, SessionLost):
            raise LeanError(f"Lean was lost in `{tactic}`")
        return result if isinstance(result, ProofState) else None

    def focus(self, state: ProofState, goal: int) -> ProofState:
        """Return a state with one of its goals only. Raises LeanError if Lean was lost."""
        result = self._ask(lambda session: session.focus(state, (goal,)))
        if not isinstance(result, ProofState):
            raise LeanError("the goals could not be taken apart")
        return result

    def survey(self, state: ProofState) -> Knowledge:
        """Return Lean's knowledge about a state, without the library. May raise LeanError."""
        return self._told(lambda session: session.survey(state))

    def explore(self, state: ProofState) -> Exploration:
        """Return equations over the functions of a state that hold on random values.

        Raises LeanError if Lean was lost.
        """
        return self._told(lambda session: session.explore(state))

    def test(self, state: ProofState) -> GoalTest:
        """Return the result of trying a state on random values. May raise LeanError."""
        return self._told(lambda session: session.test(state))

    def free(self, states: Sequence[ProofState]) -> None:
        """Free states that the caller made; those of a session that was lost are gone anyway."""
        if self._session is not None and self._session.alive:
            with contextlib.suppress(LeanError):
                self._session.free(states)

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Keep the states of the nodes that the subgoals became, and free the others."""
        states = self._unbound_states.pop((parent, tactic), ())
        for position, child in enumerate(children):
            if child not in self._origins and child != 0:
                self._origins[child] = (parent, tactic, position)
            if position < len(states) and child not in self._states:
                self._states[child] = states[position]
                self._keys[child] = states[position].hash
            elif position < len(states):
                self._unneeded_states.append(states[position])
        self._unneeded_states += states[len(children) :]
        if len(self._unneeded_states) >= _FREE_BATCH and self._session is not None:
            unneeded, self._unneeded_states = self._unneeded_states, []
            with contextlib.suppress(LeanError):  # a lost session is found by the next step
                self._session.free(unneeded)

    def closes(self, script: str) -> bool:
        """Return whether a whole script closes the goal."""
        end = self._run_script(script)
        return end is not None and end.closed and end.complete

    def accepts_script(self, script: str) -> bool:
        """Return whether Lean runs a script to its end; the script may contain `sorry`."""
        end = self._run_script(script)
        return end is not None and end.closed

    def uses(self, script: str, names: Sequence[str]) -> bool:
        """Return whether a script that closes the goal does not close it without declarations.

        A declaration may be used without its name: by `simp`, if it has the attribute.
        """
        before, self.without = self.without, tuple(names)
        try:
            return not self.closes(script)
        finally:
            self.without = before

    def _run(
        self, session: HostSession, state: ProofState, text: str, seconds: float
    ) -> StepResult:
        if not self.without:
            return session.run_tactic(state, text, seconds)
        return session.run_tactic(state, text, seconds, without=self.without)

    def _run_script(self, script: str) -> ProofState | None:
        """Return the state after a whole script; None if Lean does not run it to its end."""
        try:
            state = self._state(0)
        except LeanError:
            return None
        result = self._ask(lambda s: self._run(s, state, script, 4 * self._step_seconds))
        return result if isinstance(result, ProofState) else None

    def accepts_file(self, source: str, original: str) -> bool:
        """Return whether a text has no error that the original does not have. Sorries are fine.

        Raises LeanError if Lean gives no answer, from a second session either.
        """
        result = self._elaborate(source)
        if not result.errors or result.stopped:
            return not result.stopped
        return not new_errors(result.errors, self._elaborate(original).errors)

    def unproved(self, source: str, asked: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the declarations of a text that rest on `sorry`, and those of `asked` that do.

        Raises LeanError if Lean gives no answer.
        """
        questions = "".join(f"\n#print axioms {name}" for name in asked)
        result = self._elaborate(source + questions)
        answers = (
            _AXIOMS_LINE.match(d.text) for d in result.diagnostics if d.severity == "information"
        )
        found = (a["name"] for a in answers if a and "sorryAx" in a["axioms"].split(", "))
        return tuple(dict.fromkeys((*result.unproved, *found)))

    def _elaborate(self, source: str) -> CheckResult:
        """Elaborate a text, in a second session if the first gives no answer."""
        why = ""
        for _ in range(2):
            if self._session is None:
                self._session = self._factory()
            result = self._session.check(source)
            if isinstance(result, CheckResult):
                return result
            if isinstance(result, SessionLost):
                self._drop_session()
            why = f"over {result.seconds:g} s" if isinstance(result, Timeout) else result.reason
        raise LeanError(f"the file with the script in it was not elaborated: {why}")

    def release(self) -> HostSession | None:
        """Return the session without this goal's states; None if it cannot be used."""
        session, self._session = self._session, None
        states = [*self._states.values(), *self._unneeded_states]
        self.close()
        if session is None or not session.alive:
            return None
        with contextlib.suppress(LeanError):
            session.free(states)
            return session
        return None

    def expect(self, node: int, key: str) -> None:
        """Set the key of a node that an earlier process found."""
        self._keys.setdefault(node, key)

    def close(self) -> None:
        """Close the session, and forget all states."""
        if self._session is not None:
            self._session.close()
        self._session = None
        self._states.clear()
        self._unbound_states.clear()
        self._unneeded_states.clear()

    # -- outcomes -------------------------------------------------------------------------

    def _outcome_of_state(self, node: int, tactic: str, state: ProofState) -> Outcome:
        if state.uses_sorry:
            return Outcome("error", ms=state.ms, detail="the tactic leaves a sorry")
        if state.closed:
            if not state.complete:
                return Outcome("error", ms=state.ms, detail="the tactic leaves holes in the proof")
            return Outcome("closed", ms=state.ms)
        groups = goal_groups(state)
        parts: list[ProofState] = []
        for group in groups:
            if len(groups) == 1:
                parts.append(state)
                continue
            part = self._ask(lambda session, g=group: session.focus(state, g))
            if not isinstance(part, ProofState):
                return Outcome("lost", ms=state.ms, detail="the goals could not be taken apart")
            parts.append(part)
        self._unbound_states[node, tactic] = tuple(parts)
        subgoals = tuple(
            Subgoal(part.hash, views(part.goals), group)
            for part, group in zip(parts, groups, strict=True)
        )
        return Outcome("goals", subgoals, state.ms)

    def _follow_advice(self, state: ProofState, result: ProofState) -> Outcome:
        """Return the outcome of a search tactic such as `exact?` that closed a goal.

        Its `script` is the advice of the tactic, if the advice closes the goal too.
        """
        for message in result.messages:
            if found := _TRY_THIS.search(message.text):
                advice = found.group(1).strip()
                again = self._ask(
                    lambda session, text=advice: self._run(session, state, text, self._step_seconds)
                )
                if isinstance(again, ProofState) and again.closed and again.complete:
                    return Outcome("closed", ms=result.ms + again.ms, script=advice)
                if isinstance(again, SessionLost):
                    return Outcome("lost", ms=result.ms, detail=_short(again.reason))
        return Outcome("closed", ms=result.ms)

    # -- states ---------------------------------------------------------------------------

    def _state(self, node: int) -> ProofState:
        """Return the proof state of a node, made again from the nearest known state if needed.

        A session with too large a heap, or one that another environment has lost, is replaced.
        """
        session = self._session
        if session is not None and (
            not session.alive or getattr(session, "heap_bytes", 0) > self._heap_limit
        ):
            self.close()
        missing: list[int] = []
        current = node
        while current not in self._states and current != 0:
            missing.append(current)
            current = self._origins[current][0]
        if current not in self._states:
            self._open_root()
        for child in reversed(missing):
            parent, tactic, position = self._origins[child]
            state = self._repeat_tactic(parent, tactic, position)
            if self._keys.setdefault(child, state.hash) != state.hash:
                raise LeanError(f"`{tactic}` gave other goals than before")
            self._states[child] = state
        return self._states[node]

    def _repeat_tactic(self, parent: int, tactic: str, position: int) -> ProofState:
        before = self._states[parent]
        result = self._ask(lambda s: self._run(s, before, tactic, 4 * self._step_seconds))
        if isinstance(result, ProofState) and result.goals:
            whole, groups = result, goal_groups(result)
            if len(groups) == 1:
                return whole
            if position < len(groups):
                result = self._ask(lambda s: s.focus(whole, groups[position]))
        if not isinstance(result, ProofState) or not result.goals:
            raise LeanError(f"`{tactic}` did not work a second time")
        return result

    def _open_root(self) -> ProofState:
        result = self._ask(self._opening)
        if isinstance(result, SessionLost):
            result = self._ask(self._opening)
        if isinstance(result, ProofState) and result.goals:
            if self._keys.setdefault(0, result.hash) != result.hash:
                raise LeanError("the goal is not the one this run began with")
            self._states[0] = result
            return result
        if isinstance(result, TacticError):
            raise GoalError(result.message)
        raise LeanError(f"the goal could not be opened: {result}")

    def _ask(self, request: Callable[[HostSession], StepResult]) -> StepResult:
        """Return the answer to a request. A session that is lost with it is dropped."""
        if self._session is None:
            self._session = self._factory()
        begun = time.perf_counter()
        try:
            result = request(self._session)
        finally:
            self.lean_seconds += time.perf_counter() - begun
        if isinstance(result, SessionLost):
            self._drop_session()
        return result

    def _told(self, request: Callable[[HostSession], _Told]) -> _Told:
        if self._session is None:
            raise LeanError("Lean was lost")
        begun = time.perf_counter()
        try:
            return request(self._session)
        except LeanError:
            if not self._session.alive:
                self._drop_session()
            raise
        finally:
            self.lean_seconds += time.perf_counter() - begun

    def _drop_session(self) -> None:
        self.sessions_lost += 1
        self.close()


def goal_groups(state: ProofState) -> tuple[tuple[int, ...], ...]:
    """Return the positions of a state's goals, grouped by which must be solved together.

    Groups are in order of their first goals. All goals that share a metavariable with another goal
    form one group: a script can close the single goals one by one, and then go on with that group.
    """
    single = [group for group in state.groups if len(group) == 1]
    linked = sorted(index for group in state.groups if len(group) > 1 for index in group)
    return tuple(sorted([*single, tuple(linked)] if linked else single))


def views(goals: Sequence[Goal]) -> tuple[GoalView, ...]:
    """Return goals as views, without the names and numbers that depend on the session."""
    found: list[GoalView] = []
    for goal in goals:
        hypotheses = tuple(
            msgspec.structs.replace(h, type=stable(h.type), value=h.value and stable(h.value))
            for h in goal.hypotheses
        )
        # Lean adds a scope to a case's name, with a number that depends on the session.
        case = goal.case and goal.case.partition("._@")[0]
        found.append(GoalView(stable(goal.target), hypotheses, case))
    return tuple(found)


def stable(text: str) -> str:
    """Number Lean's internal names by order of appearance; Lean's own numbers vary by session."""
    numbers: dict[str, int] = {}

    def renumber(found: re.Match[str]) -> str:
        return f"{found.group(1)}.{numbers.setdefault(found.group(0), len(numbers) + 1)}"

    return _INTERNAL.sub(renumber, text)


def _short(text: str) -> str:
    line = stable(" ".join(text.split()))
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"
