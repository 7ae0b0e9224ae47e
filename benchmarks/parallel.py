"""How much of the ideal speed-up is left, what the coordinator costs, and memory over time.

The coordinator, the store with its fsync per record, the dispatcher and the executors are
the real ones. The evaluation is half a second of sleep, in the worker itself or as a real
`sleep 0.5` child through `kernel.procs.process`, so that all that is measured is overhead.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.measure import Row, Table
from benchmarks.noop_run import FreeIdeas, do_nothing, target
from treewright.kernel.executors.dask import DaskExecutor, connect
from treewright.kernel.executors.protocol import Done
from treewright.kernel.executors.threads import ThreadExecutor
from treewright.kernel.procs import process
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.ideas import expansion
from treewright.tree.records import events as ev
from treewright.tree.records.model import EvalOutcome
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run

SECONDS = 0.5
ROUNDS = 4
"""Evaluations per worker."""
WORKERS = (2, 4, 8, 16)
QUICK = (2, 4)
_HERE = Path(tempfile.gettempdir())


def sleeping(request: EvalRequest) -> EvalOutcome:
    time.sleep(SECONDS)
    return do_nothing(request)


def sleeping_child(request: EvalRequest, seconds: float = SECONDS) -> EvalOutcome:
    log = _HERE / f"treewright-bench-{os.getpid()}-{threading.get_ident()}.log"
    done = process.run(
        f"exec sleep {seconds}", cwd=_HERE, log_path=log, cancel=threading.Event(), timeout=600
    )
    assert done.ok
    log.unlink()
    return do_nothing(request)


def _there(work: Callable[[EvalRequest], EvalOutcome], request: EvalRequest):
    return work(request), "worker", os.getpid()


class OnCluster:
    """The dask executor with a function of the benchmark's; requests travel as they are."""

    def __init__(self, client: Any, work: Callable[[EvalRequest], EvalOutcome], capacity: int):
        self.capacity = capacity
        self._work = work
        self._engine: DaskExecutor[EvalRequest, EvalOutcome] = DaskExecutor(client, capacity)
        self.next_done: Callable[..., Done | None] = self._engine.next_done
        self.close = self._engine.close

    def submit(self, request: EvalRequest) -> None:
        self._engine.submit(request, _there, self._work, request)


@dataclass
class Clock:
    """From the first `started` to the last outcome; `each` is called at every outcome."""

    each: Callable[[int], None] = lambda _: None
    first: float = 0.0
    last: float = 0.0
    first_cpu: float = 0.0
    last_cpu: float = 0.0
    outcomes: int = field(default=0)

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.Started) and not self.first:
            self.first, self.first_cpu = time.perf_counter(), time.process_time()
        elif isinstance(event, ev.Completed):
            self.last, self.last_cpu = time.perf_counter(), time.process_time()
            self.outcomes += 1
            self.each(self.outcomes)
        assert not isinstance(event, ev.Failed)

    @property
    def seconds(self) -> float:
        return self.last - self.first

    @property
    def cpu(self) -> float:
        """Of this process, as a share of one core."""
        return (self.last_cpu - self.first_cpu) / self.seconds


def _search(repo: Path, run_id: str, evaluations: int, make_executor, clock: Clock) -> None:
    """One depth of so many evaluations, or as many depths as it takes."""
    shape = Shape(
        ideas_per_node=min(evaluations, 250),
        beam_width=1,
        max_depth=evaluations,
        max_total_idea_evals=evaluations,
        dry_run=True,
        dedupe_scope="none",
    )
    free = mock.patch.object(expansion, "make_source", return_value=FreeIdeas())
    with free, open_run(RunRequest(repo, run_id, shape=shape), clock) as coordinator:
        coordinator.make_executor = make_executor
        coordinator.finish()
    assert clock.outcomes == evaluations


@contextlib.contextmanager
def _repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="treewright-bench-") as directory:
        yield target(Path(directory))


def _share_of_ideal(repo: Path, run_id: str, workers: int, make_executor, rounds: int) -> float:
    clock = Clock()
    _search(repo, run_id, workers * rounds, make_executor, clock)
    return rounds * SECONDS / clock.seconds


