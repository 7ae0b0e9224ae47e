"""One owner at a time: races, takeovers, fencing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.kernel.owning import Process
from tests.waiting import until
from treewright.kernel.errors import LeaseLost, LockActive, StorageError
from treewright.kernel.procs import proctree
from treewright.kernel.storage import journal
from treewright.kernel.storage import lease as lease_module
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease, Owner, current_owner, latest_epoch

RACER = """
import sys, time
from pathlib import Path
from treewright.kernel.errors import LockActive
from treewright.kernel.storage.lease import Lease
place, rounds = Path(sys.argv[1]), int(sys.argv[2])
for number in range(rounds):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        Lease.acquire(place / str(number))
        print("won", flush=True)
    except LockActive:
        print("lost", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def owners(tmp_path: Path) -> Iterator:
    started: list[Process] = []

    def start(stale: float = 60.0, *options: str) -> Process:
        started.append(Process(tmp_path, stale, *options))
        return started[-1]

    yield start
    for owner in started:
        owner.end()


def facts(place: Path) -> list[tuple[str, int]]:
    return [(line.type, line.epoch) for line in journal.read(place / "events.jsonl")]


def test_of_several_that_race_exactly_one_wins(tmp_path: Path) -> None:
    rounds = 60
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for number in range(rounds):
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n", racer.communicate()[1]
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        heard = sorted(racer.stdout.readline() for racer in racers if racer.stdout)
        assert heard == ["lost\n", "lost\n", "won\n"], number
        assert latest_epoch(tmp_path / str(number)) == 1
    for racer in racers:
        assert "Traceback" not in racer.communicate("end\n")[1]


def test_the_error_names_the_present_owner(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path, stale_seconds=90)
    with pytest.raises(LockActive, match=r"^Run lock is active \(not stale\): ") as caught:
        Lease.acquire(tmp_path, stale_seconds=90)
    said = str(caught.value)
    assert f"pid {os.getpid()} on {socket.gethostname()}" in said
    assert "90 s" in said
    assert "--force" in said
    first.release()


def test_a_released_lease_is_free_at_once(tmp_path: Path) -> None:
    Lease.acquire(tmp_path).release()
    second = Lease.acquire(tmp_path)
    assert (second.epoch, second.owner.takeover) == (2, "released")
    second.release()


def test_a_second_release_closes_no_foreign_descriptor(tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path)
    lease.release()
    ours, theirs = os.pipe()  # the lowest free numbers: the lease's own among them
    try:
        lease.release()
        os.fstat(ours)
        os.fstat(theirs)
    finally:
        for fd in (ours, theirs):
            os.close(fd)


def test_a_dead_owner_is_replaced_at_once(owners, tmp_path: Path) -> None:
    first = owners()
    first.signal(signal.SIGKILL)
    first.child.wait()
    second = Lease.acquire(tmp_path / "lease", stale_seconds=10_000)
    assert (second.epoch, second.owner.takeover) == (2, "dead")
    second.release()


def test_a_process_that_only_has_the_dead_owners_id_does_not_protect_it(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path)
    path = tmp_path / "000001.json"
    owner = msgspec.json.decode(path.read_bytes(), type=Owner)
    assert owner.process_start == proctree.start_time(os.getpid())
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, process_start="1")))
    second = Lease.acquire(tmp_path)
    assert second.owner.takeover == "dead"
    first.release()
    second.release()


def elsewhere(path: Path, seconds_ago: float) -> None:
    """Makes a lease look like one of another machine with an old heartbeat."""
    owner = msgspec.json.decode(path.read_bytes(), type=Owner)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, host="elsewhere")))
    then = time.time() - seconds_ago
    os.utime(path, (then, then))


@pytest.mark.parametrize(("seconds_ago", "taken"), [(50, False), (61, True)])
def test_an_owner_elsewhere_is_replaced_only_when_stale(
    tmp_path: Path, seconds_ago: float, taken: bool
) -> None:
    first = Lease.acquire(tmp_path)
    elsewhere(tmp_path / "000001.json", seconds_ago)
    if taken:
        second = Lease.acquire(tmp_path, stale_seconds=60)
        assert second.owner.takeover == "stale"
        second.release()
        with pytest.raises(LeaseLost):
            first.check()
    else:
        with pytest.raises(LockActive, match="elsewhere"):
            Lease.acquire(tmp_path, stale_seconds=60)
        first.check()
    first.release()


def test_the_heartbeat_keeps_a_lease_from_becoming_stale(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path, stale_seconds=1)
    path = tmp_path / "000001.json"
    for _ in range(2):
        os.utime(path, (1.6e9, 1.6e9))
        until(lambda: path.stat().st_mtime > 1.7e9, what="a heartbeat")
        with pytest.raises(LockActive):
            Lease.acquire(tmp_path, stale_seconds=60)
    found = current_owner(tmp_path)
    assert found is not None
    assert found[1] < 60
    first.release()


