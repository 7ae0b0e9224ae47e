"""Beam search over git commits: idea -> implement -> sweep -> score.

`ideas` proposes and `agents` implement, `evaluating` measures one candidate, `deciding` compares,
and `run` owns a run: it is the only writer of `records`. Deciding is pure; doing (git, agents,
sweeps, files) is at the edge.
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.tree.records.store import load as load_manifest
    from treewright.tree.report.tree_summary import write_report
    from treewright.tree.validation.checks import validate
    from treewright.tree.validation.checks import write_report as write_validation_report
    from treewright.tree.validation.findings import Finding

_PUBLIC = {
    "Finding": ("treewright.tree.validation.findings", "Finding"),
    "load_manifest": ("treewright.tree.records.store", "load"),
    "validate": ("treewright.tree.validation.checks", "validate"),
    "write_report": ("treewright.tree.report.tree_summary", "write_report"),
    "write_validation_report": ("treewright.tree.validation.checks", "write_report"),
}

__all__ = [
    "Finding",
    "load_manifest",
    "validate",
    "write_report",
    "write_validation_report",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
