"""The journal of a search: its lines, reading them, and writing them under the lease.

A search has no files besides the journal and the lease. A choice can be computed again from the
outcomes before it, so its line is not synced; an outcome is on disk when `tell` returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import treewright
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import LockActive, StorageError, UsageError
from treewright.kernel.storage import journal, run_directory
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease, Owner
from treewright.kernel.storage.run_directory import LEASE_DIR
from treewright.kernel.text import jsontext
from treewright.search.scores import Direction, Gate
from treewright.search.sequencer import Order

EVENTS = "search.jsonl"
FORMAT_VERSION = 1
_SPARE_DEPTH = 400
"""A reader of the journal may be this much deeper in calls than its writer: Python counts the
depth of both together."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The settings that the choices depend on. Fixed when the search begins."""

    policy: str
    options: dict[str, Any] = {}
    seed: int = 0
    order: Order = "fixed"
    lookahead: int = 1
    branching: int | None = None
    actions: tuple[str, ...] = ()
    direction: Direction = "maximize"
    gate: Gate = "none"
    root_score: float | dict[str, float] | None = None
    root_data: Any = None


class _Line(msgspec.Struct, tag_field="type", kw_only=True, omit_defaults=True):
    epoch: int = 0
    at: str = ""


class LeaseTaken(_Line, tag=journal.LEASE):
    """A process opened the search."""

    owner: Owner


class Created(_Line, tag="created"):
    """The search began."""

    settings: Settings
    format_version: int = FORMAT_VERSION
    treewright: str = ""


class BudgetSet(_Line, tag="budget"):
    """`evaluations` is the most choices the search may make; None is no limit."""

    evaluations: int | None = None


class Chosen(_Line, tag="chosen"):
    """The policy chose a task. `seen` is the number of outcomes that it knew."""

    number: int
    parent: int
    seen: int
    action: str | None = None


class Retried(_Line, tag="retried"):
    """A task without an outcome was handed out again."""

    number: int
    attempt: int


class Told(_Line, tag="told"):
    """A task has its score."""

    number: int
    score: float | dict[str, float]
    data: Any = None
    expandable: bool = True
    prior: float = 1.0
    worker: str | None = None


class Failed(_Line, tag="failed"):
    """A task failed."""

    number: int
    reason: str
    exhausts_parent: bool = False
    worker: str | None = None


class Returned(_Line, tag="returned"):
    """A task was given back after a fault. The policy learns nothing from it."""

    number: int
    reason: str


Line = LeaseTaken | Created | BudgetSet | Chosen | Retried | Told | Failed | Returned


def name_of(line: Line) -> str:
    """Return the name of a line for messages, such as `chosen 5`."""
    number = getattr(line, "number", None)
    kind = type(line).__name__.lower()
    return kind if number is None else f"{kind} {number}"


decode = jsontext.decoder(Line)
encode = msgspec.json.Encoder().encode
L = TypeVar("L", bound=Line)


def read(path: Path) -> list[Line]:
    """Return the lines of a search without its lease.

    Raises:
        UsageError: There is no search at `path`.
    """
    lines = _read(path)
    if settings_in(lines) is None:
        raise UsageError(f"no search at {path}")
    return lines


def settings_in(lines: Iterable[Line]) -> Settings | None:
    """Return the settings of a search; None if it was not begun."""
    return next((line.settings for line in lines if isinstance(line, Created)), None)


def round_trip(line: L) -> L:
    """Encode a line and decode it again; return it as a later process will read it.

    Raises:
        UsageError: The line cannot be written or read.
    """
    try:
        encoded = encode(line)
        if encoded.count(b"[") + encoded.count(b"{") > _SPARE_DEPTH:
            jsontext.decode(b"[" * _SPARE_DEPTH + encoded + b"]" * _SPARE_DEPTH)
        return decode(encoded)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name_of(line)}: {error}") from None
    except (TypeError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(f"data is written as JSON, and this cannot be: {error}") from None


def round_trip_data(data: Any) -> Any:
    """Return data as a later process will read it; see `round_trip`."""
    if data is None or type(data) is bool:
        return data
    return round_trip(Told(number=0, score=0.0, data=data)).data


class SearchJournal:
    """The journal of a search, which belongs to this process until `close`."""

    def __init__(self, path: Path, lease: Lease) -> None:
        self._lease = lease
        self._owner = os.getpid()
        self._journal = Journal(path / EVENTS, lease.epoch, lease.check, lease.is_in_place)

    @classmethod
    def open(
        cls, path: Path, *, stale_seconds: float, force: bool
    ) -> tuple[SearchJournal, list[Line]]:
        """Take the lease of a search; return its journal and the lines in it.

        Raises:
            LockActive: Another process owns the search.
        """
        run_directory.prepare(path)
        after = journal.last_epoch(path / EVENTS)
        try:
            lease = Lease.acquire(
                path / LEASE_DIR, stale_seconds=stale_seconds, force=force, after=after
            )
        except LockActive as error:  # a Python caller has no flags
            raise LockActive(str(error).replace("--force", "force=True")) from None
        try:
            opened = cls(path, lease)
            _read(path)  # refuses another version before the first write
            opened.append(LeaseTaken(owner=lease.owner), sync=True)
            # Read again: an earlier owner may have written lines until this one took the lease.
            return opened, _read(path)
        except BaseException:
            lease.release()
            raise

    def create(self, settings: Settings, budget: int | None) -> None:
        """Write the settings and the budget in one write, so that neither is there alone."""
        created = Created(settings=settings, treewright=treewright.__version__)
        self.append(created, BudgetSet(evaluations=budget), sync=True)

    def append(self, *lines: Line, sync: bool) -> None:
        """Append lines to the journal; with `sync` they are on disk when this returns.

        Raises:
            UsageError: This is a forked process, and the lease belongs to its parent.
            LeaseLost: Another process has taken over the search.
        """
        if os.getpid() != self._owner:
            raise UsageError(f"this search belongs to process {self._owner}, which was forked")
        for line in lines:
            line.epoch, line.at = self._lease.epoch, timestamp()
        self._journal.append([encode(line) for line in lines], sync=sync)

    def close(self) -> None:
        """Close the journal and release the lease."""
        self._journal.close()
        if os.getpid() == self._owner:
            self._lease.release()


def _read(path: Path) -> list[Line]:
    lines: list[Line] = []
    for line in journal.read(path / EVENTS):
        try:
            lines.append(decode(line.raw))
        except msgspec.DecodeError as error:
            raise StorageError(
                f"{path / EVENTS}: a line ending at byte {line.end} cannot be read ({error}); it "
                "was written by another version, or edited"
            ) from None
    created = next((line for line in lines if isinstance(line, Created)), None)
    if created is not None and created.format_version != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format_version {created.format_version}, this treewright reads "
            f"{FORMAT_VERSION}; use the version that wrote it"
        )
    return lines
