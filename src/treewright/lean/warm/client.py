"""Finding a server and taking processes from it. Whatever fails, Lean is started as without one."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator

from treewright.kernel.errors import UsageError
from treewright.kernel.procs import private_socket
from treewright.lean.hosts.host import Host, Launch, Started
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.verify.certificate import ModuleDigest
from treewright.lean.warm import wire
from treewright.lean.warm.identity import directory, identity, socket_name

_SECONDS = 5.0
Announce = Callable[[str], None]


class WarmHost:
    """A Lean whose processes come from a server while it has some, and are started otherwise.

    A server's are for searching. Who listens has the user's rights, and may still be no server of
    ours: no verdict is made in a process that came from there.
    """

    def __init__(self, home: LeanHome, connection: socket.socket, announce: Announce) -> None:
        self._home = home
        self._connection: socket.socket | None = connection
        self._announce = announce
        self._lock = threading.Lock()
        self.taken = 0

    @property
    def backend(self) -> str:
        return self._home.backend

    @property
    def detail(self) -> str:
        return self._home.detail

    def launch(self) -> Launch:
        return self._home.launch()

    def judging(self) -> Host:
        return self._home

    def started_here(self) -> Host:
        return self._home

    def is_library(self, module: str) -> bool:
        return self._home.is_library(module)

    def digest(self) -> str:
        return self._home.digest()

    def changed(self, modules: Iterable[str]) -> str:
        return self._home.changed(modules)

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        return self._home.digests(modules)

    def lacking(self, problem: str) -> str:
        return self._home.lacking(problem)

    def take(self) -> Started | None:
        """A process that is ready; None if there is none, so that one has to be started."""
        with self._lock:
            if self._connection is None:
                return None
            self._home.launch()  # its files are looked at before each start, so also here
            try:
                started = wire.take(self._connection)
            except (OSError, ValueError):
                self._announce("the server with warm Lean processes is gone; starting Lean here")
                started = None
            if started is None:
                self._leave()
            else:
                self.taken += 1
            return started

    def close(self) -> None:
        with self._lock:
            self._leave()

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


@contextlib.contextmanager
def warmed(host: Host, announce: Announce = lambda text: None) -> Iterator[Host]:
    """The same Lean, with a server's processes if there is one for just this Lean."""
    found = _find(host, announce) if isinstance(host, LeanHome) else None
    if found is None:
        yield host
        return
    try:
        yield found
    finally:
        found.close()


def _find(home: LeanHome, announce: Announce) -> WarmHost | None:
    place = directory()
    if not place.is_dir():
        return None
    name = socket_name(home)
    try:
        connection = private_socket.connect(place, name, _SECONDS)
    except UsageError as error:
        announce(f"no warm Lean is used: {error}")
        return None
    if connection is None:
        if (place / name).exists():
            announce("the server with warm Lean processes is gone; starting Lean here")
        return None
    try:
        hello = wire.receive_hello(connection)
    except (OSError, ValueError):
        connection.close()
        announce("the server with warm Lean processes does not answer; starting Lean here")
        return None
    if hello.identity != identity(home):
        connection.close()
        announce("the server with warm Lean processes has another Lean; starting Lean here")
        return None
    announce(f"using Lean processes that `treewright prove --serve` ({hello.pid}) has ready")
    return WarmHost(home, connection, announce)
