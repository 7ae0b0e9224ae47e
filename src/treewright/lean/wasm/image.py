"""Making the image that every Lean starts from; see runtime/image.js."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.wasm import launch
from treewright.lean.wasm.home import LeanHome

_SECONDS = 300.0


class ImageError(TreewrightError):
    """Lean could not be started for its image."""


def make_image(home: LeanHome, target: Path) -> None:
    """Starts the Lean of a home without an image and has it write one."""
    with target.open("wb") as file:
        descriptor = file.fileno()
        try:
            done = subprocess.run(
                launch.command(home, ("--require", str(launch.RUNTIME / "reproducible.js"))),
                cwd="/",
                env={**launch.environment(None), "TREEWRIGHT_IMAGE_FD": str(descriptor)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=(descriptor,),
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ImageError(f"cannot start Lean once for its image: {error}") from error
        if done.returncode != 0 or file.seek(0, os.SEEK_END) == 0:
            said = [line for line in done.stderr.splitlines() if "Error" in line]
            why = said[0].strip() if said else f"code {done.returncode}"
            raise ImageError(f"Lean ended before its image was made: {why}")
        os.fsync(descriptor)
