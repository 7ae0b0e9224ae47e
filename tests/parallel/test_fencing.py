"""A coordinator that was replaced while its cluster worked touches nothing of its successor's."""

from __future__ import annotations

import io
import tarfile
import threading
from pathlib import Path

import pytest

from treewright.kernel.deadline import Fence
from treewright.kernel.errors import LeaseLost
from treewright.kernel.lease import Lease
from treewright.tree import remote
from treewright.tree.model import EvalOutcome
from treewright.tree.parallel import _cluster_directory
from treewright.tree.remote_worker import RemoteResult


class Request:
    """As much of an evaluation's request as is read when its result arrives."""

    eval_id = "e000001"

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = str(run_dir)


def arrived() -> RemoteResult:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz"):
        pass
    return RemoteResult(EvalOutcome(), buffer.getvalue(), None, None)


def test_a_result_for_an_owner_that_was_replaced_is_not_unpacked(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path / "lease")
    fence = Fence(threading.Event(), first.check)
    log = tmp_path / "eval" / "e000001" / "experiment" / "sweep.log"
    remote.receive(Request(tmp_path), arrived(), fence)  # pyright: ignore[reportArgumentType]
    second = Lease.acquire(tmp_path / "lease", force=True)
    log.write_text("the successor's")
    with pytest.raises(LeaseLost):
        remote.receive(Request(tmp_path), arrived(), fence)  # pyright: ignore[reportArgumentType]
    assert log.read_text() == "the successor's"
    first.release()
    second.release()


def test_each_owners_workers_have_a_directory_that_no_earlier_owner_removes(
    tmp_path: Path,
) -> None:
    first = Lease.acquire(tmp_path / "lease")
    (tmp_path / "cluster" / "dask-scratch-space").mkdir(parents=True)
    with _cluster_directory(tmp_path, 1, Fence(threading.Event(), first.check)) as old:
        assert not (tmp_path / "cluster" / "dask-scratch-space").exists()
        second = Lease.acquire(tmp_path / "lease", force=True)
        its_fence = Fence(threading.Event(), second.check)
        successor = _cluster_directory(tmp_path, 2, its_fence)
        new = successor.__enter__()
        (new / "w1").mkdir(parents=True)
        old.mkdir(parents=True)
    assert not old.exists()
    assert (new / "w1").exists(), "the first owner's exit leaves the second's workers alone"
    successor.__exit__(None, None, None)
    assert not (tmp_path / "cluster").exists()
    first.release()
    second.release()
