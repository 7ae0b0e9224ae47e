"""Runs `treewright tree` in forked children that kill themselves at the n-th fault point.

A fault point is a durable write (fsync) or a git command. Forking from a process that
has everything imported makes one trial cost what its work costs. Prints one JSON line
a trial: the point, whether the child died there, and what a resumed run ended with.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from treewright.cli.main import cli
from treewright.tree.repository import git as git_module

RUN_ID = "run"


def arm(point: int) -> None:
    """From now on the point-th fault point is this process's last moment."""
    seen = 0
    real_fsync, real_run = os.fsync, git_module.subprocess.run

    def reached() -> None:
        nonlocal seen
        seen += 1
        if seen >= point:  # fsync may be called by threads
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(fd: int) -> None:
        reached()
        real_fsync(fd)

    def run(*args, **kwargs):
        reached()
        return real_run(*args, **kwargs)

    os.fsync = fsync
    git_module.subprocess.run = run


def invoke(arguments: list[str], point: int = 0) -> int:
    """Runs the command in a child; returns the wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 1)
        error_log = os.open(arguments[-1] + ".stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(error_log, 2)
        sys.argv = ["treewright", *arguments]
        if point:
            arm(point)
        cli.main(arguments, standalone_mode=False)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    template, work, first, step, *arguments = sys.argv[1:]
    point = int(first)
    while True:
        repo = Path(work) / f"at {point}"
        shutil.copytree(template, repo, symlinks=True)
        command = ["tree", *arguments, "--tree-run-id", RUN_ID, "--until-done", "--repo", str(repo)]
        died = os.WIFSIGNALED(invoke(command, point))
        resumed = os.waitstatus_to_exitcode(invoke(command))
        print(
            json.dumps({"point": point, "died": died, "resumed": resumed, "repo": str(repo)}),
            flush=True,
        )
        if not died:
            return
        point += int(step)


if __name__ == "__main__":
    assert subprocess is git_module.subprocess
    main()
