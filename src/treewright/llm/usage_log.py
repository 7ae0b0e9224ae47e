"""The usage of models so far, on disk: a line per answer, written before the answer is used.

The lines survive a kill of the process, so a process that continues the work can add them up. They
may not survive a power cut: the file is not synced, because no decision depends on it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.operating_system import BINARY, CLOSE_ON_EXEC, NO_FOLLOW, NON_BLOCK
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.atomic import storage_errors
from treewright.kernel.storage.untrusted import NotPlain
from treewright.kernel.text import jsontext
from treewright.llm.usage import Usage, sane_usage

_LARGEST = 256 << 20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY
_FLAGS |= NO_FOLLOW | NON_BLOCK | CLOSE_ON_EXEC


class Answer(Usage, frozen=True, omit_defaults=True):
    """The usage of one answer, and the role that asked, where it is known."""

    role: str = ""

    @classmethod
    def of(cls, usage: Usage, role: str = "") -> Answer:
        """Return the record of an answer."""
        return cls(**msgspec.structs.asdict(usage), role=role)

    @property
    def usage(self) -> Usage:
        """The usage without impossible values."""
        return sane_usage(self)


_decode = jsontext.decoder(Answer)


def append(path: Path, answer: Answer) -> None:
    """Append a line to the file.

    Raises:
        NotPlain: The path is not a regular file.
    """
    try:
        fd = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        raise NotPlain(f"{path.name} cannot be opened: {error.strerror}") from None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotPlain(f"{path.name} is not a file")
        line = msgspec.json.encode(answer) + b"\n"
        if found.st_size:
            os.lseek(fd, -1, os.SEEK_END)
            if os.read(fd, 1) != b"\n":
                line = b"\n" + line  # the last line was cut off by a kill; readers leave it out
        if os.write(fd, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def read(path: Path, largest: int = _LARGEST) -> Iterator[Answer]:
    """Yield the answers in a file; none if there is no file. Unreadable lines are left out.

    Raises:
        NotPlain: The path is not a regular file, or is larger than `largest`.
    """
    try:
        file = untrusted.open_plain(path, largest)
    except FileNotFoundError:
        return
    with file:
        for line in file:
            with contextlib.suppress(msgspec.DecodeError):
                yield _decode(line)


def summed(answers: Iterable[Answer]) -> tuple[Usage, dict[str, Usage]]:
    """Return the sum of all usage, and the sum of each role."""
    usage, roles = Usage(), dict[str, Usage]()
    for answer in answers:
        usage += answer.usage
        if answer.role:
            roles[answer.role] = roles.get(answer.role, Usage()) + answer.usage
    return usage, roles


class UsageLog:
    """The usage log of a run, with the totals over all of its processes. For threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.answers = 0
        self.usage = Usage()
        try:
            for answer in read(path):
                self._count(answer)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror or error}") from None

    def add(self, usage: Usage) -> None:
        """Write the usage of one answer to the log, then add it to the totals.

        Raises:
            StorageError: The log cannot be written.
        """
        answer = Answer.of(sane_usage(usage))
        with self._lock, storage_errors(self._path):
            append(self._path, answer)
            self._count(answer)

    def _count(self, answer: Answer) -> None:
        self.answers += 1
        self.usage += answer.usage
