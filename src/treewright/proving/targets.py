"""From the target that the user names to goals that a Lean session can open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean import sorries
from treewright.lean.session.answers import (
    CheckResult,
    Diagnostic,
    ProofState,
    StepResult,
    TacticError,
)
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import GOAL_NAME, check_closed, theorem_texts
from treewright.lean.session.lemma_errors import unread_lemmas
from treewright.lean.sorries import Sorry
from treewright.proving.settings import FileTarget, StatementTarget, Target

NEGATION_NAME = "treewright_negation"
_FILE = re.compile(r"^(?P<path>.+\.lean)(?::(?P<name>[^:/\\]+))?$")

TellTrouble = Callable[[tuple[str, ...], str], None]
"""Receives the declarations that are left alone, and the line of the error that concerns them."""

Opening = Callable[[HostSession], StepResult]


class NothingToProve(UsageError):
    """The file has no open goal: no `sorry`, no example with one, and no error."""


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a goal as a separate theorem, with `sorry` as the proof of `original`.

    For a goal of a file the theorem stands behind the file, so that every name keeps its meaning.
    """

    statement: str
    opening: Opening
    original: str
    declaration: str

    def with_proof(self, script: str) -> str:
        """Return the text with the script as the proof: the candidate for the replay check."""
        lines = [f"  {line}" if line.strip() else "" for line in script.splitlines()]
        return self.original.removesuffix("  sorry\n") + "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """One goal of a run. `sorry` is its place, for a goal of a file."""

    number: int
    name: str
    statement: str
    opening: Opening
    negation: Negation
    sorry: Sorry | None = None


def parse(argument: str | None, statement: str | None) -> Target:
    """Return the target for the argument TARGET or the option `--statement`. Raises UsageError."""
    if (argument is None) == (statement is None):
        raise UsageError(
            "name one thing to prove: FILE.lean, FILE.lean:theorem, a project's directory, or "
            "--statement"
        )
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
    return read_file_target(Path(found["path"]), found["name"])


def read_file_target(path: Path, declaration: str | None = None) -> FileTarget:
    """Return the target for every `sorry` of a file, or of one of its declarations."""
    try:
        source = path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None
    return FileTarget(str(path), source, declaration)


def statement_goal(target: StatementTarget) -> GoalSpec:
    """Return the only goal of a statement."""
    statement = target.statement
    typed = f"({statement}\n : Prop)"
    return GoalSpec(
        0, "goal", statement, lambda session: session.start(typed), negate_statement(target)
    )


def negate_statement(target: StatementTarget) -> Negation:
    """Return the negation of a statement, as a text of its own."""
    statement = f"¬ ({target.statement}\n : Prop)"
    original, _ = theorem_texts(statement, "", imports=target.imports)
    return Negation(statement, lambda session: session.start(statement), original, GOAL_NAME)


def negate_in_text(source: str, statement: str) -> Negation:
    """Return a negation that stands at the end of a file.

    Lean does not accept all of them: the type of a definition is no proposition.
    """
    ended = source.replace("\r\n", "\n").rstrip("\n")
    theorem = f"theorem _root_.{NEGATION_NAME} : {statement} := by"
    original = f"{ended}\n\n{theorem}\n  sorry\n"

    def open_it(session: HostSession) -> StepResult:
        for sorry in sorries.extract(session, original, until=NEGATION_NAME, statements=True):
            if sorry.declaration == NEGATION_NAME and sorry.states and sorry.trouble is None:
                return sorry.states[0]
        return TacticError(f"Lean does not take {statement}", "statement")

    return Negation(statement, open_it, original, NEGATION_NAME)


def read_file_goals(
    target: FileTarget, session: HostSession, tell: TellTrouble = lambda names, error: None
) -> list[GoalSpec]:
    """Return the goals of a file.

    `tell` receives the declarations that an error in the file concerns.
    """
    found = _sorries(target, session, tell)
    states = _SorryStates(target.source, session, found)
    return [_spec(number, states, sorry) for number, sorry in enumerate(found)]


def read_goals(target: Target, sessions: Callable[[], HostSession]) -> list[GoalSpec]:
    """Return the goals of a run. A session is opened and closed only for a file."""
    if isinstance(target, StatementTarget):
        return [statement_goal(target)]
    session = sessions()
    try:
        return read_file_goals(target, session)
    finally:
        session.close()


def _sorries(target: FileTarget, session: HostSession, tell: TellTrouble) -> list[Sorry]:
    until = target.declaration or ""
    result = session.check(target.source, sorries=True, until=until, statements=True)
    if isinstance(result, CheckResult) and not result.stopped and not result.sorries:
        # The errors say why there is nothing to prove; those in proofs are among them.
        result = session.check(target.source, sorries=True, until=until)
    if not isinstance(result, CheckResult):
        raise TreewrightError(f"{target.path} could not be elaborated: {result}")
    if result.stopped:
        raise TreewrightError(f"{target.path} could not be elaborated: {result.stopped}")
    everything = [s for s in sorries.from_check(target.source, result) if s.states]
    # An example has no name under which its proof could be checked.
    found = [s for s in everything if not s.declaration.endswith("_example")]
    if target.declaration is None:
        if examples := [s for s in everything if s not in found]:
            names = tuple(dict.fromkeys(f"the example of line {each.line}" for each in examples))
            why = "an example has no name under which a proof can be checked"
            tell(names, f"{target.path}: {why}")
        lemmas = [x for x in unread_lemmas(target.source, result.diagnostics) if x.has_sorry]
        if not found:
            error = next((x.error for x in lemmas), next(iter(result.errors), None))
            if error is None and not everything:
                raise NothingToProve(f"{target.path} has no sorry: there is nothing to prove")
            why = f": {_line(target, error)}" if error else "; the sorries of examples are left out"
            raise UsageError(f"{target.path} has no sorry that can be proved{why}")
        if lemmas:
            names = tuple(f"the lemma of line {each.error.line}" for each in lemmas)
            tell(names, _line(target, lemmas[0].error))
        return _without_trouble(target, found, tell)
    name = target.declaration
    inside = [s for s in found if s.declaration == name or s.declaration.endswith(f".{name}")]
    if not inside:
        others = ", ".join(dict.fromkeys(s.declaration for s in found)) or "none"
        lemmas = unread_lemmas(target.source, result.diagnostics)
        why = f"; {_line(target, lemmas[0].error)}" if lemmas else ""
        raise UsageError(
            f"{target.path} has no sorry in `{name}`; declarations with one: {others}{why}"
        )
    return _without_trouble(target, inside, tell)


def _without_trouble(target: FileTarget, found: list[Sorry], tell: TellTrouble) -> list[Sorry]:
    """Return the sorries that no error of the file concerns. Raises TreewrightError without any."""
    fine = [sorry for sorry in found if sorry.trouble is None]
    if not fine and (error := found[0].trouble) is not None:
        raise TreewrightError(
            f"an error in the file concerns `{found[0].declaration}`, so it cannot be proved: "
            f"{_line(target, error)}"
        )
    concerned: dict[str, dict[str, None]] = {}
    for sorry in found:
        if sorry.trouble is not None:
            concerned.setdefault(_line(target, sorry.trouble), {})[sorry.declaration] = None
    for error, names in concerned.items():
        tell(tuple(names), error)
    return fine


def _line(target: FileTarget, error: Diagnostic) -> str:
    return error.format(target.path).splitlines()[0]


class _SorryStates:
    """The proof states of a file's sorries in a session. One elaboration gives all of them.

    `open` returns each state once, because the search frees it. In another session, or when a goal
    is opened a second time, the file is elaborated again, up to the goal's declaration.
    """

    def __init__(self, source: str, session: HostSession, found: list[Sorry]) -> None:
        self.source = source
        self._session = session
        self._states = _by_place(found)

    def open(self, session: HostSession, sorry: Sorry) -> StepResult:
        place = (sorry.start, sorry.end)
        if session is not self._session or place not in self._states:
            self._session = session
            found = sorries.extract(session, self.source, until=sorry.declaration, statements=True)
            self._states = _by_place(found)
        state = self._states.pop(place, None)
        gone = f"the sorry at line {sorry.line} is not there any more"
        return TacticError(gone, "statement") if state is None else state


def _by_place(found: Iterable[Sorry]) -> dict[tuple[int, int], ProofState]:
    return {(sorry.start, sorry.end): sorry.states[0] for sorry in found if sorry.states}


def _spec(number: int, states: _SorryStates, sorry: Sorry) -> GoalSpec:
    name = f"{sorry.declaration}:{sorry.line}"
    return GoalSpec(
        number,
        name,
        sorry.goal.pretty,
        lambda session: states.open(session, sorry),
        negate_in_text(states.source, f"¬ (type_of% @_root_.{sorry.declaration})"),
        sorry,
    )
