"""The states running, stalled, paused and stopped come from the lease alone, which is only read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from treewright.dashboard.live_run import read_liveness
from treewright.kernel.storage.lease import Lease, Owner

HOLD = """
import sys, pathlib
from treewright.kernel.storage.lease import Lease
Lease.acquire(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lease(tmp_path: Path):
    held = Lease.acquire(tmp_path / "lease")
    yield tmp_path / "lease"
    held.release()


def test_a_living_owner_is_running(lease: Path) -> None:
    found = read_liveness(lease, None)
    assert (found.state, found.pid) == ("running", os.getpid())


def test_an_owner_without_heartbeat_is_stalled(tmp_path: Path) -> None:
    owner = Owner("t", 1, "x", "another-host", "2026-01-01T00:00:00.000Z", heartbeat_seconds=5)
    (tmp_path / "000001.json").write_bytes(msgspec.json.encode(owner))
    assert read_liveness(tmp_path, None).state == "running"
    old = time.time() - 60
    os.utime(tmp_path / "000001.json", (old, old))
    found = read_liveness(tmp_path, None)
    assert found.state == "stalled"
    assert "no heartbeat of process 1 on another-host for 6" in found.detail
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001.json"]


def test_a_killed_owner_is_stalled_at_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert read_liveness(tmp_path, None).state == "running"
        holder.kill()
        holder.wait()
    found = read_liveness(tmp_path, None)
    assert found.state == "stalled"
    assert "is gone" in found.detail


def test_a_released_run_is_paused_or_stopped(tmp_path: Path) -> None:
    Lease.acquire(tmp_path / "lease").release()
    assert read_liveness(tmp_path / "lease", None).state == "paused"
    assert read_liveness(tmp_path / "lease", "it is over").state == "stopped"
    assert read_liveness(tmp_path / "none", None).state == "paused"


def test_a_damaged_lease_has_no_owner(tmp_path: Path) -> None:
    (tmp_path / "000001.json").write_text("{")
    assert read_liveness(tmp_path, None).state == "paused"
