"""What somebody changed about a run while it was there: commands, and what became of them.

A command says what is wanted, who wants it and since when. A `Steering` is the record of one:
where in the search it took effect, what held before, or why it could not be applied. Decisions made
before it stay as they are; whoever makes them again asks `undone` what held then.
"""

from __future__ import annotations

import contextlib
import getpass
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.tree.records.patterns import pattern

Action = Literal["extend", "pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget"]
Settings = dict[str, Any]

DEFAULT_PATIENCE = 1
DEFAULT_ELITES = 0
"""Of runs that do not say; new ones say what they have."""


class Command(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What somebody wants changed. `settings` are those of the run, by their names there.

    `node_id` is what is boosted, reopened or banned, or where an idea is to be tried; `eval_id` a
    quarantined evaluation whose idea is to be tried again; `pattern` a
    regular expression that no further idea may match; `first`: before all other ideas; `now`:
    without waiting for what is under way; `times`: for so many ideas.
    """

    command_id: str
    action: Action
    by: str
    requested_at: str
    settings: Settings = {}
    node_id: str | None = None
    eval_id: str | None = None
    pattern: str | None = None
    first: bool = False
    now: bool = False
    times: Annotated[int, msgspec.Meta(ge=1, le=10**9)] = 1


class Steering(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A command and what became of it: applied after so many decided depths, so many
    evaluations queued, so many settled and so many nodes found without ideas; or refused.

    `in_round`: the depth after those had begun, and keeps its frontier. `before` has the former
    values of the settings that it changed. `reopened` nodes are asked for ideas again. `node_id`
    is the node that it concerned, `idea_path` the idea that was added, `banned` are ideas that
    were chosen before and will not be tried.
    """

    command: Command
    at: str = ""
    depth: int = 0
    evaluations: int = 0
    settled: int = 0
    exhausted: int = 0
    refused: str | None = None
    in_round: bool = False
    before: Settings = {}
    reopened: list[str] = []
    node_id: str | None = None
    idea_path: str | None = None
    banned: list[str] = []


def new_command(action: Action, **fields: Any) -> Command:
    """A command of the user who runs this process."""
    return Command(
        command_id=f"{time.time_ns():020d}-{secrets.token_hex(4)}",  # sorts by time
        action=action,
        by=_who(),
        requested_at=timestamp(),
        **fields,
    )


def _who() -> str:
    name = "unknown"
    with contextlib.suppress(OSError, KeyError):
        name = getpass.getuser()
    return f"{name}@{socket.gethostname()}"


def applied(steering: object) -> list[Steering]:
    """Those of a manifest's records that took effect, in order."""
    found = steering if isinstance(steering, list) else []
    return [record for record in found if record.refused is None]


def until(records: list[Steering], last: Steering) -> list[Steering]:
    """Those up to that one."""
    return records[: records.index(last) + 1]


def undone(settings: Settings, records: Iterable[Steering]) -> Settings:
    """The settings before these records, of which the last is undone first."""
    found = dict(settings)
    for record in reversed(list(records)):
        found |= record.before
    return found


def is_paused(records: Iterable[Steering]) -> bool:
    """Whether the last word on that was to wait."""
    said = [r.command.action for r in records if r.command.action in ("pause", "resume", "stop")]
    return said[-1:] == ["pause"]


def is_stopped(records: Iterable[Steering]) -> bool:
    """Whether it was told to end, and not since then to go on."""
    said = [r.command.action for r in records if r.command.action in ("stop", "resume", "extend")]
    return said[-1:] == ["stop"]


def banned_nodes(records: Iterable[Steering]) -> set[str]:
    return {r.node_id for r in records if r.command.action == "ban" and r.node_id is not None}


def banned_ideas(records: Iterable[Steering]) -> set[str]:
    """Paths of ideas that had been chosen when their ban came."""
    return {path for record in records for path in record.banned}


def patterns(records: Iterable[Steering]) -> list[str]:
    """What no further idea may match."""
    found = (r.command.pattern for r in records if r.command.action == "ban")
    return [pattern for pattern in found if pattern is not None]


def matches(source: str, text: str) -> bool:
    """Whether a text has what the pattern of a ban means."""
    return pattern(source).is_in(text)


def injected(records: Iterable[Steering]) -> list[str]:
    """Paths of ideas that were added by hand, the ones that come before others first."""
    found = [r for r in records if r.idea_path is not None]
    return [r.idea_path for r in sorted(found, key=lambda r: not r.command.first) if r.idea_path]


def brought_back(records: Iterable[Steering]) -> dict[str, str]:
    """Return the quarantined evaluations that are tried again, by the path of the new idea."""
    return {r.idea_path: r.command.eval_id for r in records if r.idea_path and r.command.eval_id}


def what(record: Steering) -> str:
    """What was asked for, without the action itself: of which node, pattern or settings."""
    command = record.command
    changes = ", ".join(_changes(record))
    parts = [command.eval_id, record.node_id or command.node_id, command.pattern, changes]
    return " ".join(part for part in parts if part)


def _changes(record: Steering) -> Iterator[str]:
    """Each setting with its value and what it was; of caps each limit for itself."""
    for name, value in record.command.settings.items():
        was = record.before.get(name)
        if name != "caps":
            yield f"{name} {value}" + (f" (was {was})" if name in record.before else "")
            continue
        for kind, roles in value.items():
            for role, limit in roles.items():
                before = (was or {}).get(kind, {}).get(role, limit)
                of_role = "" if role == "all" else f" of the {role}"
                yield f"max_{kind}{of_role} {limit:g}" + (
                    f" (was {before:g})" if before != limit else ""
                )


def words(record: Steering) -> str:
    """A line for people: what was changed, by whom, or why it was not."""
    said = " ".join(part for part in (record.command.action, what(record)) if part)
    end = "" if record.refused is None else f": refused, {record.refused}"
    return f"{said}, by {record.command.by}{end}"
