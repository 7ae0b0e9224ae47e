"""Interventions as they are asked for: at which tick, what, to whom, for how long."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.errors import UsageError

Target = Literal["agents", "nodes"]


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One intervention. Whom: an `agent`, a `node`, or a `fraction` of all of a `target`."""

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
    intervention: tuple[Order, ...] = ()


def complain(order: Order, agents: int) -> str | None:
    """What is wrong with an order, in words; None if nothing is."""
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
    return _complain_of_kind(order)


def _complain_of_kind(order: Order) -> str | None:
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


def load_schedule(path: Path) -> tuple[Order, ...]:
    """Reads `[[intervention]]` tables. Whom they name is checked with the number of agents."""
    try:
        schedule = msgspec.convert(tomllib.loads(path.read_text("utf-8")), type=_Schedule)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    if not schedule.intervention:
        raise UsageError(f"{path}: no [[intervention]] in it")
    return schedule.intervention
