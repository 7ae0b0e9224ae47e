"""Findings: a stable code, the id or path it concerns, a line with the problem, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from treewright.tree.config import Config
from treewright.tree.records.model import Manifest

_REBUILD = (
    "Delete manifest.json and run the same command again: it is rebuilt from events.jsonl. "
    "Nothing is lost."
)
_RESTORE = (
    "Restore the run directory from a backup. If there is none, do not trust what rests on this "
    "file; start a new run."
)
_EDITED = (
    "The recorded state was changed after it was written. Restore events.jsonl and manifest.json "
    "from a backup; do not trust this run's decisions otherwise."
)
_REPAIR = "Run the same command again: it checks nodes out afresh and removes what is left over."
ADVICE = {
    "manifest_missing": "Run the same command again: it is rebuilt from events.jsonl.",
    "manifest_unreadable": _REBUILD,
    "manifest_version": "Use the version of treewright that wrote the run.",
    "manifest_checksum": _REBUILD,
    "manifest_differs_from_events": _REBUILD,
    "events_unreadable": _RESTORE,
    "config_invalid": "Use the version of treewright that wrote the run.",
    "policy_unknown": "Install the plug-in that brings the policy, or use the version of "
    "treewright that wrote the run.",
    "path_outside_run": _EDITED,
    "path_missing": _RESTORE,
    "artifact_misplaced": _EDITED,
    "artifact_unreadable": _RESTORE,
    "artifact_size": _RESTORE,
    "artifact_sha256": _RESTORE,
    "idea_missing": _RESTORE,
    "idea_sha256": _RESTORE,
    "idea_key": _EDITED,
    "summary_unreadable": _RESTORE,
    "summary_differs": "The summary was edited, or its CSV files were. Restore from a backup.",
    "commit_missing": "Fetch the commit from another copy of the repository.",
    "ref_missing": _REPAIR,
    "ref_moved": "Somebody moved the branch. Run the same command again to pin the commit.",
    "protected_path_changed": "The candidate changed how it is measured. Do not use its results.",
    "worktree_missing": _REPAIR,
    "worktree_commit": "Check the node's branch out again in its worktree, or delete the "
    "worktree and run the same command again.",
    "worktree_dirty": "Undo the changes in the worktree (git restore, git clean), or keep them "
    "elsewhere: a node is its commit.",
    "stray_branch": "Run the same command again, or delete the branch: git branch -D.",
    "stray_worktree": "Run the same command again, or: git worktree remove --force.",
    "stray_directory": "Run the same command again, or remove the directory.",
    "git_failed": "Check --repo: this run belongs to another repository, or the repository is "
    "damaged.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a run. `subject` is an id or a path of the run; docs/validation.md lists the
    codes."""

    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Subject:
    """The run that a check examines."""

    run_dir: Path
    repo: Path
    manifest: Manifest
    config: Config


def advice(code: str) -> str:
    """Return the advice for a code; a code without its own advice is a contradiction in the
    records."""
    return ADVICE.get(code, _EDITED)
