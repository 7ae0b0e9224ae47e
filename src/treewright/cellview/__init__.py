"""The distributed (cell-view) runner: many cells with local views over one shared graph.

`CellSettings` enter, as part of `run.json`, and iterations leave, in the order of a logical clock.
The runner is separate from the centralized engine: neither imports the other, and neither falls
back to the other. `experiment/` plans and compares runs; `measures.py` computes the effect of
damage.

The package may import `proving` and the packages below it. Read first: `runner.py` (the clock),
`cell.py` (one cell), `damage.py` (interventions).
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.cellview.measures import (
        Trial,
        control,
        dose_response,
        robustness,
        trend,
        trial_of,
    )

_PUBLIC = {
    "Trial": ("treewright.cellview.measures", "Trial"),
    "control": ("treewright.cellview.measures", "control"),
    "dose_response": ("treewright.cellview.measures", "dose_response"),
    "robustness": ("treewright.cellview.measures", "robustness"),
    "trend": ("treewright.cellview.measures", "trend"),
    "trial_of": ("treewright.cellview.measures", "trial_of"),
}

__all__ = [
    "Trial",
    "control",
    "dose_response",
    "robustness",
    "trend",
    "trial_of",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
