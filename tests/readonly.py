"""Directories that cannot be written, not even by root, and commands that obey permissions."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

_ABOVE_PERMISSIONS = "-dac_override,-dac_read_search,-fowner"


def bound_by_permissions(command: Sequence[str]) -> list[str]:
    """Return the command without the capability by which root ignores permissions."""
    if os.geteuid() != 0:
        return list(command)
    less = (f"--bounding-set={_ABOVE_PERMISSIONS}", f"--inh-caps={_ABOVE_PERMISSIONS}")
    return ["setpriv", *less, *command]


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Make a directory read-only; for root, mount it read-only."""
    if os.geteuid() != 0:
        mode = path.stat().st_mode
        path.chmod(0o555)
        try:
            yield
        finally:
            path.chmod(mode)
        return
    subprocess.run(["mount", "--bind", path, path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)
