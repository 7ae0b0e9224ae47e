"""Reading a bank of goals: JSON Lines, tolerant of what is wrong with single lines.

A line is an object with `id`, `text` (or `statement`), and optionally `context`, `imports`,
`preamble`, `estimated_difficulty` (or `difficulty`) and `class`; other keys are ignored. A line
that cannot be used, or that repeats an id, is left out and reported by number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.lean.session.inputs import header_of
from treewright.orchestrator.goals import difficulty
from treewright.orchestrator.types import DEFAULT_IMPORTS, Goal

_LONGEST_ID = 500


class _Line(msgspec.Struct):
    id: str | int
    text: str | None = None
    statement: str | None = None
    context: list[str] | str = []
    imports: list[str] = []
    preamble: str = ""
    estimated_difficulty: float | None = None
    difficulty: float | None = None
    goal_class: str = msgspec.field(default="", name="class")


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that was left out, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Bank:
    path: Path
    digest: str
    goals: tuple[Goal, ...]
    problems: tuple[Problem, ...]


def read_bank(path: Path) -> Bank:
    """All goals of a file, in order. A file without a usable goal is an error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the bank {path}: {error.strerror}") from error
    decode = jsontext.decoder(_Line)
    goals: dict[str, Goal] = {}
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            goal = _goal(decode(line))
        except (ValueError, UsageError) as error:
            problems.append(Problem(number, str(error)))
            continue
        if goal.id in goals:
            problems.append(Problem(number, f"the id {goal.id!r} is taken by an earlier line"))
        else:
            goals[goal.id] = goal
    if not goals:
        first = f"; line {problems[0].line}: {problems[0].reason}" if problems else ""
        raise UsageError(f"the bank {path} has no goals{first}")
    digest = hashlib.sha256(data).hexdigest()
    return Bank(path, digest, tuple(goals.values()), tuple(problems))


def _goal(line: _Line) -> Goal:
    text = line.text if line.text is not None else line.statement
    if text is None or not text.strip():
        raise ValueError("there is no `text` (or `statement`)")
    identity = str(line.id)
    if not identity.strip() or not identity.isprintable() or len(identity) > _LONGEST_ID:
        raise ValueError(f"the id is not one line of 1 to {_LONGEST_ID} printable characters")
    header_of(line.imports)
    context = (line.context,) if isinstance(line.context, str) else tuple(line.context)
    context = tuple(part for part in context if part.strip())
    given = line.estimated_difficulty if line.estimated_difficulty is not None else line.difficulty
    if given is not None and not 0 <= given <= 1:
        raise ValueError(f"the difficulty {given:g} is not between 0 and 1")
    return Goal(
        id=identity,
        text=text,
        context=context,
        estimated_difficulty=difficulty.estimate(text, context) if given is None else given,
        imports=tuple(line.imports) or DEFAULT_IMPORTS,
        goal_class=line.goal_class,
        preamble=line.preamble,
    )
