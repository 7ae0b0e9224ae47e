"""The report of a proof run: `report.md` and `plots/`, derived from the files of the run."""

from __future__ import annotations

from treewright.proving.report.writer import write_report

__all__ = ["write_report"]
