"""Run Treewright as on Windows, as far as a POSIX machine can pretend to be one.

    python -m tests.without_posix treewright ARGUMENTS...
    python -m tests.without_posix FILE ARGUMENTS...

Modules of Treewright get an `os`, a `signal` and so on without what only POSIX has, with the names
of Windows (`os.name`, `sys.platform`), and with its rules: an open file can be neither renamed nor
removed, a rename replaces nothing, directories cannot be opened, pipes cannot be waited for, and
a child gets neither descriptors nor a session. Other packages keep the real modules: they have
code of their own for Windows. What this cannot show is Windows itself: its paths, its git, its
shell and how it ends processes.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import pathlib
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Mapping
from typing import Any

_BLOCKED = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"}
_MISSING = {
    "os": {
        *("fork", "forkpty", "setsid", "setpgid", "getpgid", "getpgrp", "getsid", "killpg"),
        *("geteuid", "getuid", "getegid", "getgid", "getgroups", "getloadavg", "sysconf"),
        *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "register_at_fork", "nice"),
        *("statvfs", "pread", "pwrite", "fchmod", "fchown", "chown", "mkfifo", "mknod"),
        *("pidfd_open", "sched_getaffinity", "sched_yield", "environb", "getcwdb_", "uname"),
        *("WIFEXITED", "WEXITSTATUS", "WIFSIGNALED", "WTERMSIG", "WNOHANG", "wait3", "wait4"),
        *("fdatasync", "sync", "posix_fadvise", "posix_fallocate", "memfd_create"),
    },
    "signal": {
        *("SIGKILL", "SIGHUP", "SIGSTOP", "SIGCONT", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2"),
        *("SIGCHLD", "SIGALRM", "alarm", "setitimer", "pthread_sigmask", "sigwait", "pause"),
    },
    "socket": {"AF_UNIX", "SO_PEERCRED", "socketpair_", "send_fds", "recv_fds"},
    "select": {"PIPE_BUF", "poll", "epoll"},
}
_NOT_A_SOCKET = 10038


class _Module(types.ModuleType):
    """A module without some names, and with replacements of others."""

    def __init__(
        self, real: types.ModuleType, missing: set[str], instead: Mapping[str, Any]
    ) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _missing=missing, **instead)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_missing"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self.__dict__["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_real"], name, value)


def _open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
    assert "dir_fd" not in named, "dir_fd is not supported on Windows"
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    assert flags & _O_BINARY, f"{path}: without O_BINARY Windows writes \\r\\n for \\n"
    return os.open(path, flags & ~_O_BINARY, *rest, **named)


_O_BINARY = 0x8000


def _utime(path: Any, *rest: Any, **named: Any) -> None:
    if isinstance(path, int):
        raise TypeError("utime: path should be string, bytes or os.PathLike, not int")
    os.utime(path, *rest, **named)


def _kill(pid: int, number: int) -> None:
    assert number in (signal.SIGTERM, signal.SIGINT), f"os.kill with {number} on Windows"
    os.kill(pid, signal.SIGKILL)  # on Windows any number ends a process at once


class _Popen(subprocess.Popen[Any]):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        for name in ("pass_fds", "preexec_fn"):
            if options.get(name):
                raise ValueError(f"{name} is not supported on Windows platforms")
        options.pop("start_new_session", None)
        super().__init__(*arguments, **options)


def _run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
    assert not options.get("pass_fds")
    options.pop("start_new_session", None)
    return subprocess.run(*arguments, check=options.pop("check", False), **options)


class _Selector(selectors.SelectSelector):
    def register(self, fileobj: Any, *rest: Any, **named: Any) -> Any:
        if not isinstance(fileobj, socket.socket):
            raise OSError(_NOT_A_SOCKET, "an operation was attempted on something not a socket")
        return super().register(fileobj, *rest, **named)


def _refuse_open(path: Any) -> None:
    wanted = os.path.realpath(path)
    for descriptor in pathlib.Path("/proc/self/fd").iterdir():
        there = ""
        with contextlib.suppress(OSError):
            there = str(descriptor.readlink())
        if there == wanted:
            raise PermissionError(errno.EACCES, "used by this very process", str(path))


def _guard_files() -> None:
    """Apply the file rules of Windows, for calls from any module."""
    rename, replace, unlink = os.rename, os.replace, os.unlink

    def checked_rename(source: Any, target: Any, **named: Any) -> None:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "a rename replaces nothing", str(target))
        _refuse_open(source)
        rename(source, target, **named)

    def checked_replace(source: Any, target: Any, **named: Any) -> None:
        _refuse_open(source)
        _refuse_open(target)
        replace(source, target, **named)

    def checked_unlink(path: Any, **named: Any) -> None:
        if "dir_fd" not in named:
            _refuse_open(path)
        unlink(path, **named)

    os.rename, os.replace, os.unlink = checked_rename, checked_replace, checked_unlink
    os.remove = checked_unlink


def install() -> None:
    _guard_files()
    pathlib.os = os  # type: ignore[attr-defined]
    fds = {each for each in os.supports_fd if each not in (os.utime, os.chdir)}
    modules = {
        "os": _Module(
            os,
            _MISSING["os"],
            {
                "name": "nt",
                "open": _open,
                "utime": _utime,
                "kill": _kill,
                "supports_fd": fds,
                "supports_bytes_environ": False,
                "O_BINARY": _O_BINARY,
            },
        ),
        "sys": _Module(sys, set(), {"platform": "win32"}),
        "signal": _Module(signal, _MISSING["signal"], {}),
        "socket": _Module(socket, _MISSING["socket"], {}),
        "select": _Module(__import__("select"), _MISSING["select"], {}),
        "subprocess": _Module(subprocess, set(), {"Popen": _Popen, "run": _run}),
        "selectors": _Module(selectors, set(), {"DefaultSelector": _Selector}),
    }
    real = builtins.__import__

    def replaced(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        asking = (globals or {}).get("__name__", "")
        if level == 0 and asking.partition(".")[0] == "treewright":
            if name in _BLOCKED:
                raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
            if name in modules:
                return modules[name]
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = replaced


if __name__ == "__main__":
    install()
    del sys.argv[0]
    if sys.argv[0] == "treewright":
        from treewright.cli.main import main

        main()
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
