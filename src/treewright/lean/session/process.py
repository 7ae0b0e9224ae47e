"""One Lean process: its start, its requests one at a time, and its forced end.

The process runs in a separate system session, with the environment that its host gives it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import selectors
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from treewright.kernel.operating_system import require_posix
from treewright.kernel.procs import proctree
from treewright.kernel.procs.watchdog import watchdog
from treewright.lean.hosts.host import Host, Launch
from treewright.lean.project.project import Project
from treewright.lean.session.errors import LeanError
from treewright.lean.session.protocol import Headers, Provide, R, Request, decode_reply

STARTUP_SECONDS = 120.0
# The process is killed if a request takes longer than its limit times the factor, plus the seconds.
GRACE_SECONDS = 3.0
GRACE_FACTOR = 1.25
_PROVIDE_SECONDS = 60.0
_CHUNK = 1 << 20
_LONGEST_REPLY = 256 << 20
_STDERR_TAIL = 2000


class ProcessLost(Exception):
    """The process ended, or was ended because it did not answer."""


class LacksCode(ProcessLost):
    """The process ended because a text runs code that this Lean lacks; a retry ends the same."""


NO_CODE = "it runs code that the bundled Lean has not got"
_UNKNOWN_CODE = re.compile(r"\(interpreter\) unknown declaration '([^']+)'")
_encode = msgspec.json.Encoder().encode


class LeanProcess:
    """A running Lean, which answers one request at a time.

    A thread with a second request waits until the first one is answered. `prepare` gives the
    process the modules of its project.
    """

    def __init__(
        self,
        host: Host,
        project: Project | None = None,
        *,
        startup_seconds: float = STARTUP_SECONDS,
    ) -> None:
        self._project = project
        self._provided: set[str] = set()
        self._lock = threading.Lock()
        self._cancelling = threading.Lock()
        self._cancel_fd = -1
        self._child: subprocess.Popen[bytes] | None = None
        self._marker = f"lean:{secrets.token_hex(8)}"
        self._next_id = 1
        self._running_id: int | None = None
        self._buffer = bytearray()
        self._lost = ""
        self.heap_bytes = 0
        self._stack = contextlib.ExitStack()
        started = time.monotonic()
        try:
            launch = host.launch()  # may compile the host program, which is not part of the start
            started = time.monotonic()
            self._spawn(launch)
            try:
                while not self._read_line(started + startup_seconds).startswith(b'{"ready"'):
                    pass
                if project is not None:
                    self._provide(Provide(modules=[], options=project.options))
            except ProcessLost as lost:
                raise LeanError(f"Lean did not start: {lost}") from lost
        except BaseException:
            self.kill("did not start")
            raise
        self.startup_seconds = time.monotonic() - started
        _living.add(self)

    def _spawn(self, launch: Launch) -> None:
        require_posix("Lean")
        cancel_read, self._cancel_fd = os.pipe()
        self._stack.callback(os.close, self._cancel_fd)
        os.set_blocking(cancel_read, False)
        self._replies, replies_write = os.pipe()
        self._stack.callback(os.close, self._replies)
        self._stderr = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        environment = {
            **launch.environment,
            "TREEWRIGHT_CANCEL_FD": str(cancel_read),
            "TREEWRIGHT_REPLY_FD": str(replies_write),
        }
        try:
            self._stack.enter_context(watchdog.expecting(self._marker))
            child = self._child = subprocess.Popen(
                launch.command,
                cwd=launch.directory,
                env=proctree.with_marker(environment, self._marker),
                stdin=subprocess.PIPE,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=(cancel_read, replies_write),
                start_new_session=True,
            )
        finally:
            os.close(cancel_read)
            os.close(replies_write)
        assert child.stdin is not None
        self._stdin = child.stdin.fileno()
        self._stack.enter_context(watchdog.guarding(child.pid, self._marker))
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._replies, False)
        self._reader = self._stack.enter_context(selectors.DefaultSelector())
        self._reader.register(self._replies, selectors.EVENT_READ)
        self._writer = self._stack.enter_context(selectors.DefaultSelector())
        self._writer.register(self._stdin, selectors.EVENT_WRITE)

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._child is not None
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process can be asked."""
        return not self._lost and self._child is not None and self._child.poll() is None

    def prepare(self, text: str) -> None:
        """Give the process the modules of the project that a text imports.

        A process without a project, and a text with a header that Lean cannot parse, need nothing;
        Lean reports the header when it reads the text.

        Raises:
            MissingModule: a module does not exist or does not compile.
            ProcessLost: the process ended.
        """
        if self._project is None:
            return
        (header,) = self.request(Headers(texts=[text]), hard=_PROVIDE_SECONDS).headers
        if header.problem:
            return
        modules = self._project.modules_for(header.imports)
        new = [module for module in modules if module.name not in self._provided]
        files = [file.provided() for file in self._project.files_for(text)]
        if new or files:
            self._provide(Provide(modules=[module.provided() for module in new], files=files))
            self._provided.update(module.name for module in new)

    def _provide(self, request: Provide) -> None:
        self.request(request, hard=_PROVIDE_SECONDS)

    def request(self, request: Request[R], *, soft: float | None = None, hard: float) -> R:
        """Send a request and return its reply.

        Args:
            request: the request.
            soft: seconds after which Lean itself ends the operation (default: no limit).
            hard: seconds after which the process is killed.

        Raises:
            ProcessLost: the process ended, or did not answer in `hard` seconds.
        """
        with self._lock:
            if self._lost:
                raise ProcessLost(self._lost)
            request.id = self._running_id = self._next_id
            request.max_ms = None if soft is None else max(1, round(soft * 1000))
            self._next_id += 1
            deadline = time.monotonic() + hard
            try:
                self._write(_encode(request) + b"\n", deadline)
                reply = decode_reply(request, self._read_line(deadline))
                if reply.id != request.id:
                    raise ProcessLost("the Lean process answered another request")
            except msgspec.DecodeError as error:
                self._end(f"the Lean process answered with something else ({error})")
                raise ProcessLost(self._lost) from error
            except BaseException as error:
                # The reply may still arrive, and would be taken as the answer to the next request.
                self._end(str(error) or "the exchange was interrupted")
                raise
            finally:
                self._running_id = None
            self.heap_bytes = reply.heap
            if reply.kind == "fatal":
                self._end(_explain_fatal(reply.error))
                kind = LacksCode if self._lost.startswith(NO_CODE) else ProcessLost
                raise kind(self._lost)
            return reply

    def cancel(self) -> None:
        """Interrupt the running request, if there is one. Any thread may call this."""
        running = self._running_id
        with self._cancelling:
            if running is not None and self._cancel_fd >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._cancel_fd, f"{running}\n".encode())

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._stdin, view) :]
            except BlockingIOError:
                self._wait(self._writer, deadline)
            except OSError as error:
                raise ProcessLost(self._why_it_ended()) from error

    def _read_line(self, deadline: float) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            self._wait(self._reader, deadline)
            try:
                chunk = os.read(self._replies, _CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                raise ProcessLost(self._why_it_ended())
            self._buffer += chunk
            if len(self._buffer) > _LONGEST_REPLY:
                raise ProcessLost("the Lean process did not stop answering")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _wait(self, selector: selectors.BaseSelector, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not selector.select(left):
            raise ProcessLost("Lean did not answer in time and was ended")

    def _why_it_ended(self) -> str:
        if self._lost or self._child is None:
            return self._lost
        try:
            code = self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "the Lean process closed its output"
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_TAIL))
        said = self._stderr.read().decode("utf-8", "replace").strip()
        for line in said.splitlines():
            if "heap out of memory" in line or "Fatal" in line or line.startswith("Error"):
                return f"the Lean process ended with code {code}: {line.strip()}"
        return f"the Lean process ended with code {code}"

    def kill(self, reason: str = "closed") -> None:
        """End the process at once. Safe to call twice and from any thread.

        A request that runs in another thread meanwhile raises ProcessLost.
        """
        self._lost = self._lost or reason
        self._signal()
        with self._lock:
            self._release()

    def _end(self, reason: str) -> None:
        """End the process, in a thread that holds the lock."""
        self._lost = self._lost or reason
        self._signal()
        self._release()

    def _signal(self) -> None:
        if self._child is not None and self._child.returncode is None:
            proctree.kill(self._child.pid, self._marker)

    def _release(self) -> None:
        """Wait for the end and close the descriptors. No other thread uses them now."""
        with self._cancelling:
            self._cancel_fd = -1
        if self._child is not None:
            self._child.wait()
            if self._child.stdin is not None:
                with contextlib.suppress(OSError):
                    self._child.stdin.close()
        self._stack.close()
        _living.discard(self)


