"""The journal: an append-only JSONL file with the history of a run, one fact a line.

Every line is an object with `type`, `epoch` (of the lease under which it was written) and `at`.
Appends are durable when they return, unless the caller says otherwise. Every reader ignores two
kinds of lines:

- a torn line, whose writer was killed during the write. If any line follows it, that is a `lease`
  line of a later epoch;
- a line of an earlier epoch than a line before it: its writer had lost the lease. This makes
  takeover safe.

Any other line that does not parse means that the file is damaged; the error names the byte.
The file is never truncated and never rewritten. If it is removed or replaced while a run writes it,
the writer restores it with its whole content.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.operating_system import BINARY
from treewright.kernel.storage.atomic import (
    describe,
    fsync_directory,
    storage_errors,
    write_all,
    write_and_keep_open,
)
from treewright.kernel.text import jsontext

LEASE = "lease"
_TAIL_BYTES = 1 << 16
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

_log = logging.getLogger("treewright")


class _Head(msgspec.Struct):
    type: str
    epoch: int


_head = jsontext.decoder(_Head)


@dataclass(frozen=True, slots=True)
class Line:
    """A valid line: its bytes, and the offset of the byte after it."""

    type: str
    epoch: int
    raw: bytes
    end: int


def read(path: Path, offset: int = 0, epoch: int = 0) -> Iterator[Line]:
    """Yield the valid lines from `offset` on, where the journal had reached `epoch`.

    Raises:
        StorageError: The file is damaged.
    """
    try:
        _require_file(path)
        with path.open("rb") as file:
            file.seek(offset)
            yield from _valid_lines(file.read(), path, offset, epoch)
    except FileNotFoundError:
        return


def _require_file(path: Path) -> None:
    """Raise StorageError unless the path is a regular file: opening a pipe would wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StorageError(f"{path}: not a file any more; restore it from a backup")


def _valid_lines(data: bytes, path: Path, offset: int, epoch: int) -> Iterator[Line]:
    damaged_at: int | None = None
    start = 0
    while start < len(data):
        newline = data.find(b"\n", start)
        stop = len(data) if newline < 0 else newline
        raw = data[start:stop]
        start = stop + 1
        if not raw:
            continue
        head = _parse(raw) if newline >= 0 else None
        if head is None:
            damaged_at = offset + stop if damaged_at is None else damaged_at
            continue
        if damaged_at is not None and not (head.type == LEASE and head.epoch > epoch):
            raise StorageError(
                f"{path}: damaged before byte {damaged_at}; restore the file from a backup"
            )
        damaged_at = None
        if head.epoch < epoch:
            continue
        epoch = head.epoch
        yield Line(head.type, head.epoch, raw, offset + min(start, len(data)))


def _parse(raw: bytes) -> _Head | None:
    try:
        return _head(raw)
    except msgspec.DecodeError:
        return None


def last_epoch(path: Path) -> int:
    """Return the latest epoch near the end of the file; 0 if there is none."""
    try:
        _require_file(path)
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    length = _TAIL_BYTES
    with path.open("rb") as file:
        while True:
            start = max(0, size - length)
            file.seek(start)
            heads = [_parse(raw) for raw in file.read(length).split(b"\n")]
            epochs = [head.epoch for head in heads if head is not None]
            if epochs or start == 0:
                return max(epochs, default=0)
            length *= 4


class Journal:
    """The writer of a journal, which belongs to the owner of the lease."""

    def __init__(
        self,
        path: Path,
        epoch: int,
        guard: Callable[[], None],
        is_ours: Callable[[], bool] = lambda: False,
    ) -> None:
        """Open the file for appending.

        Args:
            path: The file.
            epoch: The epoch of the lease.
            guard: Called before every append; raises if the lease is lost.
            is_ours: Called before a removed file is restored; says whether the lease is still in
                place, so that no other run can have begun there.
        """
        self.path = path
        self.epoch = epoch
        self._name = str(path)
        self._guard = guard
        self._is_ours = is_ours
        self._failed: StorageError | None = None
        with storage_errors(path):
            is_new = not path.exists()
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | BINARY, 0o644)
            if is_new:
                fsync_directory(path.parent)
            self._end = os.fstat(self._fd).st_size
            self._needs_newline = self._end > 0 and self._read(self._end - 1) != b"\n"

    @property
    def end(self) -> int:
        """The offset after the last line that this journal wrote, or its size when opened."""
        return self._end

    def append(self, lines: Sequence[bytes], *, sync: bool = True) -> None:
        """Append encoded objects in one write.

        Without `sync` they survive the end of this process but not a power cut, and become durable
        with the next append that syncs. After a failure nothing more is appended, because only the
        lease line of the next owner may follow half a line.

        Raises:
            LeaseLost: Another process owns the run.
            StorageError: The file cannot be written.
        """
        if self._failed is not None:
            raise self._failed
        self._guard()
        if not self._is_in_place():
            self._restore()
        data = b"".join(line + b"\n" for line in lines)
        if self._needs_newline:
            data = b"\n" + data
        try:
            write_all(self._fd, data)
            if sync:
                os.fsync(self._fd)
        except OSError as error:
            self._failed = describe(error, self.path)
            raise self._failed from error
        self._needs_newline = False
        self._end = os.lseek(self._fd, 0, os.SEEK_CUR)

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the open file, or cannot be checked."""
        try:
            return os.path.samestat(os.stat(self._name), os.fstat(self._fd))  # noqa: PTH116 - often
        except OSError as error:
            return error.errno not in _NOT_THERE

    def _restore(self) -> None:
        if not self._is_ours():
            raise StorageError(
                f"{self.path} was removed while it was written, and the rest of the run with it; "
                "this process stops here"
            )
        with storage_errors(self.path):
            data = self._read(0)
            left, self._fd = self._fd, write_and_keep_open(self.path, data)
            os.close(left)
        _log.warning("%s was removed or replaced while it was written; it was put back", self.path)

    def _read(self, start: int) -> bytes:
        """Return the file from `start` on. Appends always go to the end of the file."""
        os.lseek(self._fd, start, os.SEEK_SET)
        return os.read(self._fd, os.fstat(self._fd).st_size - start)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