def test_a_healthy_owner_with_a_slow_heartbeat_is_not_stale_to_the_impatient(
    tmp_path: Path,
) -> None:
    first = Lease.acquire(tmp_path, stale_seconds=120)
    path = tmp_path / "000001.json"
    for seconds_ago, stale in ((25, False), (31, True)):
        elsewhere(path, seconds_ago)
        if stale:
            second = Lease.acquire(tmp_path, stale_seconds=5)
            assert second.owner.takeover == "stale"
            second.release()
        else:
            with pytest.raises(LockActive, match=r"become stale \(30 s\)"):
                Lease.acquire(tmp_path, stale_seconds=5)
    first.release()


@pytest.mark.parametrize("namespace", ["another boot or container", ""])
def test_an_id_of_another_pid_namespace_says_nothing(tmp_path: Path, namespace: str) -> None:
    """Containers may share a host's name and a volume, and know nothing of each other's ids."""
    first = Lease.acquire(tmp_path)
    path = tmp_path / "000001.json"
    owner = msgspec.json.decode(path.read_bytes(), type=Owner)
    assert owner.pid_namespace == proctree.namespace() != ""
    not_here = msgspec.structs.replace(owner, pid_namespace=namespace, process_start="1")
    path.write_bytes(msgspec.json.encode(not_here))
    with pytest.raises(LockActive):
        Lease.acquire(tmp_path)
    os.utime(path, (time.time() - 121, time.time() - 121))
    second = Lease.acquire(tmp_path)
    assert second.owner.takeover == "stale"
    first.release()
    second.release()


def test_a_failing_heartbeat_is_silent(tmp_path: Path, monkeypatch, capfd) -> None:
    beats = []

    def utime(_: int) -> None:
        beats.append(1)
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(lease_module.os, "utime", utime)
    first = Lease.acquire(tmp_path, stale_seconds=0.06)
    until(lambda: len(beats) > 2, what="the thread goes on")
    first.release()
    assert capfd.readouterr().err == ""


def test_a_stopped_owner_that_was_replaced_cannot_write(owners, tmp_path: Path) -> None:
    first = owners()
    assert first.write() == "written"
    first.signal(signal.SIGSTOP)
    second = owners(60.0, "force")
    assert second.epoch == 2
    assert second.write() == "written"
    before = (tmp_path / "events.jsonl").read_bytes()
    first.signal(signal.SIGCONT)
    assert first.write().startswith("lost this process lost the run to another one (epoch 2)")
    assert (tmp_path / "events.jsonl").read_bytes() == before
    assert second.write() == "written"


def test_a_line_written_after_a_takeover_is_ignored(owners, tmp_path: Path) -> None:
    first = owners(60.0, "", "unguarded")
    first.signal(signal.SIGSTOP)
    second = owners(60.0, "force")
    first.signal(signal.SIGCONT)
    assert first.write() == "written"
    assert second.write() == "written"
    assert first.write() == "written"
    assert facts(tmp_path) == [("lease", 1), ("lease", 2), ("fact", 2)]


def test_a_sleeper_of_three_generations_ago_finds_its_successor(owners, tmp_path: Path) -> None:
    first = owners()
    first.signal(signal.SIGSTOP)
    second = owners(60.0, "force")
    second.signal(signal.SIGSTOP)
    third = owners(60.0, "force")
    assert third.write() == "written"
    first.signal(signal.SIGCONT)
    second.signal(signal.SIGCONT)
    assert first.write().startswith("lost")
    assert second.write().startswith("lost")
    assert third.write() == "written"
    assert facts(tmp_path) == [("lease", 1), ("lease", 2), ("lease", 3), ("fact", 3), ("fact", 3)]


def test_releasing_a_lost_lease_frees_nothing(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path)
    second = Lease.acquire(tmp_path, force=True)
    assert second.owner.takeover == "forced"
    first.release()
    assert json.loads((tmp_path / "000001.json").read_text())["released_at"] is None
    with pytest.raises(LockActive):
        Lease.acquire(tmp_path)
    second.release()


def test_a_deleted_lease_directory_does_not_start_epochs_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writer = Journal(path, 7, lambda: None)
    writer.append([b'{"type":"lease","epoch":7}'])
    writer.close()
    lease = Lease.acquire(tmp_path / "lease", after=journal.last_epoch(path))
    assert lease.epoch == 8
    lease.release()


def test_acquiring_leaves_only_epoch_files_and_minds_no_others(tmp_path: Path) -> None:
    (tmp_path / "1copy.json").write_text("{}")
    (tmp_path / ".tw-tmp-1-a").write_text("left by a killed one")
    first = Lease.acquire(tmp_path)
    Lease.acquire(tmp_path, force=True).release()
    first.release()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "000001.json",
        "000002.json",
        "1copy.json",
    ]


def test_a_damaged_lease_file_is_an_error_for_people(tmp_path: Path) -> None:
    Lease.acquire(tmp_path).release()
    (tmp_path / "000001.json").write_text('{"token"')
    with pytest.raises(StorageError, match=r"000001\.json is damaged"):
        Lease.acquire(tmp_path)
