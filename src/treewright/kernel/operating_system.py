"""Features of the operating system that the core uses, and its limitations without them.

The core (tree search with threads, the library, reports, validation, dry runs, the dashboard,
`doctor`, `init`) runs on any system that has Python and git. The flags below are 0 where the
system does not know them. Each feature that exists only on POSIX or only on Linux stays in one
module with a fall-back: `proctree` and `watchdog` (ending whole process trees), `containment`
(cgroups, limits), `sandbox` (bubblewrap).
"""

from __future__ import annotations

import os

from treewright.kernel.errors import UsageError

IS_POSIX = os.name == "posix"

BINARY = getattr(os, "O_BINARY", 0)
"""Every `os.open` of a file needs it: without it Windows writes two bytes for a line end."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
NON_BLOCK = getattr(os, "O_NONBLOCK", 0)
CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)

CAN_SYNC_DIRECTORIES = hasattr(os, "O_DIRECTORY")
"""Windows opens no directory. A rename there is as durable as the file system makes it."""
CAN_WAIT_FOR_PIPES = IS_POSIX
"""Elsewhere a selector accepts only sockets, so a thread reads the pipe."""

WINDOWS_LIMITATIONS = (
    "limits on memory and file sizes are refused",
    "agents and sweeps cannot be isolated",
    "a command is ended at once, without a signal to end by itself",
    "directory entries are as durable as the file system makes them",
    "symbolic links in the place of a file are followed",
)


def require_posix(what: str) -> None:
    """Raise a UsageError that names WSL 2 unless this is a POSIX system."""
    if not IS_POSIX:
        raise UsageError(f"{what} needs a POSIX system; on Windows run it in WSL 2")


def shell(command: str) -> list[str] | str:
    """Return the arguments with which `Popen` runs a line of shell.

    On POSIX this is `sh -c`. Elsewhere it is the line itself, which needs `Popen(…, shell=True)`
    and goes to the shell of the system.
    """
    return ["/bin/sh", "-c", command] if IS_POSIX else command
