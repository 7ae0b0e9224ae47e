"""The files of a search: its lease and its journal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

import msgspec

import treewright
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import LockActive, StorageError, UsageError
from treewright.kernel.storage import journal, run_directory
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease
from treewright.kernel.storage.run_directory import LEASE_DIR
from treewright.kernel.text import jsontext
from treewright.search import records

EVENTS = "search.jsonl"


_decode = jsontext.decoder(records.Line)
_encoder = msgspec.json.Encoder()


def read(path: Path) -> list[records.Line]:
    """Return the lines of a search without its lease.

    Raises:
        UsageError: There is no search at `path`.
    """
    lines = _read(path)
    if _settings(path, lines) is None:
        raise UsageError(f"no search at {path}")
    return lines


class Storage:
    """The directory of a search, owned by this process until `close`."""

    def __init__(self, path: Path, lease: Lease) -> None:
        self._lease = lease
        self._owner = os.getpid()
        self._journal = Journal(path / EVENTS, lease.epoch, lease.check, lease.is_in_place)
        self._lines = _read(path)
        self.settings = _settings(path, self._lines)  # checked before the first write
        self.append(records.LeaseTaken(owner=lease.owner), sync=True)
        # Read again: an earlier owner may have written lines until this one took the lease.
        self._lines = _read(path)
        self.settings = _settings(path, self._lines)

    @classmethod
    def open(cls, path: Path, *, stale_seconds: float, force: bool) -> Self:
        """Take the lease of a search and read its journal.

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
            return cls(path, lease)
        except BaseException:
            lease.release()
            raise

    def take_lines(self) -> list[records.Line]:
        """Return the lines of the journal, once: they are not kept in memory."""
        lines, self._lines = self._lines, []
        return lines

    def create(self, settings: records.Settings, budget: int | None) -> None:
        """Write the settings and the budget in one write, so that neither is there alone."""
        created = records.Created(settings=settings, treewright=treewright.__version__)
        self.append(created, records.BudgetSet(evaluations=budget), sync=True)

    def append(self, *lines: records.Line, sync: bool) -> None:
        """Append lines to the journal; with `sync` they are on disk when this returns.

        Raises:
            UsageError: This is a forked process, and the lease belongs to its parent.
            LeaseLost: Another process has taken over the search.
        """
        if os.getpid() != self._owner:
            raise UsageError(f"this search belongs to process {self._owner}, which was forked")
        for line in lines:
            line.epoch, line.at = self._lease.epoch, timestamp()
        self._journal.append([_encoder.encode(line) for line in lines], sync=sync)

    def close(self) -> None:
        """Close the journal and release the lease."""
        self._journal.close()
        if os.getpid() == self._owner:
            self._lease.release()


def _read(path: Path) -> list[records.Line]:
    lines: list[records.Line] = []
    for line in journal.read(path / EVENTS):
        try:
            lines.append(_decode(line.raw))
        except msgspec.DecodeError as error:
            raise StorageError(
                f"{path / EVENTS}: a line ending at byte {line.end} cannot be read ({error}); it "
                "was written by another version, or edited"
            ) from None
    return lines


def _settings(path: Path, lines: list[records.Line]) -> records.Settings | None:
    for line in lines:
        if isinstance(line, records.Created):
            if line.format_version != records.FORMAT_VERSION:
                raise UsageError(
                    f"{path} has format_version {line.format_version}, this treewright reads "
                    f"{records.FORMAT_VERSION}; use the version that wrote it"
                )
            return line.settings
    return None
