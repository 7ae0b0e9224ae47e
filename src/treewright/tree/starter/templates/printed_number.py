"""The part of the sweep that is different for a command that prints a number: one config, which is
the command. Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = CODE = Path()
COMMAND = PATTERN = METRIC = ""
LONGEST_ANSWER = 16 << 20

# -- the task -----------------------------------------------------------------------------


def question(config_id: int, seed: int) -> object:
    """One config; the command chooses its own inputs."""
    return {"command": COMMAND}


def answer(asked: object) -> object:
    """Run the command in the directory of the code; return its output and its time."""
    started = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", asked["command"]],  # type: ignore[index]
        cwd=CODE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    seconds = time.monotonic() - started
    printed = done.stdout[-LONGEST_ANSWER // 8 :].decode("utf-8", "replace")
    # Models read this: the end of the sweep's log is part of their prompts.
    print(printed[-4000:])
    return {"code": done.returncode, "printed": printed, "seconds": seconds}


def judge(asked: object, answered: object) -> dict[str, float]:
    """Return the last number that the pattern finds."""
    import re

    if not isinstance(answered, dict):
        raise TypeError("the command was not run")
    if answered["code"] != 0:
        raise ValueError(f"`{COMMAND}` ended with code {answered['code']}")
    found = [*re.finditer(PATTERN, str(answered["printed"]).replace("\r", "\n"))]
    if not found:
        raise ValueError(f"`{COMMAND}` printed nothing that matches {PATTERN!r}")
    number = found[-1][1] if found[-1].re.groups else found[-1][0]
    print(f"{METRIC}: {number} after {answered['seconds']:.1f} s", file=sys.stderr)
    return {METRIC: float(number), "seconds": float(answered["seconds"])}
