"""Commands inside bubblewrap, which can reach only the paths that their mounts list.

A command has a private /tmp, a private process namespace, and no network unless the caller allows
it. Mounts say which other paths can be read or written; a later mount covers an earlier one. All
processes of the command end with bubblewrap, because they cannot leave the namespace.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from treewright.kernel.errors import UsageError

SCRATCH = "/tmp"  # noqa: S108 (a private directory inside the sandbox)
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
"""The paths that programs of the system need to start."""
_NO_FILE = "/dev/null"
_DEVICES = ("nvidia*", "dri", "kfd", "dxg")
"""The devices below /dev that compute."""
_TRIAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A path inside the sandbox, the same as outside. A path that does not exist is left out.

    `hide` shows an empty directory instead, or a file that cannot be read.
    """

    access: Literal["read", "write", "hide"]
    path: Path


def require(what: str) -> str:
    """Return the path of bwrap; raise UsageError, naming `what` needs it, if it does not work."""
    problem = find_problem()
    if problem is not None:
        raise UsageError(f"{what} needs bubblewrap (the program bwrap), {problem}")
    return shutil.which("bwrap") or "bwrap"


def find_problem() -> str | None:
    """Return why bubblewrap does not work on this machine; None if it works."""
    found = shutil.which("bwrap")
    if found is None:
        return "which is not installed"
    try:
        _try(found)
    except (OSError, subprocess.SubprocessError, UsageError) as error:
        return f"which does not work here: {error}"
    return None


def command_line(
    base: Iterable[str],
    mounts: Iterable[Mount],
    directory: Path,
    *,
    network: bool = False,
    devices: bool = False,
    what: str = "this",
) -> list[str]:
    """Return the arguments to put before a command, which run it in a sandbox.

    Args:
        base: Paths that can be read; /tmp, /proc and /dev cover them.
        mounts: Further paths, in the order of mounting.
        directory: The working directory.
        network: Whether the command has the network.
        devices: Whether the command has the devices that compute.
        what: The word for the command in the error message.

    Raises:
        UsageError: bubblewrap does not work on this machine.
    """
    # Root outside would be root inside too, and could change the mounts.
    command = [require(what), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    if network:
        command.append("--share-net")
    for path in base:
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", SCRATCH]
    if devices:
        for found in (each for name in _DEVICES for each in Path("/dev").glob(name)):
            command += ["--dev-bind-try", str(found), str(found)]
    empty: dict[str, None] = {}
    for mount in mounts:
        path = str(mount.path)
        if mount.access == "read":
            command += ["--ro-bind-try", path, path]
        elif mount.access == "write":
            command += ["--bind-try", path, path]
        elif mount.path.is_dir():
            command += ["--tmpfs", path]
            empty[path] = None
        elif mount.path.exists():
            command += ["--ro-bind", _NO_FILE, path]
    for path in empty:
        command += ["--remount-ro", path]
    return [*command, "--remount-ro", "/", "--chdir", str(directory), "--"]


@cache
def _try(program: str) -> None:
    """Raise if the kernel does not let bubblewrap work. A success is cached."""
    done = subprocess.run(
        [
            program,
            *["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TRIAL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise UsageError(lines[-1] if lines else f"it ended with code {done.returncode}")
