"""Several processes steer a run at the same time, and are killed between any two of their steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.toy import ToyRepository
from treewright.tree.records import layout
from treewright.tree.records.model import Manifest, Unset
from treewright.tree.records.steering import Steering, new_command
from treewright.tree.run import command_files
from treewright.tree.run.command_files import CommandFile
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate

SHAPE = Shape(
    sweep_config_limit=8, ideas_per_node=1, max_depth=3, stop_on_empty_frontier=False, dry_run=True
)


def forked(work: Callable[[], None]) -> int:
    """Call a function in a child process."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opened(toy: ToyRepository) -> Any:
    return open_run(RunRequest(toy.path, "run", shape=SHAPE, preflight=False))


def records(manifest: Manifest) -> list[Steering]:
    return [] if isinstance(manifest.steering, Unset) else manifest.steering


def test_concurrent_commands_are_applied_once_each(toy: ToyRepository) -> None:
    """Three processes submit commands while the owner polls; `steering/` does not exist at the
    start."""
    each = 12
    begun, begin = os.pipe()

    def ask(who: int) -> None:
        os.close(begin)
        os.read(begun, 1)  # releases all of them at once
        for number in range(each):
            command = new_command("ban", pattern=f"idea {number} of {who}")
            command_files.submit(toy.run_dir("run"), CommandFile(command))

    with opened(toy) as coordinator:
        people = [forked(lambda who=who: ask(who)) for who in range(3)]
        os.close(begin)
        waiting = set(people)
        while waiting:
            coordinator.apply_commands()
            waiting -= {child for child in waiting if os.waitpid(child, os.WNOHANG)[0]}
        os.close(begun)
        while coordinator.advance():
            pass
        found = [record.command.pattern or "" for record in records(coordinator.manifest)]
    assert sorted(found) == sorted(f"idea {n} of {who}" for n in range(each) for who in range(3))
    for who in range(3):
        assert [p for p in found if p.endswith(str(who))] == [
            f"idea {number} of {who}" for number in range(each)
        ], "in the order in which they were asked for"
    assert list((toy.run_dir("run") / layout.STEERING).iterdir()) == []
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_kill_during_steering_submits_the_command_completely_or_not_at_all(
    toy: ToyRepository,
) -> None:
    with opened(toy):
        pass
    place = toy.run_dir("run") / layout.STEERING
    for point in (0, 0, 1):  # fault points: the directory, the text, its name
        assert ended(forked(lambda point=point: _killed_at(point, toy.run_dir("run")))) < 0
    assert ended(forked(lambda: _killed_at(2, toy.run_dir("run")))) == 0
    half = [path for path in place.iterdir() if path.suffix != ".json"]
    assert len(half) == 1, "one was killed before its command had a name"
    with opened(toy) as coordinator:
        coordinator.advance()
        assert len(records(coordinator.manifest)) == 2, "the last, and one with a name"
    assert list(place.iterdir()) == half, "somebody may be writing it"
    os.utime(half[0], (0, 0))
    with opened(toy):
        assert list(place.iterdir()) == []
    assert validate(toy.run_dir("run"), toy.path) == []


def _killed_at(point: int, run_dir: Path) -> None:
    seen, real = 0, os.fsync

    def fsync(fd: int) -> None:
        nonlocal seen
        if seen == point:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1
        real(fd)

    os.fsync = fsync
    command_files.submit(run_dir, CommandFile(new_command("ban", pattern="nothing like it")))
