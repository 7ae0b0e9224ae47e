"""The list of checks, in the order of running and reporting, and VALIDATION_REPORT.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic
from treewright.kernel.text.markdown import code, escape, table
from treewright.tree.config import Config
from treewright.tree.records import layout, store
from treewright.tree.records.model import Manifest
from treewright.tree.repository.git import GitError
from treewright.tree.validation import consistency, files, nodes, repository
from treewright.tree.validation.choices import choose_again
from treewright.tree.validation.decisions import decide_again
from treewright.tree.validation.findings import Finding, Subject, advice
from treewright.tree.validation.history import check_structure, read_history
from treewright.tree.validation.measurements import measure_again

HISTORY_CODES = (
    "manifest_missing",
    "manifest_unreadable",
    "manifest_version",
    "manifest_checksum",
    "events_unreadable",
    "manifest_differs_from_events",
)
STRUCTURE_CODES = ("ids_not_dense", "id_mismatch", "dangling_reference", "config_invalid")
GIT_FAILED = "git_failed"


@dataclass(frozen=True, slots=True)
class Check:
    """A check and the codes of its findings. `needs_git`: it is skipped in a dry run, which has no
    git objects."""

    name: str
    run: Callable[[Subject], Iterable[Finding]]
    codes: tuple[str, ...]
    needs_git: bool = False


def _recompute(subject: Subject) -> Iterable[Finding]:
    measured = measure_again(subject)
    yield from measured.findings
    manifest = subject.manifest
    if manifest.policy_record is None:
        yield from decide_again(manifest, measured.evaluations)
    else:
        yield from choose_again(manifest, manifest.policy_record, measured.evaluations)


CHECKS = (
    Check(
        "Paths exist and stay inside the run",
        files.check_paths,
        ("path_outside_run", "path_missing"),
    ),
    Check(
        "Artifacts are under artifacts/ with their size and sha256",
        files.check_artifacts,
        ("artifact_misplaced", "artifact_unreadable", "artifact_size", "artifact_sha256"),
    ),
    Check(
        "Idea files are unchanged",
        nodes.check_ideas,
        ("idea_missing", "idea_sha256", "idea_key"),
    ),
    Check(
        "Context snapshots are what the lineage had",
        nodes.check_context,
        ("context_dirs", "context_files"),
    ),
    Check(
        "Evaluations: status, outcome and decision fit",
        consistency.check_evaluations,
        ("evaluation_state", "evaluation_idea"),
    ),
    Check(
        "Nodes are what they were promoted from",
        nodes.check_nodes,
        ("idea_chain", "promotion_link", "node_state", "expansion"),
    ),
    Check(
        "Depths, frontier and expanded nodes",
        consistency.check_rounds,
        ("depth_state", "beam_overrun", "frontier_state"),
    ),
    Check("Counters and budget", consistency.check_spending, ("spending", "budget_exceeded")),
    Check(
        "Scores, confirmations, gates, ranks, choices, promotions and stop reason, "
        "recomputed from the CSV files",
        _recompute,
        (
            "score_differs",
            "summary_unreadable",
            "summary_differs",
            "confirmation_differs",
            "confirmation_missing",
            "confirmation_needless",
            "queue_differs",
            "policy_unknown",
            "choice_differs",
            "gate_differs",
            "rank_differs",
            "fate_differs",
            "promotion_differs",
            "frontier_differs",
            "stop_reason_differs",
        ),
    ),
    Check("No stray directories", files.check_directories, ("stray_directory",)),
    Check(
        "Promoted commits are present, pinned, descend from their parents, touch nothing protected",
        repository.check_commits,
        (
            "ref_name",
            "ref_missing",
            "ref_moved",
            "commit_missing",
            "tree_differs",
            "not_descendant",
            "protected_path_changed",
        ),
        needs_git=True,
    ),
    Check(
        "Node worktrees are checked out and clean",
        repository.check_worktrees,
        ("worktree_missing", "worktree_commit", "worktree_dirty"),
        needs_git=True,
    ),
    Check(
        "No stray branches or worktrees",
        repository.check_git_strays,
        ("stray_branch", "stray_worktree"),
        needs_git=True,
    ),
)


def validate(run_dir: Path, repo: Path) -> list[Finding]:
    """Return every finding about a run, in a fixed order. Writes no file."""
    if not store.exists(run_dir):
        raise UsageError(f"no tree run at {run_dir}; check --tree-run-id and --repo")
    history = read_history(run_dir)
    manifest, findings = history.manifest, history.findings
    if manifest is None:
        return findings
    broken = list(check_structure(manifest))
    try:
        config = msgspec.convert(manifest.agent_config, type=Config)
    except msgspec.ValidationError as error:
        return [*findings, *broken, Finding("config_invalid", "agent_config", str(error))]
    if broken:
        return [*findings, *broken]
    subject = Subject(run_dir, repo, manifest, config)
    for check in CHECKS:
        if manifest.dry_run and check.needs_git:
            continue
        try:
            findings += check.run(subject)
        except GitError as error:
            findings.append(Finding(GIT_FAILED, check.name, str(error)))
    return findings


def write_report(run_dir: Path, findings: list[Finding]) -> Path:
    """Write the report about the findings of `validate`."""
    path = run_dir / layout.VALIDATION
    atomic.write_text(path, render(run_dir.name, read_history(run_dir).manifest, findings))
    return path


def render(run_id: str, manifest: Manifest | None, findings: list[Finding]) -> str:
    """Return the text of VALIDATION_REPORT.md."""
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
        rows = [
            [code(each.code), code(each.subject), escape(each.message, 600)] for each in findings
        ]
        codes = dict.fromkeys(finding.code for finding in findings)
        advised = "\n".join(f"- {code(name)}: {escape(advice(name), 400)}" for name in codes)
        listed = table(("code", "subject", "what is wrong"), rows)
        parts += ["## Findings", listed, "## What to do", advised]
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
