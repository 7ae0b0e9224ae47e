"""A command inside bubblewrap: what it can reach is what its command line lists.

It has a /tmp and processes of its own and no network unless given; every place else can be read,
written or neither, as a list of mounts says, of which a later one covers an earlier one. Its
processes end with bubblewrap, wherever they moved: they live in a namespace of their own.
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

SCRATCH = "/tmp"  # noqa: S108 (inside, where it is empty and the command's own)
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
"""What programs of the system need to start."""
_NO_FILE = "/dev/null"
_DEVICES = ("nvidia*", "dri", "kfd", "dxg")
"""Below /dev: processors for computing."""
_TRIAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A place inside, the same as outside. `hide` leaves an empty directory, or a file that
    cannot be read; a place that does not exist is left out."""

    access: Literal["read", "write", "hide"]
    path: Path


def require(what: str) -> str:
    """The program bwrap; a UsageError in which `what` needs it if it does not work here."""
    problem = why_not()
    if problem is not None:
        raise UsageError(f"{what} needs bubblewrap (the program bwrap), {problem}")
    return shutil.which("bwrap") or "bwrap"


def why_not() -> str | None:
    """What is wrong with bubblewrap on this machine; None if it works."""
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
    """What to put before a command. `base` can be read, where /tmp, /proc and /dev do not cover
    it; then come the mounts, in their order. `devices` are those that compute."""
    # Who is root here would otherwise be it inside too, and could mount all this anew.
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
    """Raises if the kernel forbids what bubblewrap does; a success is remembered."""
    done = subprocess.run(
        [
            program,
            "--unshare-all",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "true",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TRIAL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise UsageError(said[-1] if said else f"it ended with code {done.returncode}")
