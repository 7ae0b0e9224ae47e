"""Looking at a run without owning it: its report written again, its records checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.errors import TreewrightError
from treewright.tree.records import description, store
from treewright.tree.report import write_report
from treewright.tree.run.open import locate
from treewright.tree.validation import Finding, validate
from treewright.tree.validation import write_report as write_validation


@dataclass(frozen=True, slots=True)
class Inspected:
    """`document` is what an invocation prints; a path is None if it was not asked for."""

    document: dict[str, Any]
    findings: list[Finding]
    report: Path | None
    validation: Path | None


def inspect(repo: Path, run_id: str, *, report: bool, validation: bool) -> Inspected:
    """Writes TREE_SUMMARY.md, VALIDATION_REPORT.md or both. What cannot be loaded is an error,
    unless the validation says why."""
    repo, run_dir = locate(repo, run_id)
    findings: list[Finding] = []
    checked = written = None
    if validation:
        findings = validate(run_dir, repo)
        checked = write_validation(run_dir, findings)
    try:
        manifest = store.load(run_dir)
    except TreewrightError:
        if not findings:
            raise
        document: dict[str, Any] = {"tree_run_id": run_id}
    else:
        if report:
            manifest = store.refresh(run_dir)
            written = write_report(run_dir, manifest)
        document = description.describe(manifest, run_dir)
    if validation:
        document["findings"] = [
            {"code": f.code, "subject": f.subject, "message": f.message} for f in findings
        ]
    return Inspected(document, findings, written, checked)
