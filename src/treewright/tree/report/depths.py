"""Progress round by round."""

from __future__ import annotations

from treewright.kernel.clock import seconds_between
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import table
from treewright.tree.records.model import DepthRecord
from treewright.tree.report.run_facts import Facts

_HEADER = (
    "depth",
    "expanded",
    "evaluated",
    "failed",
    "passed the gate",
    "confirmed",
    "promoted",
    "best score",
    "wall time",
)


def section(facts: Facts) -> str:
    """A row per depth; "best score" is that depth's best promoted one, root-relative."""
    if not facts.manifest.depths:
        return ""
    rows = [_row(facts, record) for record in facts.manifest.depths]
    return f"## Progress by depth\n\n{table(_HEADER, rows, 'r' * len(_HEADER))}"


def _row(facts: Facts, record: DepthRecord) -> list[str]:
    manifest = facts.manifest
    evaluations = [manifest.evaluations[eval_id] for eval_id in record.eval_ids]
    decided = [e.decision for e in evaluations if e.decision is not None]
    asked = [e.confirmation for e in evaluations if e.confirmation is not None]
    held = sum(confirmation.held for confirmation in asked)
    scores = [
        found.score
        for node_id in record.promoted
        if (found := manifest.nodes[node_id].root_relative) is not None
    ]
    return [
        str(record.depth),
        str(len(record.frontier)),
        f"{sum(e.status in ('completed', 'failed') for e in evaluations)} of {len(evaluations)}",
        str(sum(e.status == "failed" for e in evaluations)),
        str(sum(decision.gate.passed for decision in decided)),
        f"{held} of {len(asked)}" if manifest.confirm_configs else "–",
        str(len(record.promoted)),
        numbers.percent(max(scores)) if scores else "–",
        numbers.seconds(seconds_between(record.started_at, record.finished_at)),
    ]
