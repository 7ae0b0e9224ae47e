"""From what somebody asks of a run to the command that is left for its owner."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.tree.deciding import caps
from treewright.tree.records.model import Manifest
from treewright.tree.records.steering import Action, Command, Steering, check_pattern, new_command
from treewright.tree.run.inbox import Inbox, Letter

ACTIONS = ("pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget")
SETTINGS = ("max_total_idea_evals", "max_depth", "ideas_per_node")
CAPS = ("max_cost_usd", "max_tokens")
_MEANS = {
    "at": ("inject",),
    "first": ("inject",),
    "now": ("stop",),
    "times": ("boost",),
    **dict.fromkeys((*SETTINGS, *CAPS), ("budget",)),
}
"""Which option goes with which action."""
NEEDS = {
    "inject": "IDEA.md",
    "ban": "NODE or PATTERN",
    "boost": "NODE",
    "reopen": "NODE or EVALUATION",
}
_NODE = re.compile(r"n\d{4,}")
_EVALUATION = re.compile(r"e\d{6,}")


def letter(
    action: str,
    what: str | None,
    options: Mapping[str, Any],
    *,
    spelled: Callable[[str], str],
    needs: Mapping[str, str] = NEEDS,
) -> Letter:
    """The command for an action. `what` is a node or a pattern, or the text of an idea to inject;
    `spelled` says how whoever asks writes an option, `needs` what each action is given."""
    for name, actions in _MEANS.items():
        if options.get(name) and action not in actions:
            raise UsageError(
                f"{spelled(name)} means nothing with {action}; it goes with {actions[0]}"
            )
    if (what is None) == (action in needs):
        wrong = f"needs {needs[action]}" if what is None else f"takes no {what}"
        raise UsageError(f"{action} {wrong}")
    command = new_command(typing.cast("Action", action), **_fields(action, what, options, spelled))
    return Letter(command, (what or "") if action == "inject" else "")


def _fields(
    action: str, what: str | None, options: Mapping[str, Any], spelled: Callable[[str], str]
) -> dict[str, Any]:
    if action == "inject":
        return {"node_id": options.get("at") or None, "first": bool(options.get("first"))}
    if action == "ban" and not _NODE.fullmatch(what or ""):
        return {"pattern": _pattern(what or "")}
    if action == "reopen" and _EVALUATION.fullmatch(what or ""):
        return {"eval_id": what}
    if action == "boost":
        return {"node_id": what, "times": options.get("times") or 1}
    if action in NEEDS:
        return {"node_id": what}
    if action == "budget":
        return {"settings": _settings(options, spelled)}
    return {"now": bool(options.get("now"))} if action == "stop" else {}


def _settings(options: Mapping[str, Any], spelled: Callable[[str], str]) -> dict[str, Any]:
    settings = {name: options[name] for name in SETTINGS if options.get(name) is not None}
    cost, tokens = (options.get(name) or () for name in CAPS)
    if found := caps.parse({"cost_usd": cost, "tokens": tokens}):
        settings["caps"] = found
    if not settings:
        raise UsageError(f"budget needs a limit, such as {spelled(SETTINGS[0])}")
    return settings


def _pattern(pattern: str) -> str:
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return pattern


class Asked(msgspec.Struct, frozen=True):
    """What was asked of a run so far, and what became of it."""

    waiting: list[Command]
    applied: list[Steering]
    refused: list[Steering]


def asked(run_dir: Path, manifest: Manifest) -> Asked:
    steering = manifest.steering
    records = [] if isinstance(steering, msgspec.UnsetType) else steering
    known = {record.command.command_id for record in records}
    waiting = [found.command for found in Inbox(run_dir).waiting()]
    return Asked(
        [command for command in waiting if command.command_id not in known],
        [record for record in records if record.refused is None],
        [record for record in records if record.refused is not None],
    )
