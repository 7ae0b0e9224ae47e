"""The plan of an experiment: the typed TOML file, and everything that the runs depend on.

An unknown or ill-typed key is an error that names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.kernel.text.config_errors import explain
from treewright.proving.cell_settings import CellSettings, parse_algotypes
from treewright.proving.settings import Mode, Settings, SourceSettings

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
    """The settings of the cells in every distributed run; a missing key is the runner's default."""

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
    """One kind of damage. A list of block fractions gives one arm for each."""

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
    """Read the tables of an experiment file. Raises UsageError."""
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
    """A line of the bank; its other fields are ignored."""

    id: str
    statement: str = msgspec.field(name="text")
    kind: str = msgspec.field(default="", name="class")


def choose_goals(path: Path, table: BankTable) -> list[BankGoal]:
    """Return the goals that the table asks for, in the order of the bank."""
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


UNDAMAGED = "none"
"""The arm that every plan has, and with which the others are compared."""


class PlannedGoal(msgspec.Struct, frozen=True):
    """A goal of the plan, from the file itself or from its bank."""

    name: str
    statement: str


class Arm(msgspec.Struct, frozen=True):
    """One level of the intervention factor. `settings` are the keys that the file gives."""

    name: str
    dose: float = 0.0
    settings: dict[str, Any] = {}

    @property
    def placebo(self) -> bool:
        """Whether the settings change nothing, so that the results must not change either."""
        other = self.settings.get("delay_prob") or self.settings.get("schedule")
        return self.name != UNDAMAGED and not self.dose and not other


class Plan(msgspec.Struct, frozen=True):
    """Everything that the runs depend on. `tactics` is the text of the file that the plan names."""

    name: str
    modes: tuple[Mode, ...]
    agents: tuple[int, ...]
    seeds: tuple[int, ...]
    simulations: int
    time_limit: float | None
    step_timeout: float
    batch: int
    noise: float
    refute: bool
    tactics: str | None
    cells: dict[str, Any]
    arms: tuple[Arm, ...]
    goals: tuple[PlannedGoal, ...]


def load(path: Path) -> Plan:
    """Read an experiment file and the files it names. Paths in it are relative to it."""
    file = read(path)
    try:
        return _plan(file, path)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _plan(file: PlanFile, path: Path) -> Plan:
    distributed = "distributed" in file.modes
    if not distributed and (file.interventions or _given(file.cells)):
        key = "interventions" if file.interventions else "cells"
        raise UsageError(f"`{key}` are for the distributed mode, and `modes` does not have it")
    for key in ("modes", "agents", "seeds"):
        _unique(key, getattr(file, key))
    arms = [Arm(UNDAMAGED), *(arm for table in file.interventions for arm in _arms(table))]
    _unique("interventions", [arm.name for arm in arms])
    goals = _goals(file, path.parent)
    plan = Plan(
        name=file.name or path.stem,
        modes=file.modes,
        agents=file.agents if distributed else (),
        seeds=file.seeds,
        simulations=file.simulations,
        time_limit=file.time_limit,
        step_timeout=file.step_timeout,
        batch=file.batch,
        noise=file.noise,
        refute=file.refute,
        tactics=_text(path.parent / file.tactics) if file.tactics else None,
        cells=_given(file.cells),
        arms=tuple(arms),
        goals=goals,
    )
    _try_settings(plan)
    return plan


def _try_settings(plan: Plan) -> None:
    """Raise UsageError before any run if the runner would refuse the settings of one."""
    for agents in plan.agents:
        for arm in plan.arms:
            try:
                cell_settings(plan, agents, arm)
            except (UsageError, msgspec.ValidationError) as error:
                raise UsageError(f"{arm.name!r} with {agents} agents: {error}") from None


def _arms(table: InterventionTable) -> list[Arm]:
    given = {k: v for k, v in _given(table).items() if k not in ("name", "block_fraction")}
    fractions = table.block_fraction
    if not isinstance(fractions, list):
        return [Arm(table.name, float(fractions), given)]
    if not fractions:
        raise UsageError(f"`interventions`: {table.name!r} has an empty list of block fractions")
    return [Arm(f"{table.name} {dose:g}", float(dose), given) for dose in fractions]


def _goals(file: PlanFile, base: Path) -> tuple[PlannedGoal, ...]:
    goals = [PlannedGoal(goal.name, goal.statement) for goal in file.goals]
    if file.bank is not None:
        chosen = choose_goals(base / file.bank.file, file.bank)
        goals += [PlannedGoal(goal.id, goal.statement) for goal in chosen]
    if not goals:
        raise UsageError("no goals: give [[goals]] with name and statement, or [bank] with a file")
    _unique("goals", [goal.name for goal in goals])
    return tuple(goals)


def _given(table: msgspec.Struct) -> dict[str, Any]:
    return {key: value for key, value in msgspec.structs.asdict(table).items() if value is not None}


def _unique(key: str, values: Sequence[Any]) -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            hint = f"; {UNDAMAGED!r} is always there" if value == UNDAMAGED else ""
            raise UsageError(f"`{key}`: {value!r} is there twice{hint}")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`tactics`: cannot read {path}: {error}") from None


class PlannedRun(msgspec.Struct, frozen=True):
    """One proof run of the grid. A centralized run has no agents and no damage."""

    cell_id: str
    mode: Mode
    agents: int | None
    arm: Arm
    seed: int
    goal: PlannedGoal


def runs_of(plan: Plan) -> list[PlannedRun]:
    """Return the grid in the order of the runs: comparisons are complete as early as possible."""
    runs: list[PlannedRun] = []
    for seed in plan.seeds:
        for goal in plan.goals:
            for mode in plan.modes:
                if mode == "centralized":
                    setups = [(None, Arm(UNDAMAGED))]
                else:
                    setups = [(agents, arm) for agents in plan.agents for arm in plan.arms]
                for agents, arm in setups:
                    identity = _identity(len(runs) + 1, mode, agents, arm, seed, goal)
                    runs.append(PlannedRun(identity, mode, agents, arm, seed, goal))
    return runs


def search_settings(plan: Plan, planned: PlannedRun) -> Settings:
    """Return the settings of a planned run."""
    return Settings(
        mode=planned.mode,
        simulations=plan.simulations,
        time_limit=plan.time_limit,
        step_timeout=plan.step_timeout,
        seed=planned.seed,
        batch=plan.batch,
        refute=plan.refute,
        sources=SourceSettings(tactics=plan.tactics, noise=plan.noise, known=True),
        cells=None if planned.agents is None else cell_settings(plan, planned.agents, planned.arm),
    )


def cell_settings(plan: Plan, agents: int, arm: Arm) -> CellSettings:
    """Return the settings of the cells of a planned run."""
    given = {
        "inflight": min(CellSettings().inflight, agents),
        **plan.cells,
        "agents": agents,
        "block_fraction": arm.dose,
        **arm.settings,
    }
    if "algotypes" in given:
        given["algotypes"] = parse_algotypes(given["algotypes"])
    return msgspec.convert(given, CellSettings)


def _identity(
    number: int, mode: Mode, agents: int | None, arm: Arm, seed: int, goal: PlannedGoal
) -> str:
    """Return a directory name that describes the run; its number keeps it unique."""
    setup = mode if agents is None else f"{mode}{agents}-{_slug(arm.name, 16)}"
    return f"{number:04d}-{setup}-s{seed}-{_slug(goal.name, 20)}"


def _slug(text: str, longest: int) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:longest].strip("-") or "x"
