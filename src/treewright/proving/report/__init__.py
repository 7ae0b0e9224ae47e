"""What a proof run did, for people: `report.md` and `plots/`, made from its files.

Everything here is derived and can be deleted and rebuilt, also while a run goes on.
"""

from __future__ import annotations

from treewright.proving.report.writer import write_report

__all__ = ["write_report"]
