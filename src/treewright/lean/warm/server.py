"""Keeping Lean processes ready for other calls of the same user: `treewright prove --serve`.

A process is handed over with its descriptors, once: from then on it belongs to the call, which ends
it, and nothing of one call is ever seen by another. While a call lasts no new ones are started; it
needs the cores itself.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

from treewright.kernel.errors import LockActive, TreewrightError, UsageError
from treewright.kernel.procs import private_socket
from treewright.kernel.storage import file_lock
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.process import LeanProcess
from treewright.lean.warm import wire
from treewright.lean.warm.identity import directory, identity, socket_name

PROCESSES = 2
"""A session that searches, and one for the next call or in its place if it is lost."""
IDLE_SECONDS = 600.0
_LOOK_SECONDS = 0.2


class WarmServer:
    """Listens until it is told to stop, or nobody came for a while."""

    def __init__(
        self,
        home: LeanHome,
        *,
        processes: int = PROCESSES,
        idle_seconds: float = IDLE_SECONDS,
        announce: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._home = home
        self._wanted = processes
        self._idle = idle_seconds
        self._announce = announce
        self._ready: list[LeanProcess] = []
        self._changed = threading.Condition()
        self._callers: set[socket.socket] = set()
        self._closing = False
        self._last = time.monotonic()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Until `stop`, or until there was no caller for so long."""
        if not private_socket.is_supported():
            raise UsageError("--serve needs sockets that know their user: it works on Linux")
        private_socket.make_private(directory())
        with self._alone(), self._listening() as listening:
            starter = threading.Thread(target=self._keep_ready, daemon=True)
            starter.start()
            try:
                self._accept(listening, stop)
            finally:
                with self._changed:
                    self._closing = True
                    self._changed.notify_all()
                    for caller in self._callers:
                        with contextlib.suppress(OSError):
                            caller.shutdown(socket.SHUT_RDWR)
                starter.join()
                for process in self._ready:
                    process.kill("the server ends")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One server for a Lean; the lock ends with the process, however that ends."""

        def refuse() -> None:
            raise LockActive("warm Lean processes are being served already")

        path = directory() / f"{socket_name(self._home)}.lock"
        with file_lock.holding(path, on_wait=refuse):
            yield

    @contextlib.contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        name = socket_name(self._home)
        listening = private_socket.listen(directory(), name)
        try:
            yield listening
        finally:
            listening.close()
            (directory() / name).unlink(missing_ok=True)

    def _accept(self, listening: socket.socket, stop: Callable[[], bool]) -> None:
        listening.settimeout(_LOOK_SECONDS)
        while not stop():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                with self._changed:
                    idle = not self._callers and time.monotonic() - self._last > self._idle
                if idle:
                    self._announce(f"nobody asked for {self._idle / 60:g} minutes: ending")
                    return
                continue
            with self._changed:
                self._callers.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """One call, for as long as it keeps the connection, however long it says nothing."""
        try:
            with connection:
                if private_socket.peer(connection)[1] != os.geteuid():
                    return
                wire.send(connection, wire.Hello(identity(self._home), os.getpid()))
                while connection.recv(len(wire.TAKE)) == wire.TAKE:
                    self._hand_over(connection)
        except OSError:
            pass  # the caller is gone; it started its own, or ended
        finally:
            with self._changed:
                self._callers.discard(connection)
                self._last = time.monotonic()
                self._changed.notify_all()

    def _hand_over(self, connection: socket.socket) -> None:
        with self._changed:
            living = [process for process in self._ready if process.alive]
            process = living.pop(0) if living else None
            self._ready = living
        if process is None:
            wire.send(connection, wire.Handed())
            return
        with process.given_away() as started:
            handed = wire.Handed(started.pid, started.marker)
            wire.send(connection, handed, started.descriptors)
        threading.Thread(target=process.wait_for_end, daemon=True).start()

    def _keep_ready(self) -> None:
        """Starts what is missing, one after the other, while nobody is being served."""
        told = False
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (
                        self._closing or (len(self._ready) < self._wanted and not self._callers)
                    ),
                )
                if self._closing:
                    return
            try:
                process = LeanProcess(self._home)
            except TreewrightError as error:
                self._announce(f"no Lean could be started: {error}")
                with self._changed:
                    self._changed.wait(self._idle)
                continue
            with self._changed:
                self._ready.append(process)
                full = len(self._ready) == self._wanted
            if full and not told:
                told = True
                self._announce(f"{self._wanted} Lean processes are ready")
