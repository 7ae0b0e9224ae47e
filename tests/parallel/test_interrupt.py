"""Ctrl-C, sent to the whole foreground process group as a terminal does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests import program
from tests.decisions import decisions, events, repeated_evaluations
from tests.parallel.harness import REAL, REAL_FLAGS, eventually, search
from tests.toy import ToyRepository
from treewright.kernel.procs import proctree
from treewright.tree.run.cleanup import process_owner

DEAF = "trap '' TERM INT; "
BACKENDS = [
    "threadpool",
    pytest.param("dask", marks=pytest.mark.xdist_group("local-cluster")),
]


def gated(toy: ToyRepository, gate: Path, before: str = "") -> None:
    """A repository with sweeps that wait while `gate/hold` exists."""
    gate.mkdir()
    (gate / "hold").touch()
    wait = f"{before}touch {gate}/pid-$$; while [ -e {gate}/hold ]; do sleep 0.05; done; "
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace("sh sweep.sh", f"{wait}sh sweep.sh"))
    toy.commit()


def expected(toy: ToyRepository, gate: Path) -> dict:
    """Return the decisions of a serial run of a copy."""
    copy = toy.path.parent / "serial" / toy.path.name
    shutil.copytree(toy.path, copy)
    (gate / "hold").unlink()
    found = decisions(search(copy, "run", REAL))
    (gate / "hold").touch()
    for path in gate.glob("pid-*"):
        path.unlink()
    return found


def command(toy: ToyRepository, backend: str) -> list[str]:
    return [
        "tree", *REAL_FLAGS, "--tree-run-id", "run",
        "--repo", str(toy.path), "--max-parallel-evals", "2", "--parallel-backend", backend,
    ]  # fmt: skip


def left_of(toy: ToyRepository, session: int) -> list[int]:
    """Return the processes of the run, and of the session that the program ran in."""
    prefix = process_owner(toy.run_dir("run"), 0).removesuffix("0")
    found = proctree.marked(prefix, prefix=True)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and int(fields[3]) == session:
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_ends_every_process_and_the_run_can_be_continued(
    toy, tmp_path, treewright, backend, times
):
    gate = tmp_path / "gate"
    gated(toy, gate, DEAF if times == 2 else "")
    serial = expected(toy, gate)
    with program.start(
        command(toy, backend), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as search_run:  # fmt: skip
        assert search_run.stderr is not None
        eventually(lambda: len(list(gate.glob("pid-*"))) == 2, "two sweeps run")
        os.killpg(search_run.pid, signal.SIGINT)
        said = []
        while "stopping" not in (line := search_run.stderr.readline()):
            assert line, "".join(said)
            said.append(line)
        if times == 2:
            os.killpg(search_run.pid, signal.SIGINT)
        _, rest = search_run.communicate(timeout=200)
    assert search_run.returncode == 130, rest
    assert "Traceback" not in rest
    assert rest.strip().splitlines()[-1] == (
        "treewright: interrupted; run the same command again to continue"
    )
    eventually(lambda: not left_of(toy, search_run.pid), "nothing is left")
    assert not [e for e in events(toy.run_dir("run")) if e["type"] == "failed"]
    if times == 1:
        requeued = [e for e in events(toy.run_dir("run")) if e["type"] == "requeued"]
        assert {e["reason"] for e in requeued} == {"interrupted"}
    (gate / "hold").unlink()
    done = treewright(*command(toy, "threadpool"))
    assert done.returncode == 0, done.stderr
    assert decisions(toy.run_dir("run")) == serial
    assert repeated_evaluations(toy.run_dir("run")) == []


@pytest.mark.xdist_group("local-cluster")
def test_a_local_cluster_ends_with_its_killed_coordinator(toy, tmp_path):
    gate = tmp_path / "gate"
    gated(toy, gate)
    with program.start(
        command(toy, "dask"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as search_run:  # fmt: skip
        eventually(lambda: len(list(gate.glob("pid-*"))) == 2, "two sweeps run")
        assert len(left_of(toy, search_run.pid)) > 3
        search_run.kill()
    eventually(lambda: not left_of(toy, search_run.pid), "workers and sweeps are gone")
