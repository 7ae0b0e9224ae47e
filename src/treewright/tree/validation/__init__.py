"""Does a run say what its files say? Integrity, consistency, and every decision made again.

Reads everything, changes nothing but VALIDATION_REPORT.md.
"""

from __future__ import annotations

from treewright.tree.validation.checks import validate
from treewright.tree.validation.findings import Finding
from treewright.tree.validation.report import write_report

__all__ = ["Finding", "validate", "write_report"]
