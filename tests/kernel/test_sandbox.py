"""Commands in a real bubblewrap: they end with it, and errors say why it cannot work."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from tests.waiting import until
from treewright.kernel.errors import UsageError
from treewright.kernel.procs import process, sandbox
from treewright.kernel.procs.sandbox import Mount

HOLD = """\
exec 9> lock
flock 9
env -i setsid sleep 1000 &
touch started
sleep 1000
"""


@pytest.fixture
def around(bubblewrap: None, tmp_path: Path) -> list[str]:
    return sandbox.command_line(["/"], [Mount("write", tmp_path)], tmp_path)


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_no_process_in_the_sandbox_outlives_it(around: list[str], tmp_path: Path, how: str) -> None:
    """Also processes that left the session and removed their marker."""
    cancel, started = threading.Event(), tmp_path / "started"

    def when_started() -> None:
        until(started.exists)
        cancel.set()

    waiting = threading.Thread(target=when_started)
    if how == "cancel":
        waiting.start()
    done = process.run(
        HOLD,
        cwd=tmp_path,
        log_path=tmp_path / "log",
        around=around,
        cancel=cancel,
        timeout=None if how == "cancel" else 2.0,
    )
    assert (done.cancelled, done.timed_out) == (how == "cancel", how == "timeout")
    if how == "cancel":
        waiting.join()

    def is_free() -> bool:
        with (tmp_path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    until(is_free, 30.0, "what ran inside holds its lock")


def test_exit_codes_and_output_are_those_of_the_command(around: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = process.run("echo said; exit 7", cwd=tmp_path, log_path=log, around=around)
    assert (done.returncode, log.read_text()) == (7, "said\n")


def test_a_later_mount_covers_an_earlier_one(bubblewrap: None, tmp_path: Path) -> None:
    deep = tmp_path / "kept" / "from" / "all"
    deep.mkdir(parents=True)
    (tmp_path / "kept" / "secret").write_text("secret")
    (tmp_path / "file").write_text("secret")
    mounts = [
        Mount("read", tmp_path),
        Mount("hide", tmp_path / "kept"),
        Mount("hide", tmp_path / "file"),
        Mount("hide", tmp_path / "nothing"),
        Mount("write", deep),
    ]
    process.run(
        "find . | sort; cat file; touch kept/x; touch x; touch kept/from/all/written",
        cwd=tmp_path,
        log_path=tmp_path / "log",
        around=sandbox.command_line(["/"], mounts, tmp_path),
    )
    assert (deep / "written").exists()
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "kept" / "x").exists()
    told = (tmp_path / "log").read_text()
    assert "./kept/from/all" in told
    assert "secret" not in told


def test_without_the_program_the_error_names_the_feature(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"^--sandbox needs bubblewrap .*is not installed$"):
        sandbox.require("--sandbox")


def test_a_program_that_the_kernel_stops_is_not_used(monkeypatch, tmp_path: Path) -> None:
    """The executable stands in for bubblewrap on a kernel without user namespaces."""
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"does not work here: bwrap: setting up uid map"):
        sandbox.require("--sandbox")


def test_a_read_only_path_cannot_be_mounted_again(bubblewrap: None, tmp_path: Path) -> None:
    """Root has every capability inside a namespace unless bubblewrap drops it."""
    log, outside = tmp_path / "log", tmp_path / "outside"
    outside.mkdir()
    around = sandbox.command_line(["/"], [Mount("read", outside)], outside)
    tried = f"mount -o remount,rw,bind {outside}"
    done = process.run(
        f"{tried} || unshare -Urm {tried}; touch planted", cwd=outside, log_path=log, around=around
    )
    assert done.returncode != 0
    assert not (outside / "planted").exists()
    process.run("grep CapEff /proc/self/status", cwd=outside, log_path=log, around=around)
    assert log.read_text().split() == ["CapEff:", "0" * 16]
