"""Run a command while other processes use every core: `python -m tests.busy COMMAND…`.

A test that fails on a busy machine shows a bug, in the test or in the program."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys


def spin(parent: int) -> None:
    """Keep a core busy as long as the parent lives."""
    while os.getppid() == parent:
        sum(range(10_000))


def main(command: list[str]) -> int:
    others = [
        multiprocessing.Process(target=spin, args=(os.getpid(),), daemon=True)
        for _ in range(os.cpu_count() or 2)
    ]
    for process in others:
        process.start()
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in others:
            process.kill()
            process.join()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
