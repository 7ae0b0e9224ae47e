"""Removal of candidates that are no longer needed, and repair after an owner that died.

All of it runs after the facts are recorded and can be repeated; none of it decides anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.procs import proctree
from treewright.kernel.storage import atomic, untrusted
from treewright.tree.records import layout
from treewright.tree.records.model import Evaluation, Manifest
from treewright.tree.repository.worktrees import Worktrees

_KEPT_OF_A_FAILURE = ("*.md", "*.log", layout.SUMMARY)
_WRITING_SECONDS = 3600.0
"""A temporary command file older than this was left by a process that died."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Whether to keep the worktrees of rejected candidates and all artifacts of failures."""

    rejected_worktrees: bool = False
    failed_artifacts: bool = False


def process_owner(run_dir: Path, epoch: int) -> str:
    """Return the marker of processes that an owner of this run starts."""
    return f"{_run_marker(run_dir)}-{epoch}"


def end_orphans(run_dir: Path, epoch: int) -> list[int]:
    """End the processes of this run that an earlier owner started; return their ids."""
    return proctree.kill_marked(
        f"{_run_marker(run_dir)}-", spare=f"{process_owner(run_dir, epoch)}:"
    )


def _run_marker(run_dir: Path) -> str:
    return "tree-" + hashlib.sha256(str(run_dir.resolve()).encode()).hexdigest()[:16]


def remove_temporaries(run_dir: Path) -> None:
    """Remove files that were half written when an owner or a steering command was killed."""
    for directory in (run_dir, run_dir / layout.ARTIFACTS, run_dir / layout.PICTURES):
        atomic.sweep_temporaries(directory)
    atomic.sweep_temporaries(run_dir / layout.STEERING, older_seconds=_WRITING_SECONDS)


def repair(run_dir: Path, manifest: Manifest, trees: Worktrees, retention: Retention) -> None:
    """Check out nodes and prune candidates, as a killed owner should have done."""
    needed = [
        e.eval_id
        for e in manifest.evaluations.values()
        if e.status in ("completed", "failed")
        and (e.decision is None or (_was_worktree_kept(manifest, e) and not _is_promoted(e)))
    ]
    untrusted.remove_tree(run_dir / layout.sweep_directory(layout.PREFLIGHT))
    if not manifest.dry_run:
        trees.repair({node.node_id: node.commit for node in manifest.nodes.values()}, needed)
    if not retention.failed_artifacts:
        for evaluation in _decided_last(manifest):
            if evaluation.status == "failed":
                _prune_failure(run_dir / evaluation.experiment_dir)


def _decided_last(manifest: Manifest) -> list[Evaluation]:
    """Return the evaluations that a killed owner may not have pruned."""
    policy_record = manifest.policy_record
    if policy_record is not None:
        return [e for e in manifest.evaluations.values() if e.place == policy_record.settled]
    if not manifest.current_depth:
        return []
    last = manifest.depths[manifest.current_depth - 1].eval_ids
    return [manifest.evaluations[eval_id] for eval_id in last]


def prune(
    run_dir: Path,
    evaluations: Iterable[Evaluation],
    trees: Worktrees | None,
    retention: Retention,
) -> None:
    """Remove worktrees and branches of decided candidates, and the bulk of failures.

    Args:
        run_dir: The directory of the run.
        evaluations: The evaluations that have been decided.
        trees: The worktrees; None in a dry run.
        retention: The files to keep, as the user asked.
    """
    decided = list(evaluations)
    if trees is not None:
        kept = [e for e in decided if retention.rejected_worktrees and not _is_promoted(e)]
        trees.remove_candidates({e.eval_id for e in decided} - {e.eval_id for e in kept})
        for evaluation in kept:
            _keep_candidate(evaluation, trees)
    for evaluation in decided:
        if evaluation.status == "failed" and not retention.failed_artifacts:
            _prune_failure(run_dir / evaluation.experiment_dir)


def _keep_candidate(evaluation: Evaluation, trees: Worktrees) -> None:
    """Check out a candidate that was evaluated on another machine."""
    missing = not trees.candidate_path(evaluation.eval_id).exists()
    if evaluation.candidate_commit is not None and missing:
        trees.add_candidate(evaluation.eval_id, evaluation.candidate_commit)


def _was_worktree_kept(manifest: Manifest, evaluation: Evaluation) -> bool:
    """Return whether the owner that decided the evaluation's depth kept rejected worktrees."""
    return manifest.depths[evaluation.depth - 1].rejected_worktrees_kept


def _is_promoted(evaluation: Evaluation) -> bool:
    return evaluation.decision is not None and evaluation.decision.fate == "promoted"


def _prune_failure(experiment: Path) -> None:
    """Remove all files of an experiment but those that explain its failure."""
    if not experiment.is_dir():
        return
    for path in experiment.iterdir():
        kept = any(path.match(name) for name in _KEPT_OF_A_FAILURE)
        if not kept or path.is_dir() or path.is_symlink():
            untrusted.remove_tree(path)
