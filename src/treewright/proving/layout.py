"""The names of the files in the directory of a proof run. No other module spells them.

They are part of the file format (docs/proof-runs.md).
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage.run_directory import LEASE_DIR as LEASE
from treewright.kernel.storage.run_directory import STATE_DIR

__all__ = ["LEASE"]

RUNS_DIR = "proof_runs"
RUNS = Path(STATE_DIR) / RUNS_DIR
"""Relative to the directory in which a search was started."""

RUN = "run.json"
TRACE = "trace.jsonl"
RESULT = "result.json"
USAGE = "usage.jsonl"
REPORT = "report.md"
PLOTS = "plots"
OUTCOMES_PLOT = "outcomes.svg"
AGENTS_PLOT = "agents.svg"
INTERVENTIONS_PLOT = "interventions.svg"
PROVED = "proved"
PATCH = "proved.patch"
PROJECT_PATCH = Path(STATE_DIR) / "proofs.patch"
"""The proofs of all files of a project; relative to the directory in which they were searched."""


def root_value_plot(goal: int) -> str:
    """Return the name of the picture of a goal's root value."""
    return f"root_value_{goal}.svg"


def growth_plot(goal: int) -> str:
    """Return the name of the picture of a goal's growing graph."""
    return f"growth_{goal}.svg"
