"""Kills `treewright tree` at every fault point of a run, and continues from each death.

A fault point is a durable write (fsync) or a git command. One run is enough for all of
them: the process that reaches a point forks, dies there by SIGKILL, and its child goes on
to the next one. What every dead process left is kept aside; afterwards each is put back
in its place and continued by the same command. All are forks of a process that has
everything imported, so a trial costs what its work costs.

Prints one JSON line for the undisturbed run, one a death, and one for the last of the
forked, which ran through.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from treewright.cli.main import cli
from treewright.kernel import atomic
from treewright.tree.repository import git as git_module
from treewright.tree.running import steady

RUN_ID = "run"


class OneAtATime:
    """In place of a pool of threads: a fork keeps only the thread that forks."""

    def __init__(self, workers: int) -> None:
        pass

    def __enter__(self) -> OneAtATime:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)


class AtOnce(threading.Thread):
    """In place of a thread: does its work when it is started."""

    def start(self) -> None:
        self.run()

    def join(self, timeout: float | None = None) -> None:
        pass


def die_at_every(step: int, first: int, repo: Path, kept: Path) -> None:
    """From now on this process dies at the first of its fault points, its child at the next."""
    seen = 0
    real_fsync, real_run = os.fsync, git_module.subprocess.run

    def reached() -> None:
        nonlocal seen
        assert threading.current_thread() is threading.main_thread()
        seen += 1
        if seen % step == first % step:
            real_run(["cp", "-a", str(repo), str(kept / str(seen))], check=True)
            if os.fork():
                os.kill(os.getpid(), signal.SIGKILL)

    def fsync(fd: int) -> None:
        reached()
        real_fsync(fd)

    def run(*args, **kwargs):
        reached()
        return real_run(*args, **kwargs)

    os.fsync = fsync
    git_module.subprocess.run = run
    atomic.ThreadPoolExecutor = OneAtATime
    steady.Thread = AtOnce


def invoke(arguments: list[str], log: Path, before: Callable[[], None] = lambda: None) -> str:
    """Runs the command in a child and waits for it and all its forks.

    Returns what the last of them did: nothing if it was killed, else `0` or `1` and the
    modules it had loaded.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        with os.fdopen(ours) as said:
            answer = said.read()  # ends when no process has the other end any more
        os.waitpid(child, 0)
        return answer
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["treewright", *arguments]
        before()
        cli.main(arguments, standalone_mode=False)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os.write(theirs, " ".join([str(code), *sorted(sys.modules)]).encode())
    os._exit(code)


def main() -> None:
    template, work, first, step, *flags = sys.argv[1:]
    place = Path(work)
    repo, kept, log = place / "target repo", place / "kept", place / "stderr"
    kept.mkdir(parents=True)
    command = ["tree", *flags, "--tree-run-id", RUN_ID, "--until-done", "--repo", str(repo)]

    def report(what: str, answer: str, finished: Path) -> None:
        told = {"what": what, "ok": answer.startswith("0"), "repo": str(finished)}
        print(json.dumps(told | {"log": log.read_text()}), flush=True)
        sys.stdin.readline()  # the repository is looked at while it is in its place
        shutil.rmtree(finished)

    shutil.copytree(template, repo, symlinks=True)
    undisturbed = invoke(command, log)
    for module in undisturbed.split()[1:]:
        importlib.import_module(module)
    gc.freeze()  # what is shared with the forks is not to be touched by collecting garbage
    report("undisturbed", undisturbed, repo)
    shutil.copytree(template, repo, symlinks=True)
    through = invoke(command, log, lambda: die_at_every(int(step), int(first), repo, kept))
    report("through", through, repo)
    for death in sorted(kept.iterdir(), key=lambda path: int(path.name)):
        death.rename(repo)
        report(death.name, invoke(command, log), repo)


if __name__ == "__main__":
    assert subprocess is git_module.subprocess
    main()
