"""A goal as Lean text: the closed statement to prove, and a file with its holes filled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treewright.kernel.errors import UsageError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import GOAL_NAME, Theorem, binder, check_theorem, header_of
from treewright.lean.sorries import Sorry, replace
from treewright.orchestrator.types import Goal, Place

_BRACKETS = ("(", "{", "[", "⦃")
_HYPOTHESIS = re.compile(r"^(?P<names>[^:]+?)\s*:(?!=)", re.DOTALL)


def closed_statement(goal: Goal) -> str:
    """Return the goal's text with its context quantified in front."""
    if not goal.context:
        return goal.text
    return f"∀ {' '.join(binder(line) for line in goal.context)}, {goal.text}"


def introductions(goal: Goal) -> tuple[str, ...]:
    """Return the tactics that introduce the context of a closed statement, under its names."""
    names: list[str] = []
    for line in goal.context:
        inner = line.strip()
        if inner.startswith(_BRACKETS):
            inner = inner[1:-1]
        match = _HYPOTHESIS.match(inner)
        names += match["names"].split() if match else ["_"]  # an instance without a name
    return (f"intro {' '.join(names)}",) if names else ()


def statement_file(goal: Goal) -> str:
    """Return the goal as a file with one `sorry`."""
    return f"{surroundings(goal)}theorem {GOAL_NAME} : {closed_statement(goal)} := by\n  sorry\n"


def surroundings(goal: Goal) -> str:
    """Return the imports and the preamble, which stand in front of the statement."""
    return f"{header_of(goal.imports)}\n{goal.preamble}\n"


def check_statement(parser: HostSession, goal: Goal) -> None:
    """Refuse a goal if its context and text are not hypotheses and a statement (see `inputs`).

    The context is read as the binders of a theorem, not behind `∀`, so that each entry has to be
    one binder. A goal at a place of a file is not checked: its file declares it.
    """
    if goal.place is None:
        theorem = Theorem(GOAL_NAME, goal.text, goal.context)
        check_theorem(parser, theorem, after=surroundings(goal))


def join_places(places: Sequence[Place], source: str) -> Place:
    """Return several declarations of one file as one place, to fill in their proofs together."""
    return Place(
        file=places[0].file,
        source=source,
        declaration="",
        holes=tuple(hole for place in places for hole in place.holes),
        tactic_holes=frozenset().union(*(place.tactic_holes for place in places)),
    )


def fill_holes(place: Place, scripts: Sequence[str]) -> tuple[str, str]:
    """Return the file as it is, and the file with each hole filled by its script."""
    if len(scripts) != len(place.holes):
        raise UsageError(
            f"{place.declaration} has {len(place.holes)} holes and {len(scripts)} scripts"
        )
    text = place.source
    # From the last hole to the first, so that the positions of earlier holes stay valid.
    for (start, end), script in sorted(
        zip(place.holes, scripts, strict=True), key=lambda pair: -pair[0][0]
    ):
        before = text.encode()[:start]
        column = len(before[before.rfind(b"\n") + 1 :].decode())
        line = before.count(b"\n") + 1
        tactic = (start, end) in place.tactic_holes
        hole = Sorry(start, end, line, column, place.declaration, tactic, (), ())
        text = replace(text, hole, script)
    return place.source, text
