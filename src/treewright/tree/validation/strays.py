"""Strays: directories, branches and worktrees of a run that no record names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treewright.tree.records import layout
from treewright.tree.repository.git import git
from treewright.tree.validation.findings import Finding, Subject
from treewright.tree.validation.repository import branches

_WORKTREE = "worktree "


def check_directories(subject: Subject) -> Iterator[Finding]:
    """Check that directories under wt/, eval/, node_ideas/ and cand/ belong to a record."""
    manifest = subject.manifest
    nodes = set(manifest.nodes)
    heldout = {layout.heldout(node_id) for node_id in nodes}
    known = {
        layout.WORKTREES: nodes,
        layout.IDEAS: nodes,
        layout.EVALUATIONS: {*manifest.evaluations, *heldout, layout.ROOT_BASELINE},
        layout.CANDIDATES: _candidates(subject),
    }
    for folder, names in known.items():
        for path in _entries(subject.run_dir / folder):
            if path.name not in names:
                message = f"{folder}/{path.name} belongs to no record of the run"
                yield Finding("stray_directory", f"{folder}/{path.name}", message)


def check_git_strays(subject: Subject) -> Iterator[Finding]:
    """Check that branches and worktrees of this run belong to a node or to a candidate that may
    have one."""
    manifest = subject.manifest
    prefix = layout.branches(manifest.tree_run_id)
    candidates = _candidates(subject)
    for ref in sorted(branches(subject)):
        kind, _, name = ref.removeprefix(prefix).partition("/")
        if not (
            (kind == "node" and name in manifest.nodes)
            or (kind == "cand" and name in candidates and _may_have_branch(subject, name))
        ):
            yield Finding("stray_branch", ref, "no node or candidate of the run has this branch")
    for path in _registered(subject):
        folder, name = path.parent.name, path.name
        if folder == layout.CANDIDATES and name in candidates:
            continue
        if not (folder == layout.WORKTREES and name in manifest.nodes):
            message = "git has a worktree here that no node or candidate of the run has"
            yield Finding("stray_worktree", f"{folder}/{name}", message)


def _candidates(subject: Subject) -> set[str]:
    """Return the candidates that may have a worktree: undecided ones, and rejected ones, because
    --keep-rejected-worktrees may have been given. A promoted one has become a node."""
    return {
        evaluation.eval_id
        for evaluation in subject.manifest.evaluations.values()
        if evaluation.decision is None or evaluation.decision.fate != "promoted"
    }


def _may_have_branch(subject: Subject, eval_id: str) -> bool:
    """Return whether a candidate may have a branch: with a worktree, or before its decision, since
    another machine may have evaluated it."""
    if subject.manifest.evaluations[eval_id].decision is None:
        return True
    return (subject.run_dir / layout.CANDIDATES / eval_id / ".git").exists()


def _registered(subject: Subject) -> list[Path]:
    """Return git's worktrees inside this run directory."""
    run_dir = subject.run_dir.resolve()
    listed = git(subject.repo, "worktree", "list", "--porcelain").splitlines()
    paths = [Path(line[len(_WORKTREE) :]) for line in listed if line.startswith(_WORKTREE)]
    return sorted(path for path in paths if path.resolve().is_relative_to(run_dir))


def _entries(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []
