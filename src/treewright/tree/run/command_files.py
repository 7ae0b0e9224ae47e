"""Commands for a run: from the user's request to a file, and from the file to the run's owner.

A command is a file in `steering/`, written atomically; its name sorts by time. The owner reads the
files between two steps, records the effect of each command and only then removes the file. A file
that is there again after a crash has been recorded and is not applied twice.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.text import jsontext
from treewright.tree.deciding import caps
from treewright.tree.records import layout
from treewright.tree.records.model import Manifest
from treewright.tree.records.steering import Action, Command, Steering, check_pattern, new_command

ACTIONS = ("pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget")
SETTINGS = ("max_total_idea_evals", "max_depth", "ideas_per_node")
CAPS = ("max_cost_usd", "max_tokens")
_ACTIONS_OF_OPTION = {
    "at": ("inject",),
    "first": ("inject",),
    "now": ("stop",),
    "times": ("boost",),
    **dict.fromkeys((*SETTINGS, *CAPS), ("budget",)),
}
"""The actions that each option belongs to."""
NEEDS = {
    "inject": "IDEA.md",
    "ban": "NODE or PATTERN",
    "boost": "NODE",
    "reopen": "NODE or EVALUATION",
}
_NODE = re.compile(r"n\d{4,}")
_EVALUATION = re.compile(r"e\d{6,}")
_WATCH_SECONDS = 0.5
_TICK_NANOSECONDS = 2 * 10**9
_log = logging.getLogger("treewright")


class CommandFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command file: the command, and the text of the idea that it adds."""

    command: Command
    text: str = ""


def submit(run_dir: Path, file: CommandFile) -> Path:
    """Write a command file atomically and return its path."""
    directory = run_dir / layout.STEERING
    atomic.make_directory(directory)
    path = directory / f"{file.command.command_id}.json"
    data = msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
    if len(data) > untrusted.LARGEST_TEXT:
        raise UsageError("the idea is too large to be one")
    atomic.write_bytes(path, data)
    return path


class Inbox:
    """The command files of a run, for its owner. Lists the directory only when it has changed."""

    def __init__(self, run_dir: Path) -> None:
        self._directory = run_dir / layout.STEERING
        self._seen: Any = None
        self._files: list[CommandFile] = []

    def waiting(self) -> list[CommandFile]:
        """Return the commands that were not removed yet, in order; other files are skipped."""
        try:
            found = self._directory.stat().st_mtime_ns
        except OSError:
            return []
        if found != self._seen:
            # A file written within the same tick of the file system's clock must not be missed.
            is_settled = time.time_ns() - found > _TICK_NANOSECONDS
            self._seen = found if is_settled else None
            paths = sorted(self._directory.glob("*.json"))
            self._files = [file for path in paths if (file := self._read(path)) is not None]
        return list(self._files)

    def remove(self, file: CommandFile) -> None:
        """Remove a command once its effect is recorded."""
        try:
            self._path(file).unlink(missing_ok=True)
        except OSError as error:  # another user's directory; it is not applied twice
            _log.warning("%s cannot be removed: %s", self._path(file), error.strerror)
        self._files = [each for each in self._files if each is not file]

    def _path(self, file: CommandFile) -> Path:
        return self._directory / f"{file.command.command_id}.json"

    def _read(self, path: Path) -> CommandFile | None:
        try:
            file = jsontext.decode(untrusted.read(path, untrusted.LARGEST_TEXT), type=CommandFile)
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("%s is no command and is left out: %s", path, error)
            return None
        return file if self._path(file) == path else None


class StopWatcher:
    """A thread that interrupts the owner when `stop --now` arrives."""

    def __init__(self, run_dir: Path, cancel: threading.Event) -> None:
        self._inbox = Inbox(run_dir)
        self._cancel = cancel
        self._end = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name="watching for stop --now", daemon=True
        )

    def __enter__(self) -> StopWatcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(_WATCH_SECONDS):
            commands = (file.command for file in self._inbox.waiting())
            if any(command.now and command.action == "stop" for command in commands):
                self._cancel.set()
                return


def parse_command(
    action: str,
    argument: str | None,
    options: Mapping[str, Any],
    *,
    spell_option: Callable[[str], str],
    needs: Mapping[str, str] = NEEDS,
) -> CommandFile:
    """Return the command for an action.

    Args:
        action: One of `ACTIONS`.
        argument: A node, an evaluation or a pattern, or the text of an idea to inject.
        options: The options of the action.
        spell_option: Returns the name of an option as the caller's users write it, for messages.
        needs: The argument that each action needs, for messages.
    """
    for name, actions in _ACTIONS_OF_OPTION.items():
        if options.get(name) and action not in actions:
            raise UsageError(
                f"{spell_option(name)} means nothing with {action}; it goes with {actions[0]}"
            )
    if (argument is None) == (action in needs):
        wrong = f"needs {needs[action]}" if argument is None else f"takes no {argument}"
        raise UsageError(f"{action} {wrong}")
    command = new_command(
        typing.cast("Action", action), **_fields(action, argument, options, spell_option)
    )
    return CommandFile(command, (argument or "") if action == "inject" else "")


def _fields(
    action: str,
    argument: str | None,
    options: Mapping[str, Any],
    spell_option: Callable[[str], str],
) -> dict[str, Any]:
    if action == "inject":
        return {"node_id": options.get("at") or None, "first": bool(options.get("first"))}
    if action == "ban" and not _NODE.fullmatch(argument or ""):
        return {"pattern": _pattern(argument or "")}
    if action == "reopen" and _EVALUATION.fullmatch(argument or ""):
        return {"eval_id": argument}
    if action == "boost":
        return {"node_id": argument, "times": options.get("times") or 1}
    if action in NEEDS:
        return {"node_id": argument}
    if action == "budget":
        return {"settings": _settings(options, spell_option)}
    return {"now": bool(options.get("now"))} if action == "stop" else {}


def _settings(options: Mapping[str, Any], spell_option: Callable[[str], str]) -> dict[str, Any]:
    settings = {name: options[name] for name in SETTINGS if options.get(name) is not None}
    cost, tokens = (options.get(name) or () for name in CAPS)
    if found := caps.parse({"cost_usd": cost, "tokens": tokens}):
        settings["caps"] = found
    if not settings:
        raise UsageError(f"budget needs a limit, such as {spell_option(SETTINGS[0])}")
    return settings


def _pattern(pattern: str) -> str:
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return pattern


class CommandList(msgspec.Struct, frozen=True):
    """The commands of a run: those that wait, were applied and were refused."""

    waiting: list[Command]
    applied: list[Steering]
    refused: list[Steering]


def list_commands(run_dir: Path, manifest: Manifest) -> CommandList:
    steering = manifest.steering
    records = [] if isinstance(steering, msgspec.UnsetType) else steering
    known = {record.command.command_id for record in records}
    waiting = [found.command for found in Inbox(run_dir).waiting()]
    return CommandList(
        [command for command in waiting if command.command_id not in known],
        [record for record in records if record.refused is None],
        [record for record in records if record.refused is not None],
    )
