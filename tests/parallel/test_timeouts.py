"""At the deadline every process of an evaluation is killed, even a hidden one; and resource
limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.decisions import events
from tests.parallel.harness import REAL, search
from tests.toy import ToyRepository
from treewright.kernel.procs import containment, proctree
from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.run.creation import Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

ONE_DEPTH = Shape(ideas_per_node=2, beam_width=1, max_depth=1, sweep_config_limit=8)
DEAF = """import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
how, pids = sys.argv[1:3]
def hide():
    if how == "setsid":
        os.setsid()
    if how == "double fork":
        os.setsid()
        if os.fork():
            os._exit(0)
    if how == "env -i" and len(sys.argv) < 4:
        os.setsid()
        os.execve(sys.executable, [sys.executable, __file__, how, pids, "again"], {})
if os.fork() == 0:
    hide()
    open(f"{pids}/{os.getpid()}", "w").close()
    time.sleep(600)
if len(sys.argv) == 4:
    hide()
open(f"{pids}/{os.getpid()}", "w").close()
time.sleep(600)
"""
WITHOUT_CGROUP = ["group", "setsid", "double fork"]


def hiding(toy: ToyRepository, tmp_path: Path, how: str) -> Path:
    """A repository in which every sweep starts hidden processes that ignore signals; files hold
    their ids."""
    pids = tmp_path / "pids"
    pids.mkdir(exist_ok=True)
    toy.write("deaf.py", DEAF)
    config = (toy.path / "treewright.toml").read_text()
    command = f"exec python3 deaf.py '{how}' {pids}"
    toy.write("treewright.toml", config.replace("sh sweep.sh", command))
    toy.commit()
    return pids


def alive(pids: Path) -> list[int]:
    found = [int(path.name) for path in pids.iterdir()]
    return [pid for pid in found if proctree.is_alive(pid, proctree.start_time(pid))]


def time_out(toy: ToyRepository, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the evaluation once both sweeps have started their hidden processes."""
    monkeypatch.setattr(Deadline, "passed", property(lambda _: len(list(pids.iterdir())) >= 4))
    policy = FailureRules(timeout_seconds=2.5)
    with pytest.raises(Paused, match="time limit"):  # the root's sweep hangs as well
        search(toy.path, "run", ONE_DEPTH, policy=policy, parallelism=Parallelism(2))
    back = [e for e in events(toy.run_dir("run")) if e["type"] == "requeued"]
    assert [e["reason"] for e in back] == ["eval_timeout"] * 2


@pytest.mark.skipif(containment.writable_parent() is None, reason="no writable cgroup here")
@pytest.mark.parametrize("how", [*WITHOUT_CGROUP, "env -i"])
def test_no_process_survives_the_deadline_with_a_cgroup(toy, tmp_path, how, monkeypatch):
    pids = hiding(toy, tmp_path, how)
    time_out(toy, pids, monkeypatch)
    assert alive(pids) == []
    parent = containment.writable_parent()
    assert parent is not None
    assert list(parent.glob(f"treewright-{os.getpid()}-*")) == []


@pytest.mark.parametrize("how", WITHOUT_CGROUP)
def test_without_a_cgroup_no_process_with_its_environment_survives(toy, tmp_path, how, monkeypatch):
    monkeypatch.setattr(containment, "writable_parent", lambda: None)
    pids = hiding(toy, tmp_path, how)
    time_out(toy, pids, monkeypatch)
    assert alive(pids) == []


def limited(toy: ToyRepository, limit: str, sweep: str) -> str:
    """Return the reason of the pause: such a sweep fails on the root as well."""
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", f"{config}\n[limits]\n{limit}\n".replace("sh sweep.sh", sweep))
    toy.commit()
    with pytest.raises(Paused) as raised:
        search(toy.path, "run", ONE_DEPTH)
    return str(raised.value)


def test_a_sweep_that_wants_more_memory_than_allowed_fails(toy):
    big = "python3 -c 'x = bytearray(600 << 20); print(len(x))'"
    assert "sweep_failed" in limited(toy, "memory_mb = 300", big)


def test_a_sweep_that_writes_a_larger_file_than_allowed_fails(toy):
    big = "head -c 9000000 /dev/zero > big.bin"
    assert "sweep_failed" in limited(toy, "file_mb = 4", big)


def test_limits_do_not_change_a_sweep_within_them(toy):
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", f"{config}\n[limits]\nmemory_mb = 2000\nfile_mb = 50\n")
    toy.commit()
    found = events(search(toy.path, "run", REAL))
    assert not [e for e in found if e["type"] == "failed"]