def hard_limit(timeout: float) -> float:
    """Return the seconds after which a process with a limit of `timeout` for Lean is killed."""
    return timeout * GRACE_FACTOR + GRACE_SECONDS


class RunningProcess(Protocol):
    """A Lean process that can be asked again while it is alive."""

    @property
    def alive(self) -> bool: ...

    @property
    def pid(self) -> int: ...

    @property
    def heap_bytes(self) -> int: ...

    def close(self) -> None: ...


L = TypeVar("L", bound=RunningProcess)


class RestartedProcess(Generic[L]):
    """One process, started when first needed and again after it was lost. Thread-safe."""

    def __init__(self, start: Callable[[], L]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: L | None = None

    def get(self) -> L:
        """Return the process; start it if it is not running."""
        with self._lock:
            if self._process is not None and not self._process.alive:
                self._process.close()
                self._process = None
            if self._process is None:
                self._process = self._start()
            return self._process

    def close(self) -> None:
        """End the process. A process that is being started meanwhile is not ended."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    @property
    def current(self) -> L | None:
        """The process, alive or not; None if none was started."""
        return self._process

    @property
    def pid(self) -> int | None:
        """The id of the process, or None if none was started."""
        return self._process.pid if self._process is not None else None

    @property
    def heap_bytes(self) -> int:
        """The size of its heap; 0 without a process."""
        return self._process.heap_bytes if self._process is not None else 0


_living: weakref.WeakSet[LeanProcess] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for process in list(_living):
        process.kill("the program ended")


def _explain_fatal(error: str) -> str:
    if found := _UNKNOWN_CODE.search(error):
        return f"{NO_CODE}: {found[1]}"
    if "bad_alloc" in error or ("memory" in error.lower() and "out of bounds" not in error):
        return "Lean ran out of its 2 GB of memory"
    return f"Lean crashed: {error.splitlines()[0][:200] if error else 'unknown'}"
