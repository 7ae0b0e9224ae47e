"""Logs of commands, limited in size, and quotations from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

from treewright.kernel.storage import untrusted

_QUOTED_LINES = 3
_LONGEST_LINE = 160
_LONGEST_LAST_LINE = 300
_LAST_BYTES = 4096
_LARGEST_LOG = 1 << 40


class CappedLog:
    """Writes the beginning and the end of a stream, and the size of the part between them.

    Args:
        write: Writes bytes to the log.
        limit: The largest size of the log in bytes.
    """

    def __init__(self, write: Callable[[bytes], object], limit: int) -> None:
        self._write = write
        self._head_left = limit // 2
        self._tail_limit = limit - limit // 2
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0
        self.seen = 0

    def feed(self, data: bytes) -> None:
        """Add bytes of the stream."""
        self.seen += len(data)
        if self._head_left:
            head, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._write(head)
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            dropped = len(self._tail.popleft())
            self._tail_size -= dropped
            self._dropped += dropped

    def finish(self) -> None:
        """Write the end of the stream."""
        if self._dropped:
            self._write(b"\n[... %d bytes left out ...]\n" % self._dropped)
        for chunk in self._tail:
            self._write(chunk)
        self._tail.clear()


def last_lines(output: str) -> str:
    """Return the last lines of a command's output that have text, joined to one line.

    Lines that only mark a place in the line above, as Python's tracebacks have them, are left out.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip(" \t~^")]
    return " | ".join(line[:_LONGEST_LINE] for line in lines[-_QUOTED_LINES:])


def read_last_line(log: Path) -> str:
    """Return the last line with text of a log file; "" if the file cannot be read."""
    try:
        with untrusted.open_plain(log, _LARGEST_LOG) as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            said = file.read(_LAST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_LAST_LINE] if lines else ""


def with_log(message: str, output: str, log: Path) -> str:
    """Return a message with the last lines of the output and the path of the log."""
    quoted = last_lines(output)
    return message + (f": {quoted}" if quoted else "") + f" (log: {log})"
