"""What a run has found, for people: TREE_SUMMARY.md and pictures, made from the manifest.

Everything here is derived and can be deleted and rebuilt, also while a run goes on.
"""

from __future__ import annotations

from treewright.tree.report.tree_summary import write_report

__all__ = ["write_report"]
