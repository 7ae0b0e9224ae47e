"""VALIDATION_REPORT.md: the checks, the findings and advice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.kernel.text.markdown import code, escape, table
from treewright.tree.records import layout
from treewright.tree.records.model import Manifest
from treewright.tree.validation.advice import advice
from treewright.tree.validation.checks import (
    CHECKS,
    GIT_FAILED,
    HISTORY_CODES,
    STRUCTURE_CODES,
)
from treewright.tree.validation.findings import Finding
from treewright.tree.validation.history import read_history


def write_report(run_dir: Path, findings: list[Finding]) -> Path:
    """Write the report about the findings of `validate`."""
    path = run_dir / layout.VALIDATION
    atomic.write_text(path, render(run_dir.name, read_history(run_dir).manifest, findings))
    return path


def render(run_id: str, manifest: Manifest | None, findings: list[Finding]) -> str:
    verdict = (
        f"**{len(findings)} finding{'s' if len(findings) > 1 else ''}.**"
        if findings
        else "**No findings: the run is what its files say.**"
    )
    parts = [f"# Validation of tree run {code(run_id)}", verdict]
    if manifest is not None:
        parts.append(_scope(manifest))
    parts += ["## What was checked", _checked(manifest, findings)]
    if findings:
        parts += ["## Findings", _listed(findings), "## What to do", _advice(findings)]
    return "\n\n".join(parts) + "\n"


def _scope(manifest: Manifest) -> str:
    measured = sum(e.status in ("completed", "failed") for e in manifest.evaluations.values())
    said = (
        f"{len(manifest.nodes)} nodes, {len(manifest.evaluations)} evaluations ({measured} with "
        f"an outcome), {manifest.spent.confirmations} confirmations, {manifest.current_depth} "
        "depths decided."
    )
    if manifest.dry_run:
        said += " This is a dry run: it has no git objects, and checks of those are skipped."
    return said


def _checked(manifest: Manifest | None, findings: list[Finding]) -> str:
    counts = Counter(finding.code for finding in findings)
    failed_git = {finding.subject for finding in findings if finding.code == GIT_FAILED}
    broken = manifest is None or any(counts[name] for name in STRUCTURE_CODES)
    rows = [
        [
            "manifest.json is whole and is what events.jsonl adds up to",
            _found(HISTORY_CODES, counts),
        ],
        [
            "Records refer to each other soundly",
            "not checked: no state could be read"
            if manifest is None
            else _found(STRUCTURE_CODES, counts),
        ],
    ]
    for check in CHECKS:
        if broken:
            said = "not checked: the checks above must pass first"
        elif check.needs_git and manifest is not None and manifest.dry_run:
            said = "skipped: a dry run has no git objects"
        elif check.name in failed_git:
            said = "not completed: git failed"
        else:
            said = _found(check.codes, counts)
        rows.append([check.name, said])
    return table(("check", "result"), rows)


def _found(codes: tuple[str, ...], counts: Counter[str]) -> str:
    number = sum(counts[name] for name in codes)
    return f"**{number} finding{'s' if number > 1 else ''}**" if number else "ok"


def _listed(findings: list[Finding]) -> str:
    rows = [
        [code(finding.code), code(finding.subject), escape(finding.message, 600)]
        for finding in findings
    ]
    return table(("code", "subject", "what is wrong"), rows)


def _advice(findings: list[Finding]) -> str:
    seen = dict.fromkeys(finding.code for finding in findings)
    return "\n".join(f"- {code(name)}: {escape(advice(name), 400)}" for name in seen)
