"""The experiment file: typed TOML tables. An unknown or ill-typed key is an error that names it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.kernel.text.config_errors import explain
from treewright.proving.settings import Mode

Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any table of the file."""


class GoalTable(Table, frozen=True):
    """A goal given in the file itself."""

    name: Text
    statement: Text


class BankTable(Table, frozen=True):
    """Goals from a file with one JSON object a line: `id`, `text`, `class`."""

    file: Text
    ids: list[Text] | None = None
    classes: list[Text] | None = None
    limit: Count | None = None


class CellsTable(Table, frozen=True):
    """How agents are set up, the same in every distributed run. No key, the runner's default."""

    inflight: Count | None = None
    algotypes: Text | None = None
    view: Literal["subtree", "radius"] | None = None
    radius: Count | None = None
    stride: NotNegative | None = None
    stay: Count | None = None
    refresh: Count | None = None
    depth_limit: Count | None = None
    give_up: Count | None = None


class InterventionTable(Table, frozen=True):
    """A way of damaging the search. A list of block fractions stands for an arm each."""

    name: Text
    block_fraction: Share | list[Share] = 0.0
    block_target: Literal["agents", "nodes"] | None = None
    block_at: NotNegative | None = None
    block_duration: Count | None = None
    block_permanent: bool | None = None
    unfreeze_prob: Share | None = None
    delay_prob: Share | None = None
    delay_duration: Count | None = None
    reroute_max: NotNegative | None = None
    schedule: list[dict[str, Any]] | None = None


class PlanFile(Table, frozen=True):
    """The whole file."""

    name: Text | None = None
    modes: Annotated[tuple[Mode, ...], msgspec.Meta(min_length=1)] = ("distributed",)
    agents: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (4,)
    seeds: Annotated[tuple[NotNegative, ...], msgspec.Meta(min_length=1)] = (0,)
    simulations: Count = 200
    time_limit: Seconds | None = None
    step_timeout: Seconds = 5.0
    batch: Count = 8
    noise: Share = 0.1
    refute: bool = False
    tactics: Text | None = None
    cells: CellsTable = CellsTable()
    interventions: list[InterventionTable] = []
    goals: list[GoalTable] = []
    bank: BankTable | None = None


def read(path: Path) -> PlanFile:
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), type=PlanFile)
    except FileNotFoundError:
        raise UsageError(f"there is no experiment file {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {explain(str(error), Table)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


class BankGoal(msgspec.Struct, frozen=True):
    """A line of the bank; what else it says is of no concern here."""

    id: str
    statement: str = msgspec.field(name="text")
    kind: str = msgspec.field(default="", name="class")


def choose_goals(path: Path, table: BankTable) -> list[BankGoal]:
    """Those asked for, in the order of the bank."""
    known = _read_bank(path)
    if table.ids is not None:
        _complain_of_bank(path, "ids", table.ids, {goal.id for goal in known})
        known = [goal for goal in known if goal.id in table.ids]
    if table.classes is not None:
        _complain_of_bank(path, "classes", table.classes, {goal.kind for goal in known})
        known = [goal for goal in known if goal.kind in table.classes]
    return known[: table.limit]


def _complain_of_bank(path: Path, key: str, wanted: list[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            few = ", ".join(sorted(known)[:8]) + (", …" if len(known) > 8 else "")
            raise UsageError(f"`bank.{key}`: {name!r} is not in {path}; there are {few or 'none'}")


def _read_bank(path: Path) -> list[BankGoal]:
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
