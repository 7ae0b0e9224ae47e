"""The names of the files in the directory of an experiment. No other module spells them.

They are part of the file format (docs/experiments.md).
"""

from __future__ import annotations

EXPERIMENTS_DIR = "experiments"
"""Relative to the state directory of a project."""

PLAN = "plan.json"
CELLS = "cells"
"""Contains a directory for each planned run, which is a whole proof run."""
CELL = "cell.json"
"""The measures of a planned run, written when it is finished."""
RESULTS = "results.csv"

SOLVE_RATES_PLOT = "solve_rate.svg"


def solved_plot(number: int) -> str:
    """Return the name of the picture of the solve rate by dose, for a numbered curve."""
    return f"dose_solved_{number}.svg"


def steps_plot(number: int) -> str:
    """Return the name of the picture of the steps by dose, for a numbered curve."""
    return f"dose_steps_{number}.svg"
