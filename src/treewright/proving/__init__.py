"""Proof search: AND/OR graphs over Lean goals, from a statement to a checked proof.

A target (a proposition, a file or a project) enters, and a run directory leaves: `run.json`,
`trace.jsonl`, `result.json`, a report and the file with its proofs. A goal is proved if Lean's
replay check accepted its script.

The package may import `premises`, `lean`, `llm`, `search` and `kernel`. The distributed runner is
`treewright.cellview`, which builds on this package; neither runner knows of the other.

Read first: `phases.py` (one goal from search to result), `search.py` (the loop of one search),
`records.py` (the lines of the trace).
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.proving.measures.aggregation import aggregation
    from treewright.proving.measures.gratification import gratification, root_series
    from treewright.proving.measures.intervals import clustered_mean, mcnemar, rate
    from treewright.proving.trace import read_trace

_PUBLIC = {
    "aggregation": ("treewright.proving.measures.aggregation", "aggregation"),
    "clustered_mean": ("treewright.proving.measures.intervals", "clustered_mean"),
    "gratification": ("treewright.proving.measures.gratification", "gratification"),
    "mcnemar": ("treewright.proving.measures.intervals", "mcnemar"),
    "rate": ("treewright.proving.measures.intervals", "rate"),
    "read_trace": ("treewright.proving.trace", "read_trace"),
    "root_series": ("treewright.proving.measures.gratification", "root_series"),
}

__all__ = [
    "aggregation",
    "clustered_mean",
    "gratification",
    "mcnemar",
    "rate",
    "read_trace",
    "root_series",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
