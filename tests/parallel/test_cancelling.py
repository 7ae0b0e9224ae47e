"""Ending one request on a real cluster: before a worker has it, while it runs, and after leaving
it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parallel.cluster import Isolation, cluster
from tests.parallel.harness import eventually
from treewright.kernel.executors import backends
from treewright.kernel.executors.protocol import WorkerLost

pytestmark = pytest.mark.xdist_group("cluster")


def test_a_request_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    def work(place: str) -> str:
        from pathlib import Path

        from treewright.kernel.executors.protocol import current_stop

        stop = current_stop()
        Path(place, "begun").touch()
        assert stop.wait(120)
        Path(place, "told").touch()
        return "told"

    with cluster(0, Isolation(tmp_path)) as machines:
        place = backends.ExecutorOptions(1, machines.address)
        with backends.BACKENDS.get("dask").open(place) as make:
            executor = make(work)
            nowhere = str(machines.directory / "nowhere")
            executor.submit(nowhere)
            executor.cancel(nowhere)
            dropped = executor.next_done(60)
            machines.start_worker("w1")
            machines.wait_for_workers()
            first, second = machines.directory / "first", machines.directory / "second"
            for directory in (first, second):
                directory.mkdir()
            request = str(first)
            executor.submit(request)
            eventually((first / "begun").exists, "the first has begun")
            executor.cancel(request)
            told = executor.next_done(60)
            executor.submit(str(second))
            eventually((second / "begun").exists, "the second has begun")
            executor.close()
            eventually((second / "told").exists, "the second is no longer wanted")
    assert dropped is not None
    assert isinstance(dropped.error, WorkerLost)
    assert told is not None
    assert (told.request, told.outcome) == (request, "told")
    assert told.worker is not None
