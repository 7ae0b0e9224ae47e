"""Validation of a run: integrity, consistency, and every decision recomputed from the files.

In: a run directory and its repository. Out: a list of findings. It writes only
VALIDATION_REPORT.md and may import everything below `tree.run`. Read first: `checks.py`, the list
of checks; `decisions.py` and `choices.py`, which repeat the decisions of the two kinds of search.
"""

from __future__ import annotations

from treewright.tree.validation.checks import validate, write_report
from treewright.tree.validation.findings import Finding

__all__ = ["Finding", "validate", "write_report"]
