"""Locks of files: one holder, released when it ends however that is, not inherited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import until
from treewright.kernel.storage import file_lock

HOLD = """
import sys, time
from pathlib import Path
from treewright.kernel.storage import file_lock
with file_lock.holding(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(1000)
"""


class Held(Exception):
    pass


def refuse() -> None:
    raise Held


def is_held(path: Path) -> bool:
    try:
        with file_lock.holding(path, on_wait=refuse):
            return False
    except Held:
        return True


def test_a_file_lock_is_released_when_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_held(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not is_held(path)


def test_a_waiting_thread_is_told_once_and_gets_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    told: list[str] = []
    with file_lock.holding(path):

        def wait() -> None:
            with file_lock.holding(path, on_wait=lambda: told.append("waits")):
                told.append("has it")

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: told, what="the other thread waits")
    waiting.join(120)
    assert told == ["waits", "has it"]


def test_a_command_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock.holding(path):
        child = subprocess.Popen(["sleep", "1000"])
    with child:
        assert not is_held(path)
        child.kill()


def test_a_fork_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock.holding(path):
        child = os.fork()
        if child == 0:
            while True:
                signal.pause()
    try:
        assert not is_held(path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_an_error_inside_releases_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(Held), file_lock.holding(path):
        refuse()
    assert not is_held(path)


def test_a_file_lock_in_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), file_lock.holding(tmp_path / "none" / "lock"):
        pass
    assert not (tmp_path / "none").exists()
