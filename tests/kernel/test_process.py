"""Commands end with everything that they started."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import HeldClock, gone, said, until
from treewright.kernel.errors import LeaseLost
from treewright.kernel.procs import containment, process, proctree
from treewright.kernel.procs.cancellation import Deadline, Fence
from treewright.kernel.procs.watchdog import Watchdog

# Ignores SIGTERM, leaves its session and group, and stays.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    time.sleep(600)
os.setsid()
if os.fork():
    time.sleep(600)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""

PARENT = """
import sys
from pathlib import Path
from treewright.kernel.procs import process
process.run(sys.argv[2:], cwd=Path(sys.argv[1]), log_path=Path(sys.argv[1]) / "log", owner="orphan")
"""


@pytest.fixture
def owner(tmp_path: Path) -> str:
    """A marker of this test's own; nothing with it may be alive at the end."""
    return f"test-{os.getpid()}-{tmp_path.name}"


def run(command, tmp_path: Path, **options) -> process.ProcessResult:
    return process.run(command, cwd=tmp_path, log_path=tmp_path / "log", **options)


def pid_in(path: Path) -> int:
    return int(until(lambda: said(path), what=f"{path} is written"))


def limited_once(happened: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A command's time limit begins when that is so."""
    monkeypatch.setattr(process, "time", HeldClock(happened))


def test_output_and_exit_code(tmp_path: Path) -> None:
    done = run("echo out; echo err >&2; exit 3", tmp_path)
    assert (done.returncode, done.ok, done.timed_out, done.cancelled) == (3, False, False, False)
    assert (tmp_path / "log").read_text() == "out\nerr\n"
    assert done.output_bytes == 8
    assert done.explain("the sweep") == "the sweep exited with code 3"


def test_output_is_in_the_log_while_the_command_runs(tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    command = f'echo begun; while [ ! -e "{gate}" ]; do sleep 0.02; done'
    given = {"cwd": tmp_path, "log_path": log}
    running = threading.Thread(target=process.run, args=(command,), kwargs=given)
    running.start()
    try:
        until(lambda: log.exists() and log.read_text() == "begun\n", what="a line in the log")
    finally:
        gate.touch()
        running.join()


def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    assert run(["printf", "%s", "$HOME; a  b"], tmp_path).ok
    assert (tmp_path / "log").read_text() == "$HOME; a  b"


def test_stdin_is_given_or_empty(tmp_path: Path) -> None:
    data = os.urandom(1 << 20).hex().encode()
    assert run(["md5sum"], tmp_path, stdin=data, timeout=30).ok
    expected = subprocess.run(["md5sum"], input=data, capture_output=True, check=True).stdout
    assert (tmp_path / "log").read_bytes() == expected
    assert run(["cat"], tmp_path, timeout=30).ok
    assert (tmp_path / "log").read_bytes() == b""


def test_an_input_that_cannot_be_written_is_a_fault_and_not_an_empty_stdin(tmp_path: Path) -> None:
    """A sweep without its key makes no seal, so a closed pipe must not lose the key."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, child.stdin.fileno())
        os.close(nowhere)
        with pytest.raises(OSError, match="Bad file descriptor"):
            process._feed(child, b"a key")


def test_a_command_that_does_not_read_its_stdin(tmp_path: Path) -> None:
    assert run("exec 0<&-; echo done", tmp_path, stdin=b"x" * 10_000_000, timeout=30).ok
    assert (tmp_path / "log").read_text() == "done\n"


def test_the_environment_is_exactly_the_given_one(tmp_path: Path) -> None:
    run(["env"], tmp_path, env={"PATH": os.environ["PATH"], "ONLY": "this"})
    names = {line.partition("=")[0] for line in (tmp_path / "log").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_"} == {"PATH", "ONLY", proctree.MARKER}


@pytest.mark.parametrize("command", [["no-such-program-anywhere"], ["./missing"]])
def test_a_missing_program_is_a_result_not_an_exception(tmp_path: Path, command) -> None:
    done = run(command, tmp_path)
    assert done.returncode is None
    assert not done.ok
    assert done.explain("it") == f"it could not start: no such program: {command[0]}"


def test_a_missing_directory_is_a_result_too(tmp_path: Path) -> None:
    done = process.run("true", cwd=tmp_path / "none", log_path=tmp_path / "log")
    assert "none" in done.explain("it")


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_a_machine_without_a_process_to_spare_is_no_answer(
    tmp_path: Path, monkeypatch, number: int
) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(process.subprocess, "Popen", no_process)
    with pytest.raises(OSError, match=os.strerror(number)):
        run("true", tmp_path)


def test_a_hanging_command_is_ended_at_its_time_limit(
    tmp_path: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited_once(lambda: said(tmp_path / "log"), monkeypatch)
    started = time.monotonic()
    done = run("echo before; sleep 600", tmp_path, timeout=0.3, owner=owner)
    assert done.timed_out
    assert not done.ok
    assert time.monotonic() - started < 200
    assert (tmp_path / "log").read_text() == "before\n"
    assert "time limit" in done.explain("it")
    assert proctree.marked(owner, prefix=True) == []


def test_the_time_limit_ends_descendants_that_ignore_signals_and_changed_session(
    tmp_path: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    limited_once(lambda: said(pid_file), monkeypatch)
    done = run(
        [sys.executable, "-c", STUBBORN, str(pid_file)],
        tmp_path, timeout=0.3, grace_seconds=0.2, owner=owner,
    )  # fmt: skip
    assert done.timed_out
    assert gone(pid_in(pid_file))
    assert proctree.marked(owner, prefix=True) == []


def test_children_left_behind_by_a_command_that_returned(tmp_path: Path, owner: str) -> None:
    script = 'sleep 600 & echo $! > pid; setsid sh -c "echo \\$\\$ > pid2; sleep 600" &\n'
    script += "until test -s pid2; do :; done; echo done"
    started = time.monotonic()
    done = run(script, tmp_path, timeout=600, owner=owner)
    assert done.ok
    assert time.monotonic() - started < 200, "did not wait for the time limit"
    assert (tmp_path / "log").read_text() == "done\n"
    assert gone(pid_in(tmp_path / "pid"))
    assert gone(pid_in(tmp_path / "pid2"))
    assert proctree.marked(owner, prefix=True) == []


def test_a_gigabyte_of_output_is_capped_and_costs_little(tmp_path: Path) -> None:
    script = "echo first; head -c 1000000000 /dev/zero; echo; echo last"
    started = time.process_time()
    done = run(script, tmp_path, log_bytes=100_000)
    assert done.ok
    assert time.process_time() - started < 20
    log = (tmp_path / "log").read_bytes()
    assert log.startswith(b"first\n")
    assert log.endswith(b"\nlast\n")
    assert b"bytes left out" in log
    assert 100_000 <= len(log) < 300_000
    assert done.output_bytes == 1_000_000_000 + len("first\n\nlast\n")


def test_output_without_end_is_ended_at_the_time_limit(tmp_path: Path, owner: str) -> None:
    done = run("yes", tmp_path, timeout=0.5, log_bytes=10_000, owner=owner)
    assert done.timed_out
    assert (tmp_path / "log").stat().st_size < 200_000


def test_cancelling_ends_the_command(tmp_path: Path, owner: str) -> None:
    cancel = threading.Event()
    done: list[process.ProcessResult] = []
    thread = threading.Thread(
        target=lambda: done.append(
            run("echo $$ > pid; sleep 600", tmp_path, cancel=cancel, owner=owner)
        )
    )
    thread.start()
    pid = pid_in(tmp_path / "pid")
    cancel.set()
    thread.join(200)
    assert done[0].cancelled
    assert not done[0].ok
    assert gone(pid)
    assert proctree.marked(owner, prefix=True) == []


def test_a_polite_command_may_finish_in_the_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "trap 'echo saved; exit 0' TERM; echo up > up; while :; do sleep 0.05; done"
    limited_once((tmp_path / "up").exists, monkeypatch)
    done = run(script, tmp_path, timeout=0.3, grace_seconds=600)
    assert done.timed_out
    assert (tmp_path / "log").read_text().endswith("saved\n")
    assert done.seconds < 200


def test_a_log_that_cannot_be_written_ends_the_command(tmp_path: Path, owner: str) -> None:
    with pytest.raises(OSError, match="No space left"):
        process.run(
            "yes", cwd=tmp_path, log_path=Path("/dev/full"), timeout=60, owner=owner,
            log_bytes=1 << 24,
        )  # fmt: skip
    assert proctree.marked(owner, prefix=True) == []


def test_kill_9_of_the_parent_ends_its_descendants(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), sys.executable, "-c", STUBBORN, str(pid_file)]
    )
    pid = pid_in(pid_file)
    assert not gone(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: gone(pid), what="the watchdog ends the orphan")
    until(lambda: not proctree.marked("orphan:", prefix=True), what="and its parents")


def test_killing_processes_of_earlier_owners_spares_own_ones(tmp_path: Path, owner: str) -> None:
    def start(marker: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, proctree.MARKER: marker}
        return subprocess.Popen(["sleep", "600"], env=environment)

    old, older = start(f"{owner}-1:a"), start(f"{owner}-2:b")
    mine, tenth = start(f"{owner}-3:c"), start(f"{owner}-30:d")
    stranger = start(f"x{owner}-1:a")
    everyone = (old, older, mine, tenth, stranger)
    try:
        until(lambda: len(proctree.marked(owner, prefix=True)) == 4)
        killed = proctree.kill_marked(f"{owner}-", spare=f"{owner}-3:")
        assert killed == sorted([old.pid, older.pid, tenth.pid])
        assert mine.poll() is None
        assert stranger.poll() is None
        assert proctree.kill_marked(f"{owner}-", spare=f"{owner}-3:") == []
    finally:
        for child in everyone:
            child.kill()
            child.wait()


def test_a_shell_is_killed_before_it_can_log_the_death_of_its_child(
    tmp_path: Path, owner: str
) -> None:
    """Its log may be one that a stalled owner would still write into."""
    logs = [tmp_path / f"{number}.log" for number in range(12)]
    shells = []
    for log in logs:
        with log.open("wb") as said:
            environment = {**os.environ, proctree.MARKER: f"{owner}-1:a"}
            command = ["bash", "-c", "sleep 600; echo after"]
            shells.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said))
    try:
        until(lambda: len(proctree.marked(owner, prefix=True)) == 2 * len(shells))
        proctree.kill_marked(f"{owner}-", spare=f"{owner}-2:")
        assert [log.read_text() for log in logs] == [""] * len(logs)
    finally:
        for shell in shells:
            shell.kill()
            shell.wait()


def test_a_marker_is_matched_whole(tmp_path: Path, owner: str) -> None:
    child = subprocess.Popen(["sleep", "600"], env={**os.environ, proctree.MARKER: f"{owner}:ab"})
    try:
        until(lambda: proctree.marked(f"{owner}:ab") == [child.pid])
        assert proctree.marked(f"{owner}:a") == []
        assert proctree.marked(f"{owner}:a", prefix=True) == [child.pid]
    finally:
        child.kill()
        child.wait()
    assert not proctree.is_alive(child.pid, proctree.start_time(child.pid))


def test_a_fence_is_asked_as_soon_as_the_command_has_ended(tmp_path: Path, owner: str) -> None:
    def replaced() -> None:
        raise LeaseLost("replaced")

    fence = Deadline(Fence(threading.Event(), replaced), 60)
    with pytest.raises(LeaseLost):
        run("sleep 600 & echo done", tmp_path, cancel=fence, owner=owner)
    assert proctree.marked(owner, prefix=True) == []


def test_a_death_right_after_the_start_leaves_no_child(tmp_path: Path) -> None:
    """The child runs, and its group has not been told to the watchdog yet."""
    script = f"""
import os, pathlib, signal
from treewright.kernel.procs import process, watchdog
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
watchdog.Watchdog.guarding = die
place = pathlib.Path({str(tmp_path)!r})
process.run("sleep 600", cwd=place, log_path=place / "log", owner={tmp_path.name!r})
"""
    child = subprocess.Popen([sys.executable, "-c", script])
    assert child.wait(timeout=120) == -signal.SIGKILL
    until(lambda: not proctree.marked(tmp_path.name, prefix=True), what="the watchdog ends it")
    if (parent := containment.writable_parent()) is not None:
        left = f"treewright-{child.pid}-*"
        until(lambda: not list(parent.glob(left)), seconds=30, what="its cgroup is gone as well")


@pytest.mark.skipif(containment.writable_parent() is None, reason="the kernel lends no cgroup")
@pytest.mark.parametrize("where", ["_remove", "Container"], ids=["at its end", "at its start"])
def test_a_parent_killed_during_a_command_leaves_no_cgroup(tmp_path: Path, where: str) -> None:
    script = f"""
import os, pathlib, signal
from treewright.kernel.procs import containment, process
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
containment.{where} = die
place = pathlib.Path({str(tmp_path)!r})
process.run("true", cwd=place, log_path=place / "log")
"""
    child = subprocess.Popen([sys.executable, "-c", script])
    assert child.wait(timeout=120) == -signal.SIGKILL
    parent = containment.writable_parent()
    assert parent is not None
    left = f"treewright-{child.pid}-*"
    until(lambda: not list(parent.glob(left)), seconds=30, what="the watchdog removes it")


def test_a_process_is_found_while_it_becomes_its_program(
    owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no environment for a moment, and a watchdog may look in that one."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    missed = 0
    for _ in range(100):
        pid = os.posix_spawn(sleep, ["sleep", "600"], {proctree.MARKER: f"{owner}:a"})
        try:
            with monkeypatch.context() as only:
                only.setattr(os, "listdir", lambda _, pid=pid: [str(pid)])
                missed += proctree.marked(f"{owner}:a") != [pid]
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert missed == 0


def test_a_process_without_an_environment_is_none_of_ours(owner: str) -> None:
    child = subprocess.Popen(["sleep", "600"], env={})
    try:
        until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n")
        assert proctree.marked(owner, prefix=True) == []
    finally:
        child.kill()
        child.wait()


UNCONTAINED = """
import os, pathlib, signal, sys, threading
from treewright.kernel.procs import containment, process
from treewright.kernel.procs.watchdog import watchdog
containment.writable_parent = lambda: None
place, owner = pathlib.Path(sys.argv[1]), sys.argv[2]
def run(name):
    os.mkfifo(place / name)
    command = f"echo up > {name}; exec sleep 600"
    given = dict(cwd=place, log_path=place / f"{name}.log", owner=owner)
    threading.Thread(target=process.run, args=(command,), kwargs=given, daemon=True).start()
    (place / name).read_text()
"""
"""Starts commands where the kernel lends no cgroup; each runs when `run` returns."""


def uncontained(script: str, place: Path, owner: str) -> list[str]:
    return [sys.executable, "-c", UNCONTAINED + script, str(place), owner]


def test_a_command_in_a_command_is_ended_with_it(
    tmp_path: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep may search itself: its owner and its watchdog are killed at once there."""
    monkeypatch.setattr("treewright.kernel.procs.containment.writable_parent", lambda: None)
    script = 'run("inner")\nprint("up", flush=True)\nsignal.pause()'
    (tmp_path / "inside").mkdir()
    limited_once(lambda: said(tmp_path / "log"), monkeypatch)
    inner = f"{owner}-inner"
    done = process.run(
        uncontained(script, tmp_path / "inside", inner), cwd=tmp_path, owner=owner,
        log_path=tmp_path / "log", timeout=0.3, grace_seconds=0,
    )  # fmt: skip
    assert done.timed_out
    assert proctree.marked(inner, prefix=True) == []


def test_a_watchdog_that_died_is_replaced_by_one_that_knows_all(tmp_path: Path, owner: str) -> None:
    script = """
run("first")
watchdog._process.kill()
watchdog._process.wait()
run("second")
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = uncontained(script, tmp_path, owner)
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    until(lambda: not proctree.marked(owner, prefix=True), what="both are ended")


def test_a_fork_of_ours_does_not_keep_the_watchdog_waiting(tmp_path: Path, owner: str) -> None:
    """A forked process has a copy of the watchdog's pipe; it removes no entry of its parent."""
    script = """
run("only")
forked = os.fork()
if not forked:
    signal.pause()
print(forked, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = uncontained(script, tmp_path, owner)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        forked = int(parent.stdout.readline())
        try:
            assert parent.wait(timeout=120) == -signal.SIGKILL
            until(lambda: not proctree.marked(owner, prefix=True), what="it is ended")
            assert not gone(forked)
        finally:
            os.kill(forked, signal.SIGKILL)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_during_registration_leaves_no_entry_in_the_watchdog(
    monkeypatch: pytest.MonkeyPatch, owner: str, when: str
) -> None:
    """The watchdog would kill a later group with the same number."""
    told = Watchdog()
    write = Watchdog._write

    def interrupted(watchdog: Watchdog, lines: str) -> None:
        monkeypatch.setattr(Watchdog, "_write", write)
        if when == "after":
            write(watchdog, lines)
        raise KeyboardInterrupt

    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        monkeypatch.setattr(Watchdog, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt), told.guarding(child.pid, f"{owner}:a"):
            pass
        told.close()
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
