"""The document of the comparison page, made from `runs.comparison`.

Curves keep only the points at which the best changes. Lists are cut, and their length is
given. A run with files that lead out of its directory is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from treewright.dashboard import run_files
from treewright.dashboard.roots import RunRef
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.proving import layout as proof_layout
from treewright.runs.compared_runs import compare_runs
from treewright.runs.comparison import ComparedRun, Point
from treewright.runs.run_loader import load_run
from treewright.tree.records import layout as tree_layout

MAX_RUNS = 8
MAX_LISTED = 200
_FILES = {
    "tree": (tree_layout.MANIFEST, tree_layout.EVENTS),
    "proof": (proof_layout.RUN, proof_layout.TRACE, proof_layout.RESULT),
}


def describe(runs: Sequence[RunRef]) -> dict[str, Any]:
    """Return the document of the page. If runs cannot be compared, `problem` gives the reason."""
    try:
        if len(runs) > MAX_RUNS:
            raise UsageError(
                f"at most {MAX_RUNS} runs fit on a page; `treewright compare` has more"
            )
        for run in runs:
            _check_confined(run)
        found = compare_runs([load_run(run.path) for run in runs])
    except (TreewrightError, OSError) as error:
        return {"problem": str(error)}
    shared = [one for one in found.shared if len(set(one.outcomes.values())) > 1]
    return {
        "problem": "",
        "kind": found.kind,
        "runs": [_run(ref, one) for ref, one in zip(runs, found.runs, strict=True)],
        "at_equal": found.at_equal,
        "differences": found.differences,
        "notes": found.notes,
        "shared": len(found.shared),
        "alone": {name: len(tried) for name, tried in found.alone.items()},
        "disagreeing": len(shared),
        "disagreements": shared[:MAX_LISTED],
    }


def _check_confined(run: RunRef) -> None:
    for name in _FILES.get(run.kind, ()):
        if (run.path / name).exists() and run_files.resolve(run.path, name) is None:
            raise UsageError(f"{run.run_id}: {name} leads out of the run's directory")


def _run(ref: RunRef, one: ComparedRun) -> dict[str, Any]:
    document = msgspec.to_builtins(one)
    for name in ("tried", "path"):
        del document[name]
    return document | {"key": ref.key, "points": list(_changes(one.points))}


def _changes(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points at which the best changes, and the last point."""
    before: float | None = None
    for point in points:
        if point.best != before or point is points[-1]:
            yield point
        before = point.best
