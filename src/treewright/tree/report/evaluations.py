"""Every evaluation's times: queue wait, duration, attempts, worker; with the Gantt pictures."""

from __future__ import annotations

from treewright.kernel.clock import seconds_between
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.tree.records import layout
from treewright.tree.records.model import DepthRecord, Evaluation
from treewright.tree.report import reasons
from treewright.tree.report.costs import PHASES
from treewright.tree.report.run_facts import Facts

_HEADER = ("evaluation", "fate", "attempts", "waited", "took", *PHASES, "worker")


def section(facts: Facts, folder: str, pictures: list[str]) -> str:
    """A picture and a folded table per depth."""
    parts = ["## Evaluations"]
    for record in facts.manifest.depths:
        if not record.eval_ids:
            continue
        parts.append(f"### Depth {record.depth}: {len(record.eval_ids):,} evaluations")
        picture = layout.gantt_picture(record.depth)
        if picture in pictures:
            parts.append(f"![When each evaluation of depth {record.depth} ran]({folder}/{picture})")
        parts.append(_folded(facts, record))
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _folded(facts: Facts, record: DepthRecord) -> str:
    rows = [_row(facts.manifest.evaluations[eval_id]) for eval_id in record.eval_ids]
    shown = table(_HEADER, rows, "llrrrrrrrl")
    return f"<details><summary>Times</summary>\n\n{shown}\n\n</details>"


def _row(evaluation: Evaluation) -> list[str]:
    worker = evaluation.worker or "–"
    if evaluation.worker_pid is not None:
        worker += f" (pid {evaluation.worker_pid})"
    return [
        code(evaluation.eval_id),
        escape(reasons.fate(evaluation)),
        str(evaluation.attempt),
        numbers.seconds(seconds_between(evaluation.queued_at, evaluation.started_at)),
        numbers.seconds(seconds_between(evaluation.started_at, evaluation.finished_at)),
        *(numbers.seconds(evaluation.timings.get(phase)) for phase in PHASES),
        escape(worker),
    ]
