"""Tools for goals: `lean_goals` lists the goals of a text, `lean_try` tries tactics on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import (
    CheckResult,
    ProofState,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import check_closed
from treewright.lean.sorries import from_check, with_sorry_at
from treewright.mcp_server.call import Call, Fault, answered, fault
from treewright.mcp_server.server_state import KeptGoal, Making, ServerState
from treewright.mcp_server.source_tools import Seconds, read_source
from treewright.mcp_server.tool import (
    Answer,
    Arguments,
    Limit,
    Offset,
    PagedAnswer,
    PathText,
    Text,
    clipped,
    page,
    tool,
)
from treewright.mcp_server.warm_lean import WarmLean

# -- goals ----------------------------------------------------------------------------------


class OpenGoal(Answer, frozen=True):
    """A goal. `goal` is its name for lean_try; `text` is its display by Lean.

    Lines and columns count from 1.
    """

    goal: str
    text: str
    line: int = 0
    column: int = 0
    declaration: str = ""


class GoalsArguments(Arguments, frozen=True):
    path: PathText = ""
    text: Text = ""
    project: PathText = ""
    line: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            description="Line, from 1: return the goals at this line instead of those at each "
            "sorry.",
        ),
    ] = 0
    column: Annotated[
        int, msgspec.Meta(ge=0, description="Column in `line`, from 1; 0 means the line's start.")
    ] = 0
    seconds: Seconds = 60.0
    limit: Limit = 20
    offset: Offset = 0


class Goals(PagedAnswer, frozen=True):
    """The goals at each `sorry`, or at the given line.

    `closed` means that no goal is left there.
    """

    goals: list[OpenGoal]
    total: int
    errors: int
    closed: bool = False


@tool("lean_goals", lambda given: given.seconds)
def goals(server: ServerState, given: GoalsArguments, call: Call) -> Goals:
    """List the open goals of a Lean file or text: at each sorry, or at `line` and `column`
    (from 1).

    `seconds` limits Lean. Returns each goal with a name for lean_try, its position and text.
    """
    source = read_source(server, given.path, given.text, given.project)
    if given.line:
        text, at = with_sorry_at(source.text, given.line, given.column or None)
    elif given.column:
        raise UsageError("`column` goes with `line`")
    else:
        text, at = source.text, None

    def ask(session: HostSession) -> Goals:
        _free(server, session)
        result = answered(session.check(text, sorries=True, timeout=given.seconds))
        found = [
            (sorry, state)
            for sorry in from_check(text, result)
            if at is None or sorry.start == at
            for state in sorry.states
        ]
        if at is not None and not found:
            return _without_goal(text, at, result)
        shown, rest = page(found, given.offset, given.limit)
        weight = len(text)
        listed = []
        for number, (sorry, state) in enumerate(shown, start=given.offset):
            make = _remake(text, at, number, given.seconds)
            kept = server.goals.keep(source.lean, make, session, state, weight)
            weight = 0
            shown_as = clipped(state.pretty), sorry.line, sorry.column + 1
            listed.append(OpenGoal(kept.name, *shown_as, clipped(sorry.declaration, 200)))
        kept_states = {state.state for _, state in shown}
        session.free([state for _, state in found if state.state not in kept_states])
        return Goals(listed, len(found), len(result.errors), **rest)

    answer = source.lean.ask(call, ask)
    call.raise_if_stopped()
    return answer


def _without_goal(text: str, at: int, result: CheckResult) -> Goals:
    """Return the answer for a line without a goal; an error if Lean did not reach the line."""
    line = text.encode()[:at].count(b"\n") + 1
    here = [error for error in result.errors if error.line == line]
    if any("no goals" in error.text.lower() for error in here):
        return Goals([], 0, len(result.errors), closed=True)
    why = f": {result.errors[0].format('text')}" if result.errors else ""
    raise UsageError(
        f"Lean finds no goal at line {line}; is it inside a tactic proof?{clipped(why, 500)}"
    )


def _remake(text: str, at: int | None, number: int, seconds: float) -> Making:
    """Return a function that makes the state of the n-th goal of a text in another session."""

    def make(session: HostSession) -> ProofState:
        result = answered(session.check(text, sorries=True, timeout=seconds))
        states = [
            state
            for sorry in from_check(text, result)
            if at is None or sorry.start == at
            for state in sorry.states
        ]
        if number >= len(states):
            raise Fault("the goal could not be made again in a new Lean; call lean_goals again")
        session.free([*states[:number], *states[number + 1 :]])
        return states[number]

    return make


# -- tactics --------------------------------------------------------------------------------


class TryArguments(Arguments, frozen=True):
    tactics: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=20_000)]],
        msgspec.Meta(
            min_length=1, max_length=64, description="Tactics. Each is tried on the same goal."
        ),
    ]
    goal: Annotated[
        str, msgspec.Meta(max_length=40, description="Name of a goal from lean_goals or lean_try.")
    ] = ""
    statement: Annotated[
        str,
        msgspec.Meta(
            max_length=100_000, description="Proposition to try the tactics on, instead of a goal."
        ),
    ] = ""
    seconds: Annotated[
        float, msgspec.Meta(gt=0, le=600, description="Most seconds for each tactic.")
    ] = 5.0


class Tried(Answer, frozen=True):
    """The outcome of a tactic.

    `closes`: no goal is left; the kernel has not checked the proof yet. `goals`: the goals in
    `text` are left, and `goal` is their name. `sorry`: no goal is left, but the proof has a sorry.
    `fails`: Lean refused the tactic. `timed_out`: the outcome is unknown.
    """

    tactic: str
    status: Literal["closes", "goals", "sorry", "fails", "timed_out"]
    goal: str = ""
    goals: int = 0
    text: str = ""


class Tries(Answer, frozen=True):
    tried: list[Tried]


@tool("lean_try", lambda given: given.seconds * len(given.tactics))
def try_tactics(server: ServerState, given: TryArguments, call: Call) -> Tries:
    """Try several tactics on the same goal (from lean_goals or an earlier lean_try) or on a
    statement, each for at most `seconds`.

    Returns for each tactic whether it closes the goal, the goals that are left (with a name for
    lean_try), or Lean's error.
    """
    if bool(given.goal) == bool(given.statement):
        raise UsageError("give one of `goal` and `statement`")
    if given.goal:
        kept = server.goals.find(given.goal)
        lean, begin = kept.lean, lambda session: kept
    else:
        check_closed(given.statement, "the statement")
        lean = server.lean_without_project()
        begin = _statement(server, lean, given.statement)

    def ask(session: HostSession) -> Tries:
        _free(server, session)
        kept = begin(session)
        state = kept.in_session(session)
        tried = []
        for number, tactic in enumerate(given.tactics):
            call.raise_if_stopped()
            call.progress(number, len(given.tactics), clipped(tactic, 100))
            tried.append(_tried(server, kept, session, state, tactic, given.seconds))
        return Tries(tried)

    return lean.ask(call, ask)


def _statement(
    server: ServerState, lean: WarmLean, statement: str
) -> Callable[[HostSession], KeptGoal]:
    def make(session: HostSession) -> ProofState:
        found = session.start(f"({statement}\n : Prop)")
        if isinstance(found, TacticError):
            raise UsageError(f"Lean refuses the statement: {clipped(found.message, 1000)}")
        return _state(found)

    return lambda session: server.goals.keep(lean, make, session, make(session), len(statement))


def _state(result: StepResult) -> ProofState:
    if isinstance(result, ProofState):
        return result
    if isinstance(result, TacticError):
        raise Fault(
            f"Lean refused a tactic that it had accepted before: {clipped(result.message, 500)}"
        )
    raise fault(result)


def _tried(
    server: ServerState,
    on: KeptGoal,
    session: HostSession,
    state: ProofState,
    tactic: str,
    seconds: float,
) -> Tried:
    result = session.run_tactic(state, tactic, seconds)
    if isinstance(result, TacticError):
        return Tried(tactic, "fails", text=clipped(result.message, 1000))
    if isinstance(result, Timeout):
        return Tried(tactic, "timed_out", text=f"not finished after {result.seconds:g} s")
    if not isinstance(result, ProofState):
        raise fault(result)
    if result.closed:
        session.free([result])
        return Tried(tactic, "closes" if result.complete else "sorry")

    def make(other: HostSession) -> ProofState:
        before = on.make(other) if other is not on.session else on.state
        return _state(other.run_tactic(before, tactic, seconds))

    kept = server.goals.keep(on.lean, make, session, result, len(tactic))
    return Tried(tactic, "goals", kept.name, len(result.goals), clipped(result.pretty))


def _free(server: ServerState, session: HostSession) -> None:
    if states := server.goals.take_freed(session):
        session.free(states)
