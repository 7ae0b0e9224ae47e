"""Running a command to its end, in a session of its own, with a deadline and a limited log.

All descendants of the command end with it: at its end, after a timeout, after a cancellation, and
after a kill of this process, when the watchdog ends them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from treewright.kernel.operating_system import CAN_WAIT_FOR_PIPES, shell
from treewright.kernel.procs import proctree
from treewright.kernel.procs.cancellation import check
from treewright.kernel.procs.capped_log import CappedLog
from treewright.kernel.procs.containment import NO_LIMITS, Container, Limits, contain, plan_cgroup
from treewright.kernel.procs.watchdog import watchdog
from treewright.kernel.storage import untrusted

DEFAULT_LOG_BYTES = 4 * 1024 * 1024
DEFAULT_GRACE_SECONDS = 2.0
no_grace = threading.Event()
"""Set when this process must end at once: commands are then killed without a grace period."""
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""The errors of a machine that has no processes, memory or descriptors left for now."""
_CHUNK = 1 << 16
_FITS_INTO_A_PIPE = getattr(select, "PIPE_BUF", 512)
_TICK_SECONDS = 0.05
_CANCEL_TICK_SECONDS = 0.25
_DRAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The end of a command. `returncode` is None if it could not be started."""

    returncode: int | None
    seconds: float
    timed_out: bool = False
    cancelled: bool = False
    output_bytes: int = 0
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out and not self.cancelled

    def explain(self, name: str) -> str:
        """Return why the command, called `name`, did not succeed."""
        if self.error:
            return f"{name} could not start: {self.error}"
        if self.timed_out:
            return f"{name} was ended after {self.seconds:.1f} s: time limit"
        if self.cancelled:
            return f"{name} was cancelled after {self.seconds:.1f} s"
        return f"{name} exited with code {self.returncode}"


def run(
    command: str | Sequence[str],
    *,
    cwd: Path,
    log_path: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    owner: str = "",
    limits: Limits = NO_LIMITS,
    around: Sequence[str] = (),
    log_bytes: int = DEFAULT_LOG_BYTES,
    grace_seconds: float = DEFAULT_GRACE_SECONDS,
) -> ProcessResult:
    """Run a command and end everything that it started.

    Args:
        command: The arguments, or a line for the shell of the system.
        cwd: The working directory.
        log_path: The file for the output of the command.
        env: The environment; by default that of this process.
        stdin: The input of the command.
        timeout: Seconds after which the command is ended.
        cancel: Ends the command when it is set. Its `check`, if it has one, is called at the end.
        owner: The beginning of the marker in the environment of all descendants, by which a later
            process can find those that survived (`proctree.kill_marked`).
        limits: Limits on memory and file size.
        around: Arguments that run the command in a sandbox (`sandbox.command_line`).
        log_bytes: The largest size of the log.
        grace_seconds: Seconds between the signals to end and to kill.

    Returns:
        The end of the command.

    Raises:
        OSError: The machine has no process or memory left for the command.
        LeaseLost: `cancel` is a fence, and the run has another owner.
    """
    marker = f"{owner}:{secrets.token_hex(8)}"
    environment = proctree.with_marker(os.environ if env is None else env, marker)
    started = time.monotonic()
    with untrusted.create(log_path) as log_file, contextlib.ExitStack() as stack:
        log = CappedLog(_unbuffered(log_file), log_bytes)
        stack.callback(log.finish)
        argv = shell(command) if isinstance(command, str) else list(command)
        if not isinstance(argv, str):
            if not _can_start(argv[0], cwd, environment):
                return ProcessResult(None, 0.0, error=f"no such program: {argv[0]}")
            argv = [*around, *argv]
        cgroup = plan_cgroup()
        stack.enter_context(watchdog.expecting(marker, cgroup))
        container = stack.enter_context(contain(limits, cgroup))
        try:
            child = subprocess.Popen(
                argv if isinstance(argv, str) else container.wrap(argv),
                shell=isinstance(argv, str),
                cwd=cwd,
                env=environment,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return ProcessResult(None, 0.0, error=f"{error.strerror}: {error.filename}")
        reader = None if CAN_WAIT_FOR_PIPES else _reader(child, log)
        stack.callback(_close, child)
        try:
            # Inside `try`: if the watchdog cannot be started, the child runs already.
            stack.enter_context(watchdog.guarding(child.pid, marker, container.cgroup))
            if stdin:
                _feed(child, stdin)
            deadline = started + timeout if timeout is not None else None
            if reader is None:
                reason = _pump(child, log, deadline, cancel)
            else:
                reason = _wait(child, deadline, cancel)
            check(cancel)
        except BaseException:
            container.kill()
            proctree.kill(child.pid, marker)
            child.wait()
            raise
        _end_all(child, marker, container, grace_seconds if reason else 0.0)
        child.wait()
        if reader is None:
            _drain(child, log)
        else:
            reader.join(_DRAIN_SECONDS)
        return ProcessResult(
            returncode=child.returncode,
            seconds=time.monotonic() - started,
            timed_out=reason == "timeout",
            cancelled=reason == "cancel",
            output_bytes=log.seen,
        )


def _end_all(
    child: subprocess.Popen[bytes], marker: str, container: Container, grace_seconds: float
) -> None:
    """End the descendants that are left.

    After a command that ended by itself its cgroup contains all of them, so /proc is searched for
    the marker only if there is no cgroup.
    """
    if container.cgroup is None or grace_seconds:
        proctree.end(child.pid, marker, grace_seconds, no_grace.is_set)
    container.kill()


def _can_start(program: str, cwd: Path, environment: Mapping[str, str]) -> bool:
    """Return whether the program exists, before the shell around it reports it less clearly."""
    if os.path.dirname(program):  # noqa: PTH120 - also the other separator of Windows
        return os.access(cwd / program, os.X_OK)
    return shutil.which(program, path=environment.get("PATH")) is not None


def _unbuffered(file: BinaryIO) -> Callable[[bytes], object]:
    """Return a function that writes and flushes, so that a user can follow the log."""

    def write(data: bytes) -> None:
        file.write(data)
        file.flush()

    return write


def _pump(
    child: subprocess.Popen[bytes],
    log: CappedLog,
    deadline: float | None,
    cancel: threading.Event | None,
) -> str:
    """Copy output until the child ends; return `timeout` or `cancel` if it must be ended early."""
    assert child.stdout is not None
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(child.stdout, selectors.EVENT_READ)
        ended = _end_descriptor(child)
        if ended is not None:
            stack.callback(os.close, ended)
            selector.register(ended, selectors.EVENT_READ)
        open_pipe = True
        while True:
            left = _TICK_SECONDS if ended is None else _CANCEL_TICK_SECONDS if cancel else 3600.0
            if deadline is not None:
                left = min(left, deadline - time.monotonic())
                if left <= 0:
                    return "timeout"
            if cancel is not None and cancel.is_set():
                return "cancel"
            for key, _ in selector.select(left):
                if key.fileobj is child.stdout:
                    chunk = os.read(child.stdout.fileno(), _CHUNK)
                    if chunk:
                        log.feed(chunk)
                    else:
                        selector.unregister(child.stdout)
                        open_pipe = False
            if child.poll() is not None:
                return ""
            if not open_pipe and ended is None:
                time.sleep(_TICK_SECONDS)


def _reader(child: subprocess.Popen[bytes], log: CappedLog) -> threading.Thread:
    """Start a thread that copies output, on systems with selectors that accept no pipes.

    The thread also closes the pipe: a close by another thread would block while it reads.
    """

    def copy() -> None:
        assert child.stdout is not None
        with contextlib.suppress(OSError, ValueError), child.stdout as pipe:
            while chunk := os.read(pipe.fileno(), _CHUNK):
                log.feed(chunk)  # a ValueError if a survivor writes after the log was closed

    reader = threading.Thread(target=copy, name="process-output", daemon=True)
    reader.start()
    return reader


def _wait(
    child: subprocess.Popen[bytes], deadline: float | None, cancel: threading.Event | None
) -> str:
    """Wait until the child ends; return `timeout` or `cancel` if it must be ended early."""
    while True:
        if deadline is not None and time.monotonic() >= deadline:
            return "timeout"
        if cancel is not None and cancel.is_set():
            return "cancel"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TICK_SECONDS)
            return ""


def _end_descriptor(child: subprocess.Popen[bytes]) -> int | None:
    """Return a descriptor that becomes readable at the child's end; None if there is none."""
    try:
        return os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        return None


def _feed(child: subprocess.Popen[bytes], data: bytes) -> None:
    """Write the input of a command.

    The part that fits into the pipe is written at once, so that a short input, such as a key, is
    complete before a failure of this process. A thread writes the rest. A command may leave its
    input unread.
    """
    pipe = child.stdin
    assert pipe is not None
    with contextlib.suppress(BrokenPipeError):
        data = data[os.write(pipe.fileno(), data[:_FITS_INTO_A_PIPE]) :]
    if not data:
        pipe.close()
        return

    def write() -> None:
        with contextlib.suppress(OSError), pipe:
            pipe.write(data)

    threading.Thread(target=write, name="process-stdin", daemon=True).start()


def _drain(child: subprocess.Popen[bytes], log: CappedLog) -> None:
    """Read the rest of the pipe after all processes that could write to it have ended."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while time.monotonic() < deadline:
        try:
            chunk = os.read(child.stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            return
        log.feed(chunk)


def _close(child: subprocess.Popen[bytes]) -> None:
    for stream in (child.stdout if CAN_WAIT_FOR_PIPES else None, child.stdin):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
