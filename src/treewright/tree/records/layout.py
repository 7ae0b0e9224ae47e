"""Where everything of a tree run is: the only place that spells a path inside a run directory.

Paths in records are relative to the run directory and written with `/`; functions here return
those. `run_dir / layout.experiment(eval_id)` is the place itself. The names are part of the
file format (docs/manifest.md): what is renamed here is not found in the runs of today. What one
module writes for people and nobody looks for, such as the logs of agents, is named there.
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import artifacts
from treewright.kernel.storage.run_directory import LEASE_DIR as LEASE
from treewright.kernel.storage.run_directory import STATE_DIR

__all__ = ["LEASE"]

RUNS_DIR = "tree_runs"
MANIFEST = "manifest.json"
EVENTS = "events.jsonl"
REPORT = "TREE_SUMMARY.md"
VALIDATION = "VALIDATION_REPORT.md"
PICTURES = "report"
TREE_PICTURE = "tree.svg"
SCORE_PICTURE = "score.svg"
ARTIFACTS = artifacts.DIRECTORY
CANDIDATES = "cand"
WORKTREES = "wt"
EVALUATIONS = "eval"
IDEAS = "node_ideas"
CLUSTER = "cluster"
STEERING = "steering"

SUMMARY = "summary.json"
USAGE = "usage.jsonl"
SWEEP_LOG = "sweep.log"
TESTS_LOG = "tests.log"
ROOT_BASELINE = "root_baseline"
PREFLIGHT = "preflight"
IDEA_FILES = "idea_*.md"
GENERATING = ".generating"
"""Beside the idea files of a node, while they are being made."""


def failed_source(number: int) -> str:
    """Beside the idea files of a node: the logs of the idea source of that number, from 0, when
    it last failed."""
    return f"failed_source_{number}"


def runs_directory(repo: Path) -> Path:
    """Where the runs of a repository are."""
    return repo / STATE_DIR / RUNS_DIR


def sweep_directory(name: str) -> str:
    """Logs of a sweep that belongs to no idea: the root's, a node's held-out one."""
    return f"{EVALUATIONS}/{name}"


def experiment(eval_id: str) -> str:
    """Logs and summary of an evaluation."""
    return f"{EVALUATIONS}/{eval_id}/experiment"


def summary(experiment_dir: str) -> str:
    """The summary of the evaluation with this `experiment_dir`."""
    return f"{experiment_dir}/{SUMMARY}"


def worktree(node_id: str) -> str:
    return f"{WORKTREES}/{node_id}"


def ideas(node_id: str) -> str:
    return f"{IDEAS}/{node_id}"


def idea_file(number: int) -> str:
    """The name of a node's idea with this number, from 0."""
    return f"idea_{number:03d}.md"


def gantt_picture(depth: int) -> str:
    """When each evaluation of a depth ran."""
    return f"gantt_depth_{depth}.svg"


def results(name: str) -> str:
    """The artifact with the results of an evaluation's sweep."""
    return f"{name}_results.csv"


def parent_of(eval_id: str) -> str:
    """What the worktree is called in which an evaluation's parent is swept beside it."""
    return f"{eval_id}_parent"


def repeat(name: str, number: int) -> str:
    """What the repeat of that number of a sweep is called; the first is as if it were alone."""
    return name if number == 1 else f"{name}_{number}"


def outbox(name: str) -> str:
    """Where an isolated sweep of that name writes its results, as long as it runs."""
    return f"{name}_outbox"


def evaluator(name: str) -> str:
    """Beside the worktree of that name: the checkout that its sweep has to itself."""
    return f"{name}_evaluator"


def heldout(name: str) -> str:
    """What a held-out sweep of a node or an evaluation is called."""
    return f"{name}_heldout"


def branches(run_id: str) -> str:
    """What the names of all branches of a run begin with."""
    return f"refs/heads/treewright/{run_id}/"


def node_ref(run_id: str, node_id: str) -> str:
    """The branch that keeps a promoted commit reachable."""
    return f"{branches(run_id)}node/{node_id}"


def candidate_ref(run_id: str, eval_id: str) -> str:
    """The branch of a candidate, until its fate is decided."""
    return f"{branches(run_id)}cand/{eval_id}"
