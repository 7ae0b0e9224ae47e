"""Steering: commands of the user to a run, and the records of their effects.

A `Command` is a request with its time and its user. A `Steering` is the record of one command: the
point of the search at which it took effect and the settings before it, or the reason of its
refusal. Earlier decisions stay as they are. Validation repeats them with the settings that `undo`
returns.
"""

from __future__ import annotations

import contextlib
import fnmatch
import getpass
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from treewright.kernel.clock import timestamp

Action = Literal["extend", "pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget"]
Settings = dict[str, Any]

DEFAULT_PATIENCE = 1
DEFAULT_ELITES = 0
_LONGEST_PATTERN = 1000


class Command(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request to change a run.

    Args:
        settings: New settings of the run, by their names in the manifest.
        node_id: The node to boost, reopen or ban, or the node on which to try an idea.
        eval_id: A quarantined evaluation; its idea is tried again.
        pattern: A pattern that no further idea may match; see `matches`.
        first: Try the idea before all other ideas.
        now: End running evaluations instead of waiting for them.
        times: The number of ideas for which a node is boosted.
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
    """A command that was applied or refused.

    Args:
        depth: Number of depths decided when the command was applied.
        evaluations: Number of evaluations queued by then.
        settled: Number of evaluations settled by then.
        exhausted: Number of nodes found without further ideas by then.
        refused: The reason of a refusal.
        in_round: Whether the next depth had begun; it keeps its frontier.
        before: The former values of the changed settings.
        reopened: Nodes that are asked for ideas again.
        node_id: The node that the command concerned.
        idea_path: The idea that was added.
        banned: Ideas that were chosen before and are not tried.
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
    """Return a new command of this process's user."""
    user = "unknown"
    with contextlib.suppress(OSError, KeyError):
        user = getpass.getuser()
    return Command(
        command_id=f"{time.time_ns():020d}-{secrets.token_hex(4)}",  # sorts by time
        action=action,
        by=f"{user}@{socket.gethostname()}",
        requested_at=timestamp(),
        **fields,
    )


def applied(steering: object) -> list[Steering]:
    """Return the records of a manifest that took effect, in order."""
    found = steering if isinstance(steering, list) else []
    return [record for record in found if record.refused is None]


def until(records: list[Steering], last: Steering) -> list[Steering]:
    """Return the records up to and including `last`."""
    return records[: records.index(last) + 1]


def undo(settings: Settings, records: Iterable[Steering]) -> Settings:
    """Return the settings before these records."""
    found = dict(settings)
    for record in reversed(list(records)):
        found |= record.before
    return found


def is_paused(records: Iterable[Steering]) -> bool:
    """Return whether `pause` is the last of pause, resume and stop."""
    actions = [r.command.action for r in records if r.command.action in ("pause", "resume", "stop")]
    return actions[-1:] == ["pause"]


def is_stopped(records: Iterable[Steering]) -> bool:
    """Return whether `stop` is the last of stop, resume and extend."""
    actions = [
        r.command.action for r in records if r.command.action in ("stop", "resume", "extend")
    ]
    return actions[-1:] == ["stop"]


def banned_nodes(records: Iterable[Steering]) -> set[str]:
    """Return the nodes that get no further ideas."""
    return {r.node_id for r in records if r.command.action == "ban" and r.node_id is not None}


def banned_ideas(records: Iterable[Steering]) -> set[str]:
    """Return the paths of ideas that were banned after they had been chosen."""
    return {path for record in records for path in record.banned}


def banned_patterns(records: Iterable[Steering]) -> list[str]:
    """Return the patterns that no further idea may match."""
    found = (r.command.pattern for r in records if r.command.action == "ban")
    return [pattern for pattern in found if pattern is not None]


def check_pattern(pattern: str) -> None:
    """Raise a ValueError if a pattern cannot be used in a ban."""
    if not pattern.strip():
        raise ValueError("the pattern is empty")
    if len(pattern.strip().splitlines()) > 1:
        raise ValueError("the pattern has more than one line; ideas are matched line by line")
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"the pattern has more than {_LONGEST_PATTERN} characters")


def matches(pattern: str, text: str) -> bool:
    """Return whether a line of an idea contains a pattern, in upper or lower case.

    In a pattern `*` stands for any characters, `?` for one, `[ab]` for one of these.

    >>> matches("use *dropout", "# Use more Dropout in layer 2")
    True
    """
    wanted = f"*{pattern.strip().casefold()}*"
    return any(fnmatch.fnmatchcase(line, wanted) for line in text.casefold().splitlines())


def injected(records: Iterable[Steering]) -> list[str]:
    """Return the paths of ideas that were added by hand, those with `first` before the others."""
    found = [r for r in records if r.idea_path is not None]
    return [r.idea_path for r in sorted(found, key=lambda r: not r.command.first) if r.idea_path]


def brought_back(records: Iterable[Steering]) -> dict[str, str]:
    """Return the quarantined evaluations that are tried again, by the path of the new idea."""
    return {r.idea_path: r.command.eval_id for r in records if r.idea_path and r.command.eval_id}


def describe_target(record: Steering) -> str:
    """Return the target of a command: its node, evaluation, pattern or settings."""
    command = record.command
    changes = ", ".join(_describe_changes(record))
    parts = [command.eval_id, record.node_id or command.node_id, command.pattern, changes]
    return " ".join(part for part in parts if part)


def _describe_changes(record: Steering) -> Iterator[str]:
    """Yield each changed setting with its new and old value, and each limit of the caps."""
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


def describe(record: Steering) -> str:
    """Return one line about a record: the command, its user, and the reason of a refusal."""
    said = " ".join(part for part in (record.command.action, describe_target(record)) if part)
    end = "" if record.refused is None else f": refused, {record.refused}"
    return f"{said}, by {record.command.by}{end}"
