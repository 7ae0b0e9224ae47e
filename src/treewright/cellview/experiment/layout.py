"""Where everything of an experiment is: the only place that spells a path inside its directory.

The names are part of the file format (docs/experiments.md).
"""

from __future__ import annotations

EXPERIMENTS_DIR = "experiments"
"""Below the state directory of a project."""

PLAN = "plan.json"
CELLS = "cells"
"""A directory a planned run, each a whole proof run."""
CELL = "cell.json"
"""In a planned run's directory: its measures, written when it is finished."""
RESULTS = "results.csv"

SOLVE_RATES_PLOT = "solve_rate.svg"


def solved_plot(number: int) -> str:
    """The solve rate by dose, of the curve with that number."""
    return f"dose_solved_{number}.svg"


def steps_plot(number: int) -> str:
    return f"dose_steps_{number}.svg"
