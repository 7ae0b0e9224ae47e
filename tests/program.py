"""`treewright` in a child process, without the half second that a start of Python takes.

`start_module` does the same for modules of its dependencies.

One process has imported the program and waits (`python -m tests.program`); it forks for every call,
and the fork becomes a child of the test process (which is a `subreaper`: it inherits the fork when
the process between has ended). So every feature of `subprocess` works: signals, pipes, waiting, a
session. Where the system cannot do that, or a call needs a fresh interpreter, Python is started."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.signals import as_from_a_terminal, as_python_from_a_terminal
from treewright.kernel.executors import backends

_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_AS_USER = ("group", "extra_groups")  # the fork sets these itself, with the user
_PACKAGES = ("treewright.cli", "treewright.tree", "treewright.dashboard")
_TAKE_LONG = (
    "distributed", "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "uvicorn"
)  # fmt: skip
_LONGEST_REQUEST = 1 << 20


def start(arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start `treewright` with these arguments as `subprocess.Popen` would."""
    new = set(options.get("env") or ()) - set(os.environ)
    fresh = any(name.startswith("PYTHON") for name in new) or "preexec_fn" in options
    if fresh or _waiting() is None:
        options.setdefault("preexec_fn", as_from_a_terminal)
        return subprocess.Popen([sys.executable, "-m", "treewright", *arguments], **options)
    return _Forked(list(arguments), **options)


def start_module(
    module: str, arguments: Sequence[str], *, covered: Path | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Start `python -m module` as `subprocess.Popen` would; an empty directory covers `covered`."""
    fresh = any(name.startswith("PYTHON") for name in options["env"])
    if fresh or _waiting() is None:
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(covering(covered, command), **options)
    user = options.pop("user", None)
    options = {name: value for name, value in options.items() if name not in _AS_USER}
    more = {"module": module, "user": user, "covered": covered and str(covered)}
    return _Forked(list(arguments), more, **options)


def covering(path: Path | None, command: list[str]) -> list[str]:
    """Return the command with an empty directory covering `path`."""
    if path is None:
        return command
    script = 'mount -t tmpfs none "$1" && shift && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", str(path), *command]


def run(
    arguments: Sequence[str], *, input: str | None = None, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `treewright` as `subprocess.run` would, with its output as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if input is not None:
        pipes["stdin"] = subprocess.PIPE
    with start(arguments, **pipes, **options) as child:
        try:
            out, err = child.communicate(input, timeout=timeout)
        except BaseException:
            child.kill()
            raise
    return subprocess.CompletedProcess(list(arguments), child.returncode, out, err)


class _Forked(subprocess.Popen[Any]):
    """A Popen with a child that was forked elsewhere and adopted."""

    def __init__(
        self, arguments: list[str], more: dict[str, Any] | None = None, **options: Any
    ) -> None:
        self._more = {"module": "treewright", "user": None, "covered": None} | (more or {})
        super().__init__(arguments, **options)

    def _execute_child(self, *values: Any) -> None:
        given = inspect.signature(super()._execute_child).bind(*values).arguments  # pyright: ignore[reportAttributeAccessIssue]
        unused = {"pass_fds": (), "shell": False, "gid": None, "uid": None}
        assert all(given[name] == value for name, value in unused.items()), given
        theirs = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = {
            "arguments": given["args"],
            "cwd": os.path.abspath(given["cwd"] or "."),  # noqa: PTH100
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "umask": given["umask"],
            "session": bool(given["start_new_session"]),
            **self._more,
        }
        connection = _waiting()
        assert connection is not None
        _be_subreaper(True)
        try:
            streams = [at if fd == -1 else fd for at, fd in enumerate(theirs)]
            socket.send_fds(connection, [json.dumps(request).encode()], streams)
            self.pid = int(connection.recv(32))
        finally:
            _be_subreaper(False)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # pyright: ignore[reportAttributeAccessIssue]


def _be_subreaper(whether: bool) -> None:
    done = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)
    assert done == 0


@functools.cache
def _waiting() -> socket.socket | None:
    """Return the connection to the waiting process; each test process has one."""
    if not sys.platform.startswith("linux"):
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST_REQUEST)
    with theirs:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.program", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": "1",
            },  # the process that forks has one thread
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        child.wait()

    atexit.register(end)
    return ours


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for every request; a fork returns its request, the process itself returns at the end."""
    while True:
        data, streams, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, 3)
        if not data:
            return None
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child:
                os.write(tell, str(child).encode())
                os._exit(0)
            os.close(told)
            os.close(tell)
            connection.close()
            for at, fd in enumerate(streams):
                os.dup2(fd, at)
            for fd in set(streams) - {0, 1, 2}:
                os.close(fd)
            return json.loads(data)
        os.close(tell)
        for fd in streams:
            os.close(fd)
        os.waitpid(between, 0)
        connection.send(os.read(told, 32))
        os.close(told)


def _become(request: dict[str, Any]) -> None:
    as_python_from_a_terminal()
    if request["session"]:
        os.setsid()
    if request["umask"] != -1:
        os.umask(request["umask"])
    if request["covered"] is not None:
        _cover(request["covered"])
    if request["user"] is not None:
        os.setgroups([])
        os.setgid(request["user"])
        os.setuid(request["user"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = [request["module"], *request["arguments"]]
    if request["module"].startswith("distributed."):
        importlib.import_module("dask.config").refresh()  # the module has read another environment
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        # The steps at the end of a program, without the destruction of every imported module.
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))


def _cover(path: str) -> None:
    """From now on an empty directory covers the path, for this process and its children."""
    system = ctypes.CDLL(None, use_errno=True)
    for done in (
        system.unshare(_CLONE_NEWNS),
        system.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None),
        system.mount(b"none", os.fsencode(path), b"tmpfs", 0, None),
    ):
        if done != 0:
            raise OSError(ctypes.get_errno(), f"cannot cover {path}")


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in _TAKE_LONG:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            with contextlib.suppress(
                ImportError
            ):  # the module belongs to an extra that is not installed
                importlib.import_module(found.name)
    backends.BACKENDS.names()  # every process computes the list of plug-ins once
    gc.freeze()  # garbage collection must not touch memory that is shared with the forks
    request = _serve(connection)
    if request is not None:
        _become(request)


if __name__ == "__main__":
    main()
