"""From what the user names to goals that a session can open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean import sorries
from treewright.lean.inputs import check_closed
from treewright.lean.session import LeanSession
from treewright.lean.sorries import Sorry
from treewright.lean.types import CheckResult, ProofState, StepResult, TacticError
from treewright.mcts.settings import FileTarget, StatementTarget, Target

_FILE = re.compile(r"^(?P<path>.+\.lean)(?::(?P<name>[^:/\\]+))?$")


Opening = Callable[[LeanSession], StepResult]


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """One goal of a run.

    `sorry` is its place, for goals of a file. `negation` is there if the goal means by itself
    what it means here, so that its negation can be asked for.
    """

    number: int
    name: str
    statement: str
    opening: Opening
    negation: str | None = None
    sorry: Sorry | None = None


def parse(argument: str | None, statement: str | None) -> Target:
    """TARGET or `--statement`: exactly one of them."""
    if (argument is None) == (statement is None):
        raise UsageError("name one thing to prove: FILE.lean, FILE.lean:theorem, or --statement")
    if statement is not None:
        if not statement.strip():
            raise UsageError("--statement is empty")
        check_closed(statement, "the statement")
        return StatementTarget(statement.strip())
    found = _FILE.match(argument or "")
    if not found:
        raise UsageError(
            f"cannot read {argument!r} as FILE.lean or FILE.lean:theorem; "
            "for a proposition use --statement"
        )
    path = Path(found["path"])
    try:
        source = path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None
    return FileTarget(str(path), source, found["name"])


def statement_goal(target: StatementTarget) -> GoalSpec:
    statement = target.statement
    typed = f"({statement}\n : Prop)"
    return GoalSpec(0, "goal", statement, lambda session: session.start(typed), negation_of(target))


def negation_of(target: StatementTarget) -> str:
    return f"¬ ({target.statement}\n : Prop)"


def file_goals(target: FileTarget, session: LeanSession) -> list[GoalSpec]:
    found = _sorries(target, session)
    places = _Places(target.source, session, found)
    return [_spec(number, places, sorry) for number, sorry in enumerate(found)]


def goals_of(target: Target, sessions: Callable[[], LeanSession]) -> list[GoalSpec]:
    """The goals of a run; a session is needed, and closed again, only for those of a file."""
    if isinstance(target, StatementTarget):
        return [statement_goal(target)]
    session = sessions()
    try:
        return file_goals(target, session)
    finally:
        session.close()


def _sorries(target: FileTarget, session: LeanSession) -> list[Sorry]:
    result = session.check(target.source, sorries=True)
    if not isinstance(result, CheckResult):
        raise TreewrightError(f"{target.path} could not be elaborated: {result}")
    if result.errors:
        raise TreewrightError(
            f"the file does not elaborate, so nothing in it can be proved: "
            f"{result.errors[0].format(target.path)}"
        )
    found = [
        sorry
        for sorry in sorries.from_check(target.source, result)
        # An example has no name under which its proof could be checked.
        if sorry.states and not sorry.declaration.endswith("_example")
    ]
    if target.declaration is None:
        if not found:
            raise UsageError(f"{target.path} has no sorry: there is nothing to prove")
        return found
    name = target.declaration
    inside = [s for s in found if s.declaration == name or s.declaration.endswith(f".{name}")]
    if not inside:
        others = ", ".join(dict.fromkeys(s.declaration for s in found)) or "none"
        raise UsageError(f"{target.path} has no sorry in `{name}`; declarations with one: {others}")
    return inside


class _Places:
    """The goals of a file's sorries in a session: one elaboration of the file gives them all.

    Each is handed out once, because whoever got it frees it. In another session, or for a goal
    that is opened a second time, the file is elaborated again.
    """

    def __init__(self, source: str, session: LeanSession, found: list[Sorry]) -> None:
        self._source = source
        self._session = session
        self._states = _by_place(found)

    def open(self, session: LeanSession, sorry: Sorry) -> StepResult:
        place = (sorry.start, sorry.end)
        if session is not self._session or place not in self._states:
            self._session = session
            self._states = _by_place(sorries.extract(session, self._source))
        state = self._states.pop(place, None)
        gone = f"the sorry at line {sorry.line} is not there any more"
        return TacticError(gone, "statement") if state is None else state


def _by_place(found: Iterable[Sorry]) -> dict[tuple[int, int], ProofState]:
    return {(sorry.start, sorry.end): sorry.states[0] for sorry in found if sorry.states}


def _spec(number: int, places: _Places, sorry: Sorry) -> GoalSpec:
    name = f"{sorry.declaration}:{sorry.line}"
    return GoalSpec(
        number,
        name,
        sorry.goal.pretty,
        lambda session: places.open(session, sorry),
        sorry=sorry,
    )
