"""Goals out of a bank: a file with one JSON object a line."""

from __future__ import annotations

from pathlib import Path

import msgspec

from treewright.kernel import jsontext
from treewright.kernel.errors import UsageError
from treewright.mcts.experiment.planfile import BankTable


class BankGoal(msgspec.Struct, frozen=True):
    """A line of the bank; what else it says is of no concern here."""

    id: str
    statement: str = msgspec.field(name="text")
    kind: str = msgspec.field(default="", name="class")


def choose(path: Path, table: BankTable) -> list[BankGoal]:
    """Those asked for, in the order of the bank."""
    known = _read(path)
    if table.ids is not None:
        _complain(path, "ids", table.ids, {goal.id for goal in known})
        known = [goal for goal in known if goal.id in table.ids]
    if table.classes is not None:
        _complain(path, "classes", table.classes, {goal.kind for goal in known})
        known = [goal for goal in known if goal.kind in table.classes]
    return known[: table.limit]


def _complain(path: Path, key: str, wanted: list[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            few = ", ".join(sorted(known)[:8]) + (", …" if len(known) > 8 else "")
            raise UsageError(f"`bank.{key}`: {name!r} is not in {path}; there are {few or 'none'}")


def _read(path: Path) -> list[BankGoal]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"`bank.file`: cannot read {path}: {error.strerror}") from None
    goals: list[BankGoal] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                goals.append(jsontext.decode(line, type=BankGoal))
            except msgspec.DecodeError as error:
                raise UsageError(f"`bank.file`: {path}, line {number}: {error}") from None
    return goals
