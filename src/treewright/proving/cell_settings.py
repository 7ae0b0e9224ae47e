"""The settings of a cell-view run: cells, views and blocks. They are part of `run.json`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from treewright.kernel.errors import UsageError

Target = Literal["agents", "nodes"]


class PlannedIntervention(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A planned intervention on an `agent`, a `node`, or a `fraction` of all agents or nodes."""

    at: int
    kind: Literal["block", "unblock", "delay", "reroute"]
    agent: int | None = None
    node: int | None = None
    fraction: float | None = None
    target: Target = "agents"
    duration: int | None = None
    permanent: bool = False
    unfreeze_prob: float = 1.0


class _Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    intervention: tuple[PlannedIntervention, ...] = ()


def find_mistake(order: PlannedIntervention, agents: int) -> str | None:
    """Return the mistake in an order, in words; None if there is none."""
    if order.at < 0:
        return f"at must not be negative, but is {order.at}"
    whom = [name for name in ("agent", "node", "fraction") if getattr(order, name) is not None]
    if len(whom) != 1:
        return f"say whom, by one of agent, node or fraction (given: {', '.join(whom) or 'none'})"
    if order.agent is not None and not 0 <= order.agent < agents:
        return f"there is no agent {order.agent}: they are 0 to {agents - 1}"
    if order.node is not None and order.node < 0:
        return f"there is no node {order.node}"
    if order.fraction is not None and not 0.0 <= order.fraction <= 1.0:
        return f"fraction must be between 0 and 1, not {order.fraction:g}"
    if not 0.0 < order.unfreeze_prob <= 1.0:
        return f"unfreeze_prob must be above 0 and at most 1, not {order.unfreeze_prob:g}"
    return _find_mistake_of_kind(order)


def _find_mistake_of_kind(order: PlannedIntervention) -> str | None:
    nodes = order.node is not None or order.target == "nodes"
    lasting = order.duration is not None
    if order.kind in ("delay", "reroute") and nodes:
        return f"{order.kind} is for agents, not for nodes"
    if order.kind in ("unblock", "reroute") and (lasting or order.permanent):
        return f"{order.kind} has no duration"
    if lasting and (order.duration or 0) < 1:
        return f"duration must be at least 1, not {order.duration}"
    if order.kind == "delay" and (order.permanent or not lasting):
        return "delay needs a duration"
    if order.kind == "block" and order.permanent == lasting:
        return "block needs either a duration or permanent = true"
    return None


def load_schedule(path: Path) -> tuple[PlannedIntervention, ...]:
    """Read the `[[intervention]]` tables of a file.

    Whether they fit the number of agents is checked later.
    """
    try:
        schedule = msgspec.convert(tomllib.loads(path.read_text("utf-8")), type=_Schedule)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    if not schedule.intervention:
        raise UsageError(f"{path}: no [[intervention]] in it")
    return schedule.intervention


Algotype = Literal["ucb", "puct", "depth_first", "best_first", "random"]
View = Literal["subtree", "radius"]

ALGOTYPES: tuple[Algotype, ...] = get_args(Algotype)


class CellSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a cell-view run.

    Times are ticks of the logical clock; an expansion takes one. The descriptions are also the help
    texts of `treewright prove`. `algotypes` is a pattern that is repeated over the cells, so its
    length must divide `agents`. A block ends after `block_duration` ticks with the probability
    `unfreeze_prob`; otherwise it lasts as long again. `schedule` holds further interventions.
    """

    agents: Annotated[int, Meta(description="Number of cells.")] = 4
    inflight: Annotated[
        int, Meta(description="Most cells that hold a reservation at the same time.")
    ] = 2
    algotypes: tuple[Algotype, ...] = ("puct",)
    view: Annotated[
        View,
        Meta(
            description="Part of the tree that a cell sees: everything below its position "
            "(subtree), or a number of steps around it (radius)."
        ),
    ] = "subtree"
    radius: Annotated[
        int, Meta(description="Steps from its position that a cell sees, with view radius.")
    ] = 3
    stride: Annotated[
        int, Meta(description="Steps below the root at which a cell takes its position.")
    ] = 2
    stay: Annotated[int, Meta(description="Turns for which a cell keeps its position.")] = 4
    refresh: Annotated[
        int, Meta(description="Ticks after which a cell looks at a part of the tree again.")
    ] = 8
    depth_limit: Annotated[
        int,
        Meta(description="Steps below its position at which a depth_first cell turns back."),
    ] = 12
    block_fraction: Annotated[
        float, Meta(description="Share of the agents or nodes that are blocked, 0 to 1.")
    ] = 0.0
    block_target: Annotated[
        Target, Meta(description="Whether agents or the nodes that they reach are blocked.")
    ] = "agents"
    block_at: Annotated[int, Meta(description="Tick at which the blocks begin.")] = 0
    block_duration: Annotated[int, Meta(description="Ticks that a block lasts.")] = 20
    block_permanent: Annotated[bool, Meta(description="Never release blocked agents or nodes.")] = (
        False
    )
    unfreeze_prob: Annotated[
        float,
        Meta(description="Probability that a blocked agent is released when its block ends."),
    ] = 1.0
    delay_prob: Annotated[
        float, Meta(description="Probability that a reservation is delayed, 0 to 1.")
    ] = 0.0
    delay_duration: Annotated[
        int, Meta(description="Ticks by which a delayed reservation is late.")
    ] = 5
    reroute_max: Annotated[
        int, Meta(description="Most detours around a blocked node in one turn.")
    ] = 2
    give_up: Annotated[
        int,
        Meta(
            description="Abort the run after this many turns in a row without progress, for every "
            "cell."
        ),
    ] = 8
    schedule: tuple[PlannedIntervention, ...] = ()

    def __post_init__(self) -> None:
        if wrong := self._first_mistake():
            raise UsageError(wrong)

    def _first_mistake(self) -> str | None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                return f"{name} must be at least 1, not {getattr(self, name)}"
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                return f"{name} must not be negative, but is {getattr(self, name)}"
        for name in _SHARES:
            if not 0.0 <= getattr(self, name) <= 1.0:
                return f"{name} must be between 0 and 1, not {getattr(self, name):g}"
        if self.inflight > self.agents:
            return (
                f"inflight is {self.inflight}, but there are only {self.agents} agents: "
                "a cell holds one reservation at a time"
            )
        if self.unfreeze_prob == 0.0:
            return "unfreeze_prob of 0 would block for ever: say so with block_permanent"
        count = len(self.algotypes)
        if not count or self.agents % count:
            return (
                f"algotypes names {count} cells and agents is {self.agents}: "
                f"make agents {count or 1} or a multiple of it"
            )
        if unknown := [name for name in self.algotypes if name not in ALGOTYPES]:
            return f"unknown algotype '{unknown[0]}': choose from {', '.join(ALGOTYPES)}"
        for number, order in enumerate(self.schedule, 1):
            if wrong := find_mistake(order, self.agents):
                return f"intervention {number}: {wrong}"
        return None

    def algotype(self, agent: int) -> Algotype:
        """Return the algotype of a cell, by its number."""
        return self.algotypes[agent % len(self.algotypes)]

    def orders(self) -> tuple[tuple[PlannedIntervention, str], ...]:
        """Return all planned interventions by time, each with the setting that it comes from."""
        asked = [(order, "schedule") for order in self.schedule]
        if self.block_fraction > 0.0:
            block = PlannedIntervention(
                at=self.block_at,
                kind="block",
                fraction=self.block_fraction,
                target=self.block_target,
                duration=None if self.block_permanent else self.block_duration,
                permanent=self.block_permanent,
                unfreeze_prob=self.unfreeze_prob,
            )
            asked.insert(0, (block, "settings"))
        return tuple(sorted(asked, key=lambda pair: pair[0].at))


_AT_LEAST_ONE = (
    "agents", "inflight", "radius", "stay", "refresh", "depth_limit", "block_duration",
    "delay_duration", "give_up",
)  # fmt: skip
_NOT_NEGATIVE = ("stride", "block_at", "reroute_max")
_SHARES = ("block_fraction", "unfreeze_prob", "delay_prob")


def parse_algotypes(text: str) -> tuple[Algotype, ...]:
    """Read a pattern of cells such as `ucb:2,depth_first:1`; without a number, one cell."""
    pattern: list[Algotype] = []
    for part in text.split(","):
        word, colon, count = (piece.strip() for piece in part.partition(":"))
        named: list[Algotype] = [name for name in ALGOTYPES if name == word]
        if not named:
            raise UsageError(f"unknown algotype '{word}': choose from {', '.join(ALGOTYPES)}")
        if colon and not (count.isascii() and count.isdigit() and int(count) > 0):
            raise UsageError(
                f"'{part.strip()}': give the number of cells after the colon, 1 or more"
            )
        pattern += named * int(count or 1)
    return tuple(pattern)
