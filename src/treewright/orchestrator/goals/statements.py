"""A goal as Lean text: the closed statement to prove, and a file with its holes filled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treewright.kernel.errors import UsageError
from treewright.lean.session.inputs import (
    GOAL_NAME,
    Parser,
    Theorem,
    binder,
    check_theorem,
    header_of,
)
from treewright.lean.sorries import Sorry, replace
from treewright.orchestrator.types import Goal, Place

_BRACKETS = ("(", "{", "[", "⦃")
_SHOWN = re.compile(r"^(?P<names>[^:]+?)\s*:(?!=)", re.DOTALL)


def closed_statement(goal: Goal) -> str:
    """The goal's text with its context quantified in front."""
    if not goal.context:
        return goal.text
    return f"∀ {' '.join(binder(line) for line in goal.context)}, {goal.text}"


def introductions(goal: Goal) -> tuple[str, ...]:
    """The tactics that bring the context of a closed statement back, under its names."""
    names = [name for line in goal.context for name in _names(line)]
    return (f"intro {' '.join(names)}",) if names else ()


def _names(line: str) -> list[str]:
    inner = line.strip()
    if inner.startswith(_BRACKETS):
        inner = inner[1:-1]
    match = _SHOWN.match(inner)
    if match is None:
        return ["_"]  # an instance without a name
    return match["names"].split()


def statement_file(goal: Goal) -> str:
    """The goal as a file with one `sorry`."""
    return f"{surroundings(goal)}theorem {GOAL_NAME} : {closed_statement(goal)} := by\n  sorry\n"


def surroundings(goal: Goal) -> str:
    """What stands in front of the statement: imports and preamble."""
    return f"{header_of(goal.imports)}\n{goal.preamble}\n"


def check(parser: Parser, goal: Goal) -> None:
    """Refuses a goal whose context and text are not hypotheses and a statement (see `inputs`).

    As a theorem's own binders and not behind `∀`, so that each entry has to be one binder. A
    goal at a place of a file is as its file says.
    """
    if goal.place is None:
        theorem = Theorem(GOAL_NAME, goal.text, goal.context)
        check_theorem(parser, theorem, after=surroundings(goal))


def filled(place: Place, scripts: Sequence[str]) -> tuple[str, str]:
    """(the file as it is, the file with each hole filled by its script)."""
    if len(scripts) != len(place.holes):
        raise UsageError(
            f"{place.declaration} has {len(place.holes)} holes and {len(scripts)} scripts"
        )
    text = place.source
    # From the last hole to the first: earlier positions stay as they were.
    for (start, end), script in sorted(
        zip(place.holes, scripts, strict=True), key=lambda pair: -pair[0][0]
    ):
        text = replace(text, _hole(text, start, end, place), script)
    return place.source, text


def _hole(text: str, start: int, end: int, place: Place) -> Sorry:
    before = text.encode()[:start]
    column = len(before[before.rfind(b"\n") + 1 :].decode())
    tactic = (start, end) in place.tactic_holes
    return Sorry(start, end, before.count(b"\n") + 1, column, place.declaration, tactic, (), ())
