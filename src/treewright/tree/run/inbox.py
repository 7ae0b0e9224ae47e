"""Commands beside a run, from whoever steers it to the process that owns it.

A command is a file in `steering/`, written whole; its name sorts by time. The owner reads them at
its safe points, records what became of each, and only then removes the file: one that is there
again after a crash has been recorded, and is not applied twice.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.text import jsontext
from treewright.tree.records import layout
from treewright.tree.records.steering import Command

_LOOK_SECONDS = 0.5
_TICK_NANOSECONDS = 2 * 10**9
_log = logging.getLogger("treewright")


class Letter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command with the text of the idea that it brings."""

    command: Command
    text: str = ""


def submit(run_dir: Path, letter: Letter) -> Path:
    """Writes a command; it is there whole or not at all."""
    directory = run_dir / layout.STEERING
    atomic.make_directory(directory)
    path = directory / f"{letter.command.command_id}.json"
    data = msgspec.json.format(msgspec.json.encode(letter), indent=1) + b"\n"
    if len(data) > untrusted.LARGEST_TEXT:
        raise UsageError("the idea is too large to be one")
    atomic.write_bytes(path, data)
    return path


class Inbox:
    """The owner's side. Looks into the directory only when something was put there."""

    def __init__(self, run_dir: Path) -> None:
        self._directory = run_dir / layout.STEERING
        self._seen: Any = None
        self._letters: list[Letter] = []

    def waiting(self) -> list[Letter]:
        """What has come and was not removed, in order; what is no command is put aside."""
        try:
            found = self._directory.stat().st_mtime_ns
        except OSError:
            return []
        if found != self._seen:
            # One that comes within the same tick of the file system's clock is not overlooked.
            is_settled = time.time_ns() - found > _TICK_NANOSECONDS
            self._seen = found if is_settled else None
            paths = sorted(self._directory.glob("*.json"))
            self._letters = [letter for path in paths if (letter := self._read(path)) is not None]
        return list(self._letters)

    def remove(self, letter: Letter) -> None:
        """Once what became of it is recorded."""
        try:
            self._path(letter).unlink(missing_ok=True)
        except OSError as error:  # another user's directory; it is not applied twice
            _log.warning("%s cannot be removed: %s", self._path(letter), error.strerror)
        self._letters = [each for each in self._letters if each is not letter]

    def _path(self, letter: Letter) -> Path:
        return self._directory / f"{letter.command.command_id}.json"

    def _read(self, path: Path) -> Letter | None:
        try:
            letter = jsontext.decode(untrusted.read(path, untrusted.LARGEST_TEXT), type=Letter)
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("%s is no command and is left out: %s", path, error)
            return None
        return letter if self._path(letter) == path else None


class Watch:
    """Looks for `stop --now` while the owner is busy, and interrupts it."""

    def __init__(self, run_dir: Path, cancel: threading.Event) -> None:
        self._inbox = Inbox(run_dir)
        self._cancel = cancel
        self._end = threading.Event()
        self._thread = threading.Thread(
            target=self._look, name="watching for stop --now", daemon=True
        )

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(_LOOK_SECONDS):
            commands = (letter.command for letter in self._inbox.waiting())
            if any(command.now and command.action == "stop" for command in commands):
                self._cancel.set()
                return
