"""Kill `treewright tree` at every fault point of a run, and continue from each death.

A fault point is a durable write (fsync), a git command, or a change of git's worktree record by the
program. One run covers all of them: the process that reaches a point forks, dies there by SIGKILL,
and its child continues to the next point. The files that each dead process left are kept;
afterwards each set is restored and continued by the same command. A death that left every byte as
the one before it (only a reading git command was between them) is the same trial, and is continued
once. All processes are forks of one that has imported every module, so a trial costs only its own
work.

Commands that run before the killed one, such as the run that it extends, precede `--then`; with
`--one-depth` the killed command is a search of one depth, as without `--until-done`, with
`--tree-run-id` that of another run.

The driver prints one JSON line for the undisturbed run, one per death, and one for the last fork,
which ran to the end."""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from treewright.cli.main import cli
from treewright.kernel.executors import backends
from treewright.kernel.storage import atomic
from treewright.tree import config as configuration
from treewright.tree.records import layout, store
from treewright.tree.repository import git as git_module
from treewright.tree.repository import worktree_records
from treewright.tree.run import ideas_ahead, tree_search

RUN_ID = "run"
ONE_DEPTH = "--one-depth"


class OneAtATime:
    """Replaces a thread pool: a fork keeps only the thread that forks."""

    def __init__(self, workers: int) -> None:
        pass

    def __enter__(self) -> OneAtATime:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)


class AtOnce(threading.Thread):
    """Replaces a thread: does its work when it is started."""

    def start(self) -> None:
        self.run()

    def join(self, timeout: float | None = None) -> None:
        pass


def contents(directory: Path) -> bytes:
    """Return a hash of all names, modes, links and bytes below a directory.

    It is computed at every fault point, and so without `Path`, which would take as long as all the
    rest."""
    found = hashlib.sha256()
    pending = [os.fsencode(directory)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                mode = entry.stat(follow_symlinks=False).st_mode
                found.update(b"%s\0%d\0" % (entry.path, mode))
                if stat.S_ISLNK(mode):
                    found.update(os.readlink(entry.path))  # noqa: PTH115
                elif stat.S_ISREG(mode):
                    with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123
                        found.update(hashlib.sha256(file.read()).digest())
                elif stat.S_ISDIR(mode):
                    pending.append(entry.path)
    return found.digest()


def die_at_every(step: int, repo: Path, kept: Path) -> None:
    """From now on this process dies at its fault point number `step`, and its child one step
    later."""
    seen = 0
    left_before = b""
    real_fsync, real_run = os.fsync, git_module.subprocess.run
    real_remove = worktree_records._remove

    def reached() -> None:
        nonlocal seen, left_before
        assert threading.current_thread() is threading.main_thread()
        left = contents(repo)
        if left == left_before:
            return
        left_before = left
        seen += 1
        if seen % step == 0:
            real_run(["cp", "-a", str(repo), str(kept / str(seen))], check=True)
            if os.fork():
                os.kill(os.getpid(), signal.SIGKILL)

    def fsync(fd: int) -> None:
        reached()
        real_fsync(fd)

    def run(*args, **kwargs):
        reached()
        return real_run(*args, **kwargs)

    def remove(record: Path) -> None:
        reached()  # git's record of a worktree is removed without git
        real_remove(record)

    os.fsync = fsync
    git_module.subprocess.run = run
    worktree_records._remove = remove
    atomic.ThreadPoolExecutor = OneAtATime
    ideas_ahead.Thread = AtOnce
    # Ideas for several nodes are there before any of them is recorded.
    tree_search.RunParts.generations_at_once = lambda _: 3


def invoke(arguments: list[str], log: Path, before: Callable[[], None] = lambda: None) -> str:
    """Run the command in a child and wait for the child and all its forks.

    Returns the result of the last of them: None if it was killed, else `0` or `1` and the modules
    that it had loaded."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        with os.fdopen(ours) as said:
            answer = said.read()  # the read ends when no process holds the other end
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


def _parts(flags: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for flag in flags:
        if flag == "--then":
            parts.append([])
        else:
            parts[-1].append(flag)
    return parts


def _command(part: list[str], repo: Path) -> list[str]:
    if part[:1] == ["steer"]:
        return [*part, "--repo", str(repo)]
    to_the_end = [flag for flag in part if flag != ONE_DEPTH]
    until = ["--until-done"] if to_the_end == part else []
    run_id = [] if "--tree-run-id" in part else ["--tree-run-id", RUN_ID]
    return ["tree", *to_the_end, *run_id, *until, "--repo", str(repo)]


def main() -> None:
    template, work, step, *flags = sys.argv[1:]
    place = Path(work)
    repo, kept, log = place / "target repo", place / "kept", place / "stderr"
    kept.mkdir(parents=True)
    *before, command = [_command(part, repo) for part in _parts(flags)]

    def start_over() -> None:
        shutil.copytree(template, repo, symlinks=True)
        for first_command in before:
            assert invoke(first_command, log).startswith("0"), log.read_text()

    def report(what: str, answer: str, finished: Path) -> None:
        told = {"what": what, "ok": answer.startswith("0"), "repo": str(finished)}
        print(json.dumps(told | {"log": log.read_text()}), flush=True)
        sys.stdin.readline()  # the repository is inspected at its real path
        shutil.rmtree(finished)

    start_over()
    undisturbed = invoke(command, log)
    for module in undisturbed.split()[1:]:
        importlib.import_module(module)
    # Every process computes these once: the list of plug-ins, the decoders of records.
    backends.BACKENDS.names()
    configuration.load(repo / configuration.DEFAULT_NAME)
    store.load(layout.runs_directory(repo) / RUN_ID)
    gc.freeze()  # garbage collection must not touch memory that the forks share
    report("undisturbed", undisturbed, repo)
    start_over()
    through = invoke(command, log, lambda: die_at_every(int(step), repo, kept))
    report("through", through, repo)
    for death in sorted(kept.iterdir(), key=lambda path: int(path.name)):
        death.rename(repo)
        report(death.name, invoke(command, log), repo)


if __name__ == "__main__":
    assert subprocess is git_module.subprocess
    sys.exit(main())
