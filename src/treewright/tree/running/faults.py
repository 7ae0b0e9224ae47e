"""Which failures say nothing about a candidate: a fault is not a verdict.

An endpoint that is down, a key that expired, a machine that is busy would fail every
candidate alike. What failed so is neither recorded as failed nor learned from: it goes
back to the queue, and the run pauses until somebody has put it right.
"""

from __future__ import annotations

from treewright.kernel.errors import TreewrightError

WORKER_LOST = "worker_lost"
MACHINE_BUSY = "machine_busy"
INTERNAL_ERROR = "internal_error"
CANCELLED = "cancelled"
QUARANTINED = "quarantined"

OUTAGES = frozenset(
    {
        "llm_unreachable", "llm_unavailable", "llm_timeout", "llm_no_key", "llm_denied",
        "agent_missing", MACHINE_BUSY, CANCELLED,
    }
)  # fmt: skip
"""Never the candidate's doing, as far as anybody can tell."""

DOUBTFUL = frozenset({WORKER_LOST, INTERNAL_ERROR, "llm_failed", "agent_failed", "agent_timeout"})
"""The candidate's doing if others of its depth got through, an outage if none did."""

OF_THE_SWEEP = frozenset({"sweep_failed", "sweep_timeout"})
"""The candidate's doing if the sweep works on the root, an outage if it does not."""

MOST_PAUSES = 3
"""So often an evaluation may pause a run whose other evaluations get through."""


class Paused(TreewrightError):
    """The depth could not be finished for reasons that are not the candidates'."""


def explain_pause(depth: int, reasons: dict[str, list[str]], examples: dict[str, str]) -> str:
    """One line: what failed, how often, and that nothing is lost. `reasons` is code -> ids."""
    count = sum(map(len, reasons.values()))
    what = "; ".join(f"{code}: {examples[code]}" for code in sorted(reasons))
    subject = "1 evaluation" if count == 1 else f"{count} evaluations"
    return (
        f"paused at depth {depth}: {subject} could not be made ({what}). Nothing was decided "
        "and these ideas stay untried; put that right and run the same command again"
    )
