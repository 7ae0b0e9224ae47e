"""The Node command line and environment of a bundled Lean, and its memory image.

The environment is empty but for the listed variables. Node's permission model lets the process read
the Lean installation and the runtime, and start its watchdog thread.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from treewright.kernel.errors import TreewrightError
from treewright.lean.hosts.host import with_stack

if TYPE_CHECKING:
    from treewright.lean.hosts.wasm.home import LeanHome

RUNTIME = Path(__file__).resolve().parent / "runtime"
JS_HEAP_MEGABYTES = 512
_NODE_STACK_KILOBYTES = 240_000
_TIERING_BUDGET = 1_000_000_000
"""How much of a function is run before Node compiles it once more, for speed: about a second of it.
By default it is a hundredth of that, and half of the processor time of a first check is such
compiling, of functions that are hardly used again."""


def node_flags(home: LeanHome) -> list[str]:
    """Return Node's flags. With the permission model on, every other access is refused."""
    return [
        f"--stack-size={_NODE_STACK_KILOBYTES}",
        f"--max-old-space-size={JS_HEAP_MEGABYTES}",
        "--no-warnings",
        # The file's hash is known: validate functions when they are called.
        "--wasm-lazy-validation",
        f"--wasm-tiering-budget={_TIERING_BUDGET}",
        "--no-wasm-inlining",  # for it, functions count their calls until compiled again
        "--permission",
        "--allow-worker",
        f"--allow-fs-read={home.path}",
        f"--allow-fs-read={RUNTIME}",
    ]


def command(home: LeanHome, more_flags: Sequence[str] = ()) -> list[str]:
    node = [str(home.node), *node_flags(home), *more_flags]
    return with_stack([*node, str(home.path / "lean.js"), "treewright-session.lean"])


def environment(image: Path | None) -> dict[str, str]:
    """Return the environment of a Lean process; `image` is the memory image that it starts from."""
    return {
        "PATH": "/usr/bin:/bin",
        "TREEWRIGHT_RUNTIME": str(RUNTIME),
        "TREEWRIGHT_IMAGE": "" if image is None else str(image),
    }


_IMAGE_SECONDS = 300.0


class ImageError(TreewrightError):
    """Lean could not be started for its image."""


def make_image(home: LeanHome, target: Path) -> None:
    """Starts the Lean of a home without an image and has it write one."""
    with target.open("wb") as file:
        descriptor = file.fileno()
        try:
            done = subprocess.run(
                command(home, ("--require", str(RUNTIME / "reproducible.js"))),
                cwd="/",
                env={**environment(None), "TREEWRIGHT_IMAGE_FD": str(descriptor)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=(descriptor,),
                timeout=_IMAGE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ImageError(f"cannot start Lean once for its image: {error}") from error
        if done.returncode != 0 or file.seek(0, os.SEEK_END) == 0:
            said = [line for line in done.stderr.splitlines() if "Error" in line]
            why = said[0].strip() if said else f"code {done.returncode}"
            raise ImageError(f"Lean ended before its image was made: {why}")
        os.fsync(descriptor)
