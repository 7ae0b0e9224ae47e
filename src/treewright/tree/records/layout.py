"""The paths of a tree run, and the names of its branches.

Functions return paths relative to the run directory, written with `/`, as records have them:
`run_dir / layout.experiment(eval_id)` is the directory. The names are part of the file format
(docs/manifest.md). Files that only one module writes and none reads, such as the logs of agents,
are named in that module.
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
"""Directory next to the idea files of a node while a source generates them."""


def failed_source(number: int) -> str:
    """Return the directory of the last failed logs of an idea source; numbers begin with 0."""
    return f"failed_source_{number}"


def runs_directory(repo: Path) -> Path:
    """Return the directory of all tree runs of a repository."""
    return repo / STATE_DIR / RUNS_DIR


def sweep_directory(name: str) -> str:
    """Return the log directory of a sweep without an idea: the root's, or a held-out sweep."""
    return f"{EVALUATIONS}/{name}"


def experiment(eval_id: str) -> str:
    """Return the directory with the logs and the summary of an evaluation."""
    return f"{EVALUATIONS}/{eval_id}/experiment"


def summary(experiment_dir: str) -> str:
    """Return the summary in an evaluation's `experiment_dir`."""
    return f"{experiment_dir}/{SUMMARY}"


def worktree(node_id: str) -> str:
    """Return the worktree of a node."""
    return f"{WORKTREES}/{node_id}"


def ideas(node_id: str) -> str:
    """Return the directory of a node's ideas."""
    return f"{IDEAS}/{node_id}"


def idea_file(number: int) -> str:
    """Return the file name of a node's idea; numbers begin with 0."""
    return f"idea_{number:03d}.md"


def gantt_picture(depth: int) -> str:
    """Return the file name of the chart of a depth's evaluations over time."""
    return f"gantt_depth_{depth}.svg"


def results(name: str) -> str:
    """Return the file name of a sweep's results."""
    return f"{name}_results.csv"


def parent_of(eval_id: str) -> str:
    """Return the name of the worktree in which an evaluation's parent is swept in turns with it."""
    return f"{eval_id}_parent"


def repeat(name: str, number: int) -> str:
    """Return the name of a repeat of a sweep; the first repeat has the plain name."""
    return name if number == 1 else f"{name}_{number}"


def outbox(name: str) -> str:
    """Return the directory to which an isolated sweep writes its results while it runs."""
    return f"{name}_outbox"


def evaluator(name: str) -> str:
    """Return the name of the root checkout from which a worktree's sweep runs."""
    return f"{name}_evaluator"


def heldout(name: str) -> str:
    """Return the name of the held-out sweep of a node or an evaluation."""
    return f"{name}_heldout"


def branches(run_id: str) -> str:
    """Return the prefix of the names of all branches of a run."""
    return f"refs/heads/treewright/{run_id}/"


def node_ref(run_id: str, node_id: str) -> str:
    """Return the branch that keeps a promoted commit reachable."""
    return f"{branches(run_id)}node/{node_id}"


def candidate_ref(run_id: str, eval_id: str) -> str:
    """Return the branch of a candidate, which exists until its fate is decided."""
    return f"{branches(run_id)}cand/{eval_id}"
