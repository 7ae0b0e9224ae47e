"""The runs of a plan, made one after the other; finished runs are not repeated.

A run is finished when its `cell.json` exists, which is written last. A killed experiment is
continued with the same plan in the same directory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.cellview.experiment.layout import CELLS, PLAN
from treewright.cellview.experiment.plan import Plan, PlannedRun, runs_of
from treewright.cellview.experiment.report import write_summary
from treewright.cellview.experiment.results import MeasuredRun, read_result, write_result
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage import atomic
from treewright.kernel.storage.lease import Lease
from treewright.kernel.storage.run_directory import LEASE_DIR
from treewright.kernel.text import jsontext

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """Reported before a run, without a result, and after it; `earlier`: it was finished before."""

    done: int
    total: int
    planned: PlannedRun
    result: MeasuredRun | None
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """The state of an experiment. `report` is written even if runs are missing."""

    directory: Path
    report: Path
    finished: int
    total: int
    solved: int

    @property
    def complete(self) -> bool:
        """Whether every planned run is finished."""
        return self.finished == self.total


MakeRun = Callable[[PlannedRun, Path], MeasuredRun | None]
"""Makes or resumes a planned run in its directory; returns None if it was stopped before its end.
An error ends the experiment, and finished runs are kept."""


class _StoredPlan(msgspec.Struct, frozen=True):
    format_version: int
    plan: Plan


def decode_plan(data: bytes, path: Path) -> Plan:
    """Decode the plan with which an experiment was begun."""
    try:
        stored = jsontext.decode(data, type=_StoredPlan)
    except msgspec.DecodeError as error:
        raise StorageError(f"cannot read {path}: {error}") from None
    if stored.format_version != FORMAT_VERSION:
        raise StorageError(
            f"{path} has format_version {stored.format_version}, this treewright reads "
            f"{FORMAT_VERSION}; use the treewright that wrote it"
        )
    return stored.plan


def run_experiment(
    plan: Plan,
    directory: Path,
    make_run: MakeRun,
    progress: Callable[[Progress], None] = lambda progress: None,
    *,
    force: bool = False,
) -> ExperimentState:
    """Make the missing runs, then write `results.csv`, `report.md` and `plots/`."""
    atomic.make_directory(directory)
    lease = Lease.acquire(directory / LEASE_DIR, force=force)
    try:
        _same_plan(plan, directory / PLAN)
        results = _run_missing(plan, directory, make_run, progress, lease)
        lease.check()
        report = write_summary(plan, results, directory)
    finally:
        lease.release()
    total = len(runs_of(plan))
    solved = sum(result.solved for result in results.values())
    return ExperimentState(directory, report, len(results), total, solved)


def _run_missing(
    plan: Plan,
    directory: Path,
    make_run: MakeRun,
    progress: Callable[[Progress], None],
    lease: Lease,
) -> dict[str, MeasuredRun]:
    runs = runs_of(plan)
    results: dict[str, MeasuredRun] = {}
    for planned in runs:
        place = directory / CELLS / planned.cell_id
        result = read_result(place, planned)
        earlier = result is not None
        if result is None:
            progress(Progress(len(results), len(runs), planned, None))
            atomic.make_directory(place)
            result = make_run(planned, place)
            if result is None:
                break
            lease.check()
            write_result(place, result)
        results[planned.cell_id] = result
        progress(Progress(len(results), len(runs), planned, result, earlier))
    return results


def _same_plan(plan: Plan, path: Path) -> None:
    """Write the plan, or compare it with the plan with which the directory was begun."""
    stored = _StoredPlan(FORMAT_VERSION, plan)
    data = msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"
    try:
        before = jsontext.decode(path.read_bytes())
    except FileNotFoundError:
        atomic.write_bytes(path, data)
        return
    except (OSError, msgspec.DecodeError) as error:
        raise StorageError(f"cannot read {path}: {error}") from None
    found = _differences(_flat(before), _flat(jsontext.decode(data)))
    if found:
        raise UsageError(
            f"{path.parent} was begun with another plan: {found[0]}"
            + (f" (and {len(found) - 1} more differences)" if len(found) > 1 else "")
            + "; continue with that plan, or in another directory (--run-id)"
        )


def _differences(before: dict[str, object], now: dict[str, object]) -> list[str]:
    absent = object()

    def show(value: object) -> str:
        return "absent" if value is absent else repr(value)

    return [
        f"`{key.removeprefix('plan.')}` was {show(old)}, is now {show(new)}"
        for key in dict.fromkeys([*before, *now])
        if (old := before.get(key, absent)) != (new := now.get(key, absent))
    ]


def _flat(value: object, path: str = "") -> dict[str, object]:
    """Return every number and text of a document by its path."""
    if isinstance(value, dict):
        parts = [_flat(inner, f"{path}.{key}".lstrip(".")) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [_flat(inner, f"{path}[{place}]") for place, inner in enumerate(value)]
    else:
        return {path: value}
    return {key: found for part in parts for key, found in part.items()}
