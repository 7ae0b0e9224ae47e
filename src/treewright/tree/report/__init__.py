"""The report of a run for the user: TREE_SUMMARY.md and its pictures.

Enters: the manifest of a run, and its directory for titles and summaries.
Leaves: files that can be deleted and written again at any time, also while the run goes on.
May import: `tree.records`, `tree.deciding.scoring`, `tree.ideas.idea_text`, `search`, `llm`,
`kernel`.
Read first: `tree_summary.py` (the sections, the pictures and the result), `tables.py` (the tables),
`reasons.py` (reason codes in words).
"""

from __future__ import annotations

from treewright.tree.report.tree_summary import write_report

__all__ = ["write_report"]
