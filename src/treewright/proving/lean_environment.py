"""The environment of one goal in a Lean session, used strictly one step at a time.

It remembers the tactic that led to each node. When Lean was lost, or in another process, it makes
the proof state of a node again, from the root.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence

from treewright.lean.session.answers import (
    Cancelled,
    CheckResult,
    ProofState,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.interface import LeanError, LeanSession
from treewright.lean.session.knowledge import NOTHING_KNOWN, Knowledge
from treewright.lean.verify.additions import new_errors
from treewright.proving.environment import Outcome, Subgoal, goal_groups, stable, views

_LIBRARY_SEARCH = re.compile(r"^(exact|apply|simp|simp_all|rw|grind|omega)\?|^(try\?|show_term)")
"""Tactics that search and report another tactic. They count only if they close the goal."""
_TRY_THIS = re.compile(r"Try this:\s*(?:\[\w+\]\s*)?(.+)", re.DOTALL)
_AXIOMS_LINE = re.compile(
    r"'(?P<name>[^'].*)' depends on axioms:\s*\[(?P<axioms>[^\]]*)\]", re.DOTALL
)
_LONGEST_DETAIL = 300
_FREE_BATCH = 64
"""States that the search does not need are freed in batches of this size."""


class LeanEnvironment:
    """One goal in a Lean session, which this object replaces when it is lost.

    Two environments may share a session, one step at a time. Each frees its own states, and makes
    them again if the other environment has lost the session.
    """

    def __init__(
        self,
        factory: Callable[[], LeanSession],
        opening: Callable[[LeanSession], StepResult],
        *,
        step_seconds: float = 5.0,
        heap_limit: int = 1_500_000_000,
    ) -> None:
        self._factory = factory
        self._opening = opening
        self._step_seconds = step_seconds
        self._heap_limit = heap_limit
        self._session: LeanSession | None = None
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
        result = self._timed(lambda session: session.run_tactic(state, tactic, self._step_seconds))
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
                self._drop_session()
                return Outcome("lost", ms=result.ms, detail=_short(result.reason))

    def knowledge(self, node: int) -> Knowledge:
        """Return Lean's knowledge about a node; nothing if Lean cannot give any.

        A lost Lean is asked a second time. Raises LeanError if Lean cannot be started again.
        """
        for _ in range(2):
            try:
                return self._survey(node)
            except LeanError:
                if self._session is not None and self._session.alive:
                    return NOTHING_KNOWN
                self._drop_session()
        self._require_lean()
        return NOTHING_KNOWN

    def _survey(self, node: int) -> Knowledge:
        state = self._state(node)
        begun = time.perf_counter()
        try:
            assert self._session is not None
            return self._session.survey(state, library=True)
        finally:
            self.lean_seconds += time.perf_counter() - begun

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
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

    def _run_script(self, script: str) -> ProofState | None:
        """Return the state after a whole script; None if Lean does not run it to its end."""
        try:
            state = self._state(0)
        except LeanError:
            return None
        result = self._timed(lambda s: s.run_tactic(state, script, 4 * self._step_seconds))
        if isinstance(result, SessionLost):
            self._drop_session()
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
        result = self._elaborate_once(source)
        if not isinstance(result, CheckResult):
            result = self._elaborate_once(source)
        if not isinstance(result, CheckResult):
            why = f"over {result.seconds:g} s" if isinstance(result, Timeout) else result.reason
            raise LeanError(f"the file with the script in it was not elaborated: {why}")
        return result

    def _elaborate_once(self, source: str) -> CheckResult | Timeout | SessionLost:
        if self._session is None:
            self._session = self._factory()
        result = self._session.check(source)
        if isinstance(result, SessionLost):
            self._drop_session()
        return result

    def release(self) -> LeanSession | None:
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
            part = self._timed(lambda session, g=group: session.focus(state, g))
            if not isinstance(part, ProofState):
                if isinstance(part, SessionLost):
                    self._drop_session()
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
                again = self._timed(
                    lambda session, text=advice: session.run_tactic(state, text, self._step_seconds)
                )
                if isinstance(again, ProofState) and again.closed and again.complete:
                    return Outcome("closed", ms=result.ms + again.ms, script=advice)
                if isinstance(again, SessionLost):
                    self._drop_session()
                    return Outcome("lost", ms=result.ms, detail=_short(again.reason))
        return Outcome("closed", ms=result.ms)

    # -- states ---------------------------------------------------------------------------

    def _state(self, node: int) -> ProofState:
        """Return the proof state of a node, made again from the nearest known state if needed."""
        self._replace_session_if_needed()
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
        result = self._timed(lambda s: s.run_tactic(before, tactic, 4 * self._step_seconds))
        if isinstance(result, ProofState) and result.goals:
            whole, groups = result, goal_groups(result)
            if len(groups) == 1:
                return whole
            if position < len(groups):
                result = self._timed(lambda s: s.focus(whole, groups[position]))
        if isinstance(result, SessionLost):
            self._drop_session()
        if not isinstance(result, ProofState) or not result.goals:
            raise LeanError(f"`{tactic}` did not work a second time")
        return result

    def _open_root(self) -> ProofState:
        result = self._timed(self._opening)
        if isinstance(result, SessionLost):
            self._drop_session()
            result = self._timed(self._opening)
        if isinstance(result, ProofState) and result.goals:
            if self._keys.setdefault(0, result.hash) != result.hash:
                raise LeanError("the goal is not the one this run began with")
            self._states[0] = result
            return result
        if isinstance(result, TacticError):
            raise GoalError(result.message)
        raise LeanError(f"the goal could not be opened: {result}")

    def _timed(self, call: Callable[[LeanSession], StepResult]) -> StepResult:
        if self._session is None:
            self._session = self._factory()
        begun = time.perf_counter()
        try:
            return call(self._session)
        finally:
            self.lean_seconds += time.perf_counter() - begun

    def _replace_session_if_needed(self) -> None:
        """Replace a session with too large a heap, or one that another environment has lost."""
        if self._session is None:
            return
        too_large = getattr(self._session, "heap_bytes", 0) > self._heap_limit
        if too_large or not self._session.alive:
            self.close()

    def _drop_session(self) -> None:
        self.sessions_lost += 1
        self.close()


class GoalError(LeanError):
    """The goal does not elaborate."""


def _short(text: str) -> str:
    line = stable(" ".join(text.split()))
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"
