"""Results that were produced and then lost, and requests that no worker ever accepted."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import program
from tests.decisions import events
from tests.parallel.cluster import Cluster, Isolation, cluster
from tests.parallel.harness import REAL_FLAGS, eventually
from treewright.kernel.executors import dask
from treewright.kernel.executors.protocol import WorkerLost

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(0, Isolation(tmp_path)) as made:
        yield made


def test_a_result_lost_with_its_worker_counts_as_a_lost_worker(
    machines: Cluster,
) -> None:
    import distributed

    machines.start_worker("w1")
    machines.wait_for_workers()
    begun = Path(tempfile.mkdtemp(dir=machines.directory))

    def work(name: str, place: str) -> tuple[bytes, str, int]:
        from treewright.kernel.executors.dask_worker import begin_once

        begin_once(name)
        (Path(place) / str(os.getpid())).touch()
        return b"made", name, os.getpid()

    with distributed.Client(machines.address, timeout=120) as client:
        executor: dask.FunctionExecutor[str, bytes] = dask.FunctionExecutor(client, 2)
        executor.submit("first", work, "mark-1", str(begun))
        done = executor.next_done(30)
        assert done is not None
        assert (done.request, done.outcome) == ("first", b"made")
        executor.submit("second", work, "mark-2", str(begun))
        eventually(lambda: not executor._done.empty(), "the second is done")
        machines.end("w1")
        machines.start_worker("w2")
        lost = executor.next_done(60)
    assert lost is not None
    assert lost.outcome is None
    assert isinstance(lost.error, WorkerLost)
    assert len(list(begun.iterdir())) == 1, "the second worker did not do the work again"


def test_a_result_that_cannot_be_fetched_times_out() -> None:
    class Future:
        status = "finished"

        def add_done_callback(self, call) -> None:
            call(self)

        def result(self, timeout: float | None = None) -> object:
            assert timeout is not None, "this would be waited for for ever"
            raise TimeoutError

    class Client:
        status = "running"

        def submit(self, *_: object, **__: object) -> Future:
            return Future()

        def processing(self) -> dict[str, object]:
            return {}

        def cancel(self, futures: list[object]) -> None: ...

    executor: dask.FunctionExecutor[str, bytes] = dask.FunctionExecutor(Client(), 1)
    executor.submit("it", lambda: (b"", "", 0))
    done = executor.next_done(5)
    assert done is not None
    assert isinstance(done.error, WorkerLost)


def test_ctrl_c_ends_a_run_on_a_cluster_without_workers(machines: Cluster, toy) -> None:
    started = program.start(
        [
            "tree", *REAL_FLAGS, "--tree-run-id", "run",
            "--repo", str(toy.path), "--parallel-backend", "dask", "--cluster", machines.address,
            "--max-parallel-evals", "2",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    journal = toy.run_dir("run") / "events.jsonl"
    try:
        eventually(
            lambda: journal.exists() and journal.read_text().count('"started"') == 2,
            "two evaluations wait for a worker",
        )
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=200)
    finally:
        started.kill()
        started.communicate()
    assert started.returncode == 130, said
    assert "Traceback" not in said
    requeued = [e for e in events(toy.run_dir("run")) if e["type"] == "requeued"]
    assert [e["reason"] for e in requeued] == ["interrupted", "interrupted"]
