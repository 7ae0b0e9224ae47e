"""Comparisons and confirmations, recomputed from the CSV files to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.storage import untrusted
from treewright.tree.deciding import objectives, promotion, scoring
from treewright.tree.deciding.results import Results
from treewright.tree.deciding.scoring import score_results
from treewright.tree.records import layout, summary
from treewright.tree.records.model import Comparison, Confirmation, Evaluation, Recommendation
from treewright.tree.run.creation import expected_ids, heldout_ids
from treewright.tree.validation.findings import Finding, Subject


@dataclass(frozen=True, slots=True)
class Measured:
    """The evaluations with recomputed scores and confirmations, and their differences."""

    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def measure_again(subject: Subject) -> Measured:
    """Recompute every evaluation that has an outcome."""
    measured = Measured()
    root = _bytes(subject, subject.manifest.root_baseline_csv_path)
    expected = expected_ids(subject.manifest, subject.config, root)
    for evaluation in subject.manifest.evaluations.values():
        if evaluation.status in ("pending", "running"):
            measured.evaluations[evaluation.eval_id] = evaluation
            continue
        parent, root = _scores(subject, evaluation, expected)
        again = msgspec.structs.replace(
            evaluation,
            parent_relative=parent.recommendation if parent else None,
            root_relative=root.recommendation if root else None,
        )
        measured.findings.extend(_score_findings(evaluation, again))
        measured.findings.extend(_summary_findings(subject, evaluation, parent, root))
        if evaluation.confirmation is not None:
            again.confirmation = _confirm(subject, again)
            if evaluation.confirmation != again.confirmation:
                fields = ", ".join(_differing(evaluation.confirmation, again.confirmation))
                message = f"its confirmation is not what its CSV files give: {fields}"
                finding = Finding("confirmation_differs", evaluation.eval_id, message)
                measured.findings.append(finding)
        measured.evaluations[evaluation.eval_id] = again
    return measured


def _scores(
    subject: Subject, evaluation: Evaluation, expected: list[int]
) -> tuple[Comparison | None, Comparison | None]:
    if evaluation.error is not None:
        if evaluation.parent_relative is None and evaluation.root_relative is None:
            return None, None
        refused = Comparison(scoring.rejection([evaluation.error.code], len(expected)), [])
        return refused, refused
    parent = subject.manifest.nodes[evaluation.parent_node_id]
    results = evaluation.candidate_results_csv_path or f"{evaluation.experiment_dir}/no_results.csv"
    return score_results(
        _bytes(subject, results),
        _bytes(subject, parent.baseline_results_csv_path),
        _bytes(subject, subject.manifest.root_baseline_csv_path),
        expected,
        subject.config,
        subject.manifest.seed,
    )


def _bytes(subject: Subject, path: str) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read, which `files` reports."""
    try:
        return untrusted.read(subject.run_dir / path, untrusted.LARGEST_RESULTS)
    except OSError:
        return None


def _score_findings(recorded: Evaluation, again: Evaluation) -> Iterator[Finding]:
    for name in ("parent_relative", "root_relative"):
        mine: Recommendation | None = getattr(recorded, name)
        fresh: Recommendation | None = getattr(again, name)
        if mine != fresh:
            fields = ", ".join(_differing(mine, fresh))
            message = f"{name} is not what its CSV files give: {fields}"
            yield Finding("score_differs", recorded.eval_id, message)


def _differing(recorded: msgspec.Struct | None, again: msgspec.Struct | None) -> list[str]:
    if recorded is None or again is None:
        return [f"recorded {recorded}, recomputed {again}"]
    return [
        f"{name} {getattr(recorded, name)!r} (recomputed {getattr(again, name)!r})"
        for name in recorded.__struct_fields__
        if getattr(recorded, name) != getattr(again, name)
    ]


def _summary_findings(
    subject: Subject, evaluation: Evaluation, parent: Comparison | None, root: Comparison | None
) -> Iterator[Finding]:
    """Check summary.json, which people and generators read: it must agree."""
    if parent is None or root is None:
        return
    document = summary.read(subject.run_dir / layout.summary(evaluation.experiment_dir))
    if document is None:
        message = f"{layout.summary(evaluation.experiment_dir)} is missing or not readable"
        yield Finding("summary_unreadable", evaluation.eval_id, message)
        return
    scores = document.get("scoring_summary")
    scores = scores if isinstance(scores, dict) else {}
    expected: dict[str, msgspec.Struct] = {"recommendation": parent.recommendation}
    for name, comparison in (("parent_relative", parent), ("root_relative", root)):
        expected[name] = (
            comparison if evaluation.error is None else _Failed(comparison.recommendation)
        )
    for name, value in expected.items():
        if _differs(scores.get(name), value):
            message = f"summary.json: scoring_summary.{name} is not what the CSV files give"
            yield Finding("summary_differs", evaluation.eval_id, message)


class _Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a comparison that was not made."""

    recommendation: Recommendation


def _differs(written: object, expected: msgspec.Struct) -> bool:
    """Return whether two entries differ, compared as records rather than as text."""
    try:
        return msgspec.convert(written, type=type(expected)) != expected
    except msgspec.ValidationError:
        return True


def _confirm(subject: Subject, evaluation: Evaluation) -> Confirmation:
    """Recompute a recorded confirmation; only the names of its files are taken from the record."""
    recorded = evaluation.confirmation
    assert recorded is not None
    manifest = subject.manifest
    ids = heldout_ids(manifest)
    parent = manifest.nodes[evaluation.parent_node_id]
    baseline = parent.artifacts.heldout
    if recorded.results_csv is None or baseline is None:
        # Nothing was measured; why, no file can tell.
        heldout = scoring.rejection(recorded.reasons, len(ids))
    else:
        heldout = scoring.compare(
            _read(subject, baseline.path),
            _read(subject, recorded.results_csv.path),
            ids,
            subject.config.metrics,
            manifest.seed,
        ).recommendation
    selection = evaluation.parent_relative or scoring.rejection([], 0)
    start = ids[0] if ids else 0
    again = promotion.confirm(
        selection,
        heldout,
        start,
        start + len(ids),
        must_be_significant=subject.config.primary.seeds is not None,
    )
    return msgspec.structs.replace(
        again,
        results_csv=recorded.results_csv,
        baseline_csv_path=baseline.path if baseline else None,
    )


def _read(subject: Subject, path: str) -> Results:
    wanted = heldout_ids(subject.manifest).__contains__
    return objectives.read(_bytes(subject, path), subject.config.metrics, wanted)