def speedup(quick: bool) -> Table:
    """`parallel`: the speed-up as a share of the number of workers."""
    rounds = 2 if quick else ROUNDS
    rows = []
    with _repository() as repo:
        for workers in QUICK if quick else WORKERS:
            for name, work in (("sleep", sleeping), ("child", sleeping_child)):
                share = _share_of_ideal(
                    repo, f"t-{name}-{workers}", workers,
                    lambda _, w=work, n=workers: ThreadExecutor(w, n), rounds,
                )  # fmt: skip
                what = f"threads, {workers} workers, {_NAMES[name]}"
                rows.append(_share(what, share, 0.95))
        for workers in QUICK if quick else WORKERS:
            with (
                tempfile.TemporaryDirectory() as directory,
                connect(None, workers, directory) as client,
            ):
                _warm_up(client, workers)
                once = f"warm-{workers}"
                _share_of_ideal(
                    repo, once, workers, lambda _, c=client, n=workers: OnCluster(c, sleeping, n), 1
                )
                share = _share_of_ideal(
                    repo, f"d-{workers}", workers,
                    lambda _, c=client, n=workers: OnCluster(c, sleeping, n), rounds,
                )  # fmt: skip
            rows.append(
                _share(f"dask after start-up, {workers} workers, {_NAMES['sleep']}", share, 0.9)
            )
    return Table(
        "parallel",
        f"Speed-up with evaluations of {SECONDS} s, as a share of the ideal ({rounds} a worker)",
        rows,
        "`loss` is 1 - share: what the coordinator, its durable records and the engine take.",
    )


_NAMES = {"sleep": "sleeping in the worker", "child": "a `sleep 0.5` process"}


def _share(what: str, share: float, least: float) -> Row:
    return Row(f"{what}: share {share:.3f}, loss", 1 - share, "", target=round(1 - least, 3))


def _warm_up(client: Any, workers: int) -> None:
    """Start-up ends when every worker has imported what it needs."""
    client.wait_for_workers(workers)
    client.run(_import_all)


def _import_all() -> None:
    import benchmarks.parallel  # noqa: F401


def coordinator_cpu(quick: bool) -> Table:
    """`coordinator-cpu`: CPU of this process and its threads, as a share of one core."""
    length = 4.0 if quick else 10.0
    rows = []
    with _repository() as repo:
        for what, work, evaluations, limit in (
            (f"16 processes running, none ending within {length:g} s",
             lambda request: sleeping_child(request, length), 16, 0.05),
            ("16 workers sleeping 0.5 s, 32 evaluations a second", sleeping, 16 * 16, 0.05),
            ("16 workers with `sleep 0.5` processes, 32 a second", sleeping_child, 16 * 16, None),
        ):  # fmt: skip
            clock = Clock()
            _search(
                repo, f"cpu-{len(rows)}", evaluations,
                lambda _, w=work: ThreadExecutor(w, 16), clock,
            )  # fmt: skip
            rows.append(Row(what, clock.cpu, "of a core", target=limit))
    return Table(
        "coordinator-cpu",
        "CPU of the coordinator while 16 evaluations run",
        rows,
        "From the first dispatch to the last outcome; the children's own CPU is not counted.",
    )


def memory(quick: bool) -> Table:
    """`memory`: resident size over many evaluations."""
    evaluations = 1500 if quick else 5000
    sizes: list[tuple[int, float]] = []

    def each(count: int) -> None:
        if count % (evaluations // 20) == 0:
            gc.collect()
            sizes.append((count, _resident_mb()))

    with _repository() as repo:
        _search(
            repo, "memory", evaluations, lambda _: ThreadExecutor(do_nothing, 8), Clock(each=each)
        )
    settled = sizes[len(sizes) // 4 :]
    slope = _slope(settled) * 1000
    growth = settled[-1][1] - settled[0][1]
    return Table(
        "memory",
        f"Resident memory over {evaluations:,} evaluations, 8 threads",
        [
            Row("at the end", sizes[-1][1], "MB"),
            Row("growth over the last three quarters", growth, "MB"),
            Row("per 1,000 evaluations (their records in the manifest)", slope, "MB", target=10.0),
        ],
    )


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _slope(points: list[tuple[int, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
