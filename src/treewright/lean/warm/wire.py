"""What is said over the socket: lines of JSON, and descriptors with one kind of them.

The server begins with a hello. A client says `take` as often as it needs a process, and keeps the
connection open for as long as its call lasts: only then the server starts others.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence

import msgspec

from treewright.kernel.text import jsontext
from treewright.lean.hosts.host import Started

TAKE = b"take\n"
_LONGEST = 4096
_DESCRIPTORS = 4


class Hello(msgspec.Struct, frozen=True):
    """Who listens."""

    identity: str
    pid: int


class Handed(msgspec.Struct, frozen=True):
    """A process; with it come the descriptors of `Started`. Process 0: none is ready."""

    pid: int = 0
    marker: str = ""


def send(connection: socket.socket, message: msgspec.Struct, fds: Sequence[int] = ()) -> None:
    line = msgspec.json.encode(message) + b"\n"
    socket.send_fds(connection, [line], list(fds))


def receive_hello(connection: socket.socket) -> Hello:
    """Raises OSError or ValueError if there is none."""
    line, fds = _line(connection)
    _close(fds)
    return jsontext.decode(line, Hello)


def take(connection: socket.socket) -> Started | None:
    """A process, or None if none is ready. Raises OSError or ValueError if there is no answer."""
    connection.sendall(TAKE)
    line, fds = _line(connection)
    try:
        handed = jsontext.decode(line, Handed)
        if not handed.pid:
            return None
        if len(fds) != _DESCRIPTORS:
            raise ValueError("a process came without its descriptors")
        started = Started(handed.pid, handed.marker, *fds)
        fds = []
        return started
    finally:
        _close(fds)


def _line(connection: socket.socket) -> tuple[bytes, list[int]]:
    data, found = b"", list[int]()
    while not data.endswith(b"\n"):
        more, fds, _, _ = socket.recv_fds(connection, _LONGEST, _DESCRIPTORS)
        found += fds
        data += more
        if not more or len(data) > _LONGEST:
            _close(found)
            raise ConnectionError("the connection ended")
    return data, found


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
