"""What the coordinator adds to an evaluation, against Optuna's journal; growth; reopening."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import noop_run
from benchmarks.measure import Row, Table, file_system, medians, seconds, take_turns
from treewright.tree.records import layout, store
from treewright.tree.run.open import RunRequest, open_run

_SIDE_BY_SIDE = 300  # two depths: 100 ideas of the root, then 100 of each of two nodes
_FEW, _MANY = 100, 10_000
_MEMORY = Path("/dev/shm")


def overhead(quick: bool) -> Table:
    """A no-op evaluation here and a no-op trial there, each durable by default: on the disk, and
    in memory, where syncing costs nothing and the processor decides."""
    places = [place for place in (Path.cwd(), _MEMORY) if place.is_dir()]
    rows = [row for place in places for row in _overhead(place, quick)]
    note = "Both include starting the run and closing it. On a disk the clock is mostly fsync."
    count = _few(quick)
    return Table("overhead", f"Per no-op evaluation, durable ({count} in a run)", rows, note)


def _few(quick: bool) -> int:
    return 100 if quick else _SIDE_BY_SIDE


def _overhead(place: Path, quick: bool) -> list[Row]:
    count, numbers = _few(quick), iter(range(1_000_000))
    with tempfile.TemporaryDirectory(dir=place, prefix=".bench-") as name:
        directory = Path(name)
        repo = noop_run.target(directory)
        contestants = {
            "ours": lambda: noop_run.run(repo, f"side{next(numbers)}", count, beam_width=2),
            "optuna": lambda: _optuna(directory / f"{next(numbers)}.log", count),
        }
        clock: dict[str, list[float]] = {name: [] for name in contestants}

        def measured(name: str) -> float:
            started = time.process_time()
            clock[name].append(seconds(contestants[name]))
            return time.process_time() - started

        turns = {name: partial(measured, name) for name in contestants}
        processor = take_turns(turns, 3 if quick else 7)
    rows = []
    for what, taken in (("clock", medians(clock)), ("processor", medians(processor))):
        ours, theirs = (1000 * taken[name] / count for name in ("ours", "optuna"))
        where = f"{file_system(place)}, {what}"
        rows.append(Row(f"{where}: Optuna JournalStorage, per trial", theirs, "ms"))
        # In memory the clock shows how long git takes to start a run.
        target = None if (place, what) == (_MEMORY, "clock") else 1.0
        name = f"{where}: treewright, per evaluation"
        rows.append(Row(name, ours, "ms", "Optuna", ours / theirs, target))
    return rows


def growth(quick: bool) -> Table:
    """A long run beside short ones, and the beginning of the long one beside its end."""
    many = 2_000 if quick else _MANY
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        repo = noop_run.target(Path(name))
        short, batches = [], []
        with noop_run.opened(repo, "long", many) as coordinator:
            going = True
            while going:
                before, started = len(coordinator.manifest.evaluations), time.perf_counter()
                going = coordinator.advance()
                done = len(coordinator.manifest.evaluations) - before
                if done:
                    batches.append((time.perf_counter() - started) / done)
                short.append(_depth_alone(repo, f"short{len(short)}"))
        reopened = _reopening(repo, "long")
    few, last = 1000 * median(short), 1000 * median(batches[-5:])
    whole = 1000 * sum(batches[1:]) / len(batches[1:])
    return Table(
        "growth",
        f"The same at {many:,} evaluations",
        [
            Row(f"the first {_FEW} of a run, each", few, "ms"),
            Row(f"a run of {many:,}, each", whole, "ms", f"{_FEW}", whole / few, 1.5),
            Row("its last depths, each", last, "ms", f"{_FEW}", last / few, 1.5),
            *reopened,
        ],
        f"Short runs were made between the depths of the long one. {noop_run.IDEAS_PER_NODE} "
        f"ideas a node, beam {noop_run.BEAM_WIDTH}.",
    )


def _depth_alone(repo: Path, run_id: str) -> float:
    """Per evaluation of a new run's first depth, without opening and closing the run."""
    with noop_run.opened(repo, run_id, _FEW) as coordinator:
        return seconds(coordinator.advance) / _FEW


def _reopening(repo: Path, run_id: str) -> list[Row]:
    run_dir = repo / ".treewright" / "tree_runs" / run_id
    snapshot = (run_dir / layout.MANIFEST).read_bytes()

    def read() -> float:
        (run_dir / layout.MANIFEST).write_bytes(snapshot)
        return seconds(lambda: store.load(run_dir))

    def replay() -> float:
        (run_dir / layout.MANIFEST).unlink(missing_ok=True)
        return seconds(lambda: store.load(run_dir))

    taken = medians(take_turns({"read": read, "replay": replay}, 5))
    owned = [_open_and_close(repo, run_id) for _ in range(5)]
    size = f"{len(snapshot) / 1e6:.1f} MB manifest"
    return [
        Row(f"read it again, snapshot up to date ({size})", taken["read"], "s", target=1.0),
        Row("read it again from events.jsonl alone", taken["replay"], "s", target=1.0),
        Row("take the lease, read, recover", median(o for o, _ in owned), "s", target=1.0),
        Row("write the manifest and release", median(c for _, c in owned), "s"),
    ]


def _open_and_close(repo: Path, run_id: str) -> tuple[float, float]:
    run = open_run(RunRequest(repo, run_id))
    return seconds(run.__enter__), seconds(lambda: run.__exit__(None, None, None))


def _optuna(path: Path, count: int) -> None:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = optuna.create_study(storage=JournalStorage(JournalFileBackend(str(path))))
    made.optimize(lambda _: 0.0, n_trials=count)
