"""Reading a bank of goals: JSON Lines, or the document that `treewright sorries --json` prints.

A line is an object with `id`, `text` (or `statement`), and optionally `context`, `imports`,
`preamble`, `estimated_difficulty` (or `difficulty`) and `class`; other keys are ignored. A line
with `project` and `sorries` gives a goal for each named declaration. A line that cannot be used, or
that repeats an id, is left out and reported by number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.lean.session.inputs import header_of
from treewright.orchestrator.goals.sorry_goals import (
    SorryRecord,
    estimate_difficulty,
    goals_of_file,
)
from treewright.orchestrator.types import DEFAULT_IMPORTS, Goal

_MAX_ID_LENGTH = 500


class _Line(msgspec.Struct):
    id: str | int | None = None
    text: str | None = None
    statement: str | None = None
    context: list[str] | str = []
    imports: list[str] = []
    preamble: str = ""
    estimated_difficulty: float | None = None
    difficulty: float | None = None
    goal_class: str = msgspec.field(default="", name="class")
    project: str = ""
    sorries: list[SorryRecord] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A line, or a part of it, that was left out, and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Bank:
    """The goals of a bank, which may import the Lake project around `root`."""

    path: Path
    root: Path
    digest: str
    goals: tuple[Goal, ...]
    problems: tuple[Problem, ...]


def read_bank(path: Path) -> Bank:
    """Return the goals of a file, in order.

    Raises:
        UsageError: The file cannot be read, or has no goal that could be used.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the bank {path}: {error.strerror}") from error
    return parse_bank(data, path, path)


def parse_bank(data: bytes, path: Path, root: Path) -> Bank:
    """Return the goals of a bank's text; `path` is its name in messages.

    Raises:
        UsageError: The text has no goal that could be used.
    """
    decode = jsontext.decoder(_Line)
    goals: dict[str, Goal] = {}
    problems: list[Problem] = []
    for number, text in enumerate(data.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            line = decode(text)
            if line.sorries is None:
                found = [_goal(line)]
            else:
                root = Path(line.project)
                found, reasons = _goals_of_project(root, line.sorries)
                problems += [Problem(number, reason) for reason in reasons]
        except (ValueError, UsageError) as error:
            problems.append(Problem(number, str(error)))
            continue
        for goal in found:
            if goal.id in goals:
                reason = f"the id {goal.id!r} is taken by an earlier line"
                problems.append(Problem(number, reason))
            else:
                goals[goal.id] = goal
    if not goals:
        first = f"; line {problems[0].line}: {problems[0].reason}" if problems else ""
        raise UsageError(f"the bank {path} has no goals{first}")
    digest = hashlib.sha256(data).hexdigest()
    return Bank(path, root, digest, tuple(goals.values()), tuple(problems))


def _goals_of_project(root: Path, records: list[SorryRecord]) -> tuple[list[Goal], list[str]]:
    """Return the goals of a project's sorries, and reasons why some were left out."""
    goals: list[Goal] = []
    reasons: list[str] = []
    by_file: dict[str, list[SorryRecord]] = {}
    for record in records:
        by_file.setdefault(record.file, []).append(record)
        if not record.is_named:
            where = f"{record.file}:{record.line}"
            reasons.append(f"{where}: an `example` has no name to prove it under")
    for name, found in by_file.items():
        try:
            source = (root / name).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reasons.append(f"{name} cannot be read: {error}")
        else:
            goals += goals_of_file(source, found)
    return goals, reasons


def _goal(line: _Line) -> Goal:
    if line.id is None:
        raise ValueError("there is no `id`")
    text = line.text if line.text is not None else line.statement
    if text is None or not text.strip():
        raise ValueError("there is no `text` (or `statement`)")
    identity = str(line.id)
    if not identity.strip() or not identity.isprintable() or len(identity) > _MAX_ID_LENGTH:
        raise ValueError(f"the id is not one line of 1 to {_MAX_ID_LENGTH} printable characters")
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
        estimated_difficulty=estimate_difficulty(text, context) if given is None else given,
        imports=tuple(line.imports) or DEFAULT_IMPORTS,
        goal_class=line.goal_class,
        preamble=line.preamble,
    )
