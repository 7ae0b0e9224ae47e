"""The files of a search: the lease, and the journal that is all there is to know."""

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
    """The lines of a search, without owning it. Raises UsageError if there is none."""
    lines = _read(path)
    if _settings(path, lines) is None:
        raise UsageError(f"no search at {path}")
    return lines


class Storage:
    """A search's directory, owned until `close`."""

    def __init__(self, path: Path, lease: Lease) -> None:
        self._lease = lease
        self._owner = os.getpid()
        self._journal = Journal(path / EVENTS, lease.epoch, lease.check, lease.is_in_place)
        self._lines = _read(path)
        self.settings = _settings(path, self._lines)  # before anything is written to it
        self.append(records.LeaseTaken(owner=lease.owner), sync=True)
        # Again, now that nothing more of an earlier owner counts: one that was replaced may have
        # written until then, and every later reader sees it.
        self._lines = _read(path)
        self.settings = _settings(path, self._lines)

    @classmethod
    def open(cls, path: Path, *, stale_seconds: float, force: bool) -> Self:
        run_directory.prepare(path)
        after = journal.last_epoch(path / EVENTS)
        try:
            lease = Lease.acquire(
                path / LEASE_DIR, stale_seconds=stale_seconds, force=force, after=after
            )
        except LockActive as error:  # there is no flag here
            raise LockActive(str(error).replace("--force", "force=True")) from None
        try:
            return cls(path, lease)
        except BaseException:
            lease.release()
            raise

    def take_lines(self) -> list[records.Line]:
        """What was there when the search was opened; given once, so that it can be forgotten."""
        lines, self._lines = self._lines, []
        return lines

    def create(self, settings: records.Settings, budget: int | None) -> None:
        """In one write: a search that lost its limit would go on for ever."""
        created = records.Created(settings=settings, treewright=treewright.__version__)
        self.append(created, records.BudgetSet(evaluations=budget), sync=True)

    def append(self, *lines: records.Line, sync: bool) -> None:
        if os.getpid() != self._owner:  # it would write under its parent's lease
            raise UsageError(f"this search belongs to process {self._owner}, which was forked")
        for line in lines:
            line.epoch, line.at = self._lease.epoch, timestamp()
        self._journal.append([_encoder.encode(line) for line in lines], sync=sync)

    def close(self) -> None:
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
