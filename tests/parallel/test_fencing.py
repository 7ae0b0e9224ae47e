"""A replaced coordinator with a working cluster does not touch its successor's files."""

from __future__ import annotations

import io
import tarfile
import threading
from pathlib import Path

import pytest

from treewright.kernel.errors import LeaseLost
from treewright.kernel.procs.cancellation import Fence
from treewright.kernel.storage.lease import Lease
from treewright.tree.evaluating import remote_executor
from treewright.tree.evaluating.remote_worker import RemoteResult
from treewright.tree.records.model import EvalOutcome
from treewright.tree.run.parallelism import _cluster_directory


class Request:
    """The fields of an evaluation's request that are read when its result arrives."""

    eval_id = "e000001"

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = str(run_dir)


def arrived(*entries: tarfile.TarInfo) -> RemoteResult:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return RemoteResult(EvalOutcome(), buffer.getvalue(), None, None)


def test_a_result_for_a_replaced_owner_is_not_unpacked(tmp_path: Path) -> None:
    first = Lease.acquire(tmp_path / "lease")
    fence = Fence(threading.Event(), first.check)
    log = tmp_path / "eval" / "e000001" / "experiment" / "sweep.log"
    remote_executor.receive(Request(tmp_path), arrived(), fence)  # pyright: ignore[reportArgumentType]
    second = Lease.acquire(tmp_path / "lease", force=True)
    log.write_text("the successor's")
    with pytest.raises(LeaseLost):
        remote_executor.receive(Request(tmp_path), arrived(), fence)  # pyright: ignore[reportArgumentType]
    assert log.read_text() == "the successor's"
    first.release()
    second.release()


def test_each_owners_workers_have_their_own_directory(
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


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    made.size = 3 if kind == tarfile.REGTYPE else 0
    return made


def take(run_dir: Path, *entries: tarfile.TarInfo) -> Path:
    fence = Fence(threading.Event(), lambda: None)
    remote_executor.receive(Request(run_dir), arrived(*entries), fence)  # pyright: ignore[reportArgumentType]
    return run_dir / "eval" / "e000001" / "experiment"


def test_archives_of_workers_are_unpacked_safely_on_old_pythons(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    found = take(tmp_path, entry("logs", tarfile.DIRTYPE), entry("logs/a b.log"), entry("c"))
    assert (found / "logs" / "a b.log").read_bytes() == (found / "c").read_bytes() == b"xxx"


@pytest.mark.parametrize(
    "bad",
    [
        entry("/tmp/absolute"),
        entry("../outside"),
        entry("a/../../outside"),
        entry("link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("hard", tarfile.LNKTYPE, "c"),
        entry("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda made: made.name,
)
def test_only_plain_files_are_unpacked_from_a_worker(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(OSError, match="not a plain file"):
        take(tmp_path, entry("c"), bad)
    assert not (tmp_path / "eval" / "e000001" / "outside").exists()
