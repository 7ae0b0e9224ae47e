"""Why each candidate that was not promoted was not."""

from __future__ import annotations

from collections import Counter

from treewright.kernel.text.markdown import code, escape, link, table
from treewright.tree.deciding import scoring
from treewright.tree.records import layout
from treewright.tree.records.model import UNSET, DepthRecord, Evaluation
from treewright.tree.report import reasons
from treewright.tree.report.run_facts import Facts


def section(facts: Facts) -> str:
    """The fates counted, then a table per depth."""
    rejected = [e for e in facts.manifest.evaluations.values() if is_rejected(e)]
    if not rejected:
        return ""
    counted = Counter(reasons.fate(e) for e in rejected)
    total = ", ".join(f"{number:,} {fate}" for fate, number in sorted(counted.items()))
    parts = ["## Why candidates were rejected", f"{len(rejected):,} rejected: {escape(total)}."]
    for record in facts.manifest.depths:
        table_of_depth = _depth(facts, record)
        if table_of_depth:
            parts += [f"### Depth {record.depth}", table_of_depth]
    return "\n\n".join(parts)


def is_rejected(evaluation: Evaluation) -> bool:
    return evaluation.decision is not None and evaluation.decision.fate != "promoted"


def _depth(facts: Facts, record: DepthRecord) -> str:
    evaluations = (facts.manifest.evaluations[eval_id] for eval_id in record.eval_ids)
    rows = [_row(facts, evaluation) for evaluation in evaluations if is_rejected(evaluation)]
    return table(("evaluation", "parent", "idea", "fate", "why", "look at"), rows) if rows else ""


def _row(facts: Facts, evaluation: Evaluation) -> list[str]:
    return [
        code(evaluation.eval_id),
        code(evaluation.parent_node_id),
        escape(facts.title(evaluation), 100),
        escape(reasons.fate(evaluation)),
        reasons.why_rejected(evaluation),
        _evidence(evaluation),
    ]


def _evidence(evaluation: Evaluation) -> str:
    """The log of a failure, or of a sweep with rows that are not sound, else the summary."""
    error = evaluation.error
    if error is not None and error.log_path is not None:
        return link(error.log_path.rpartition("/")[2], error.log_path)
    compared = evaluation.parent_relative
    was_swept = error is None and evaluation.results_from is UNSET
    if was_swept and compared and scoring.INCOMPLETE_ROWS in compared.reasons:
        return link(layout.SWEEP_LOG, f"{evaluation.experiment_dir}/{layout.SWEEP_LOG}")
    if evaluation.summary_path is not None and not (error and error.code == "internal_error"):
        return link(layout.SUMMARY, evaluation.summary_path)
    return "–"
