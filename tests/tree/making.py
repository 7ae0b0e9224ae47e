"""Build records for tests of the decision code, one line per record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.llm.usage import Usage
from treewright.tree.config import MetricConfig
from treewright.tree.deciding.results import Problems, Results
from treewright.tree.records import events as ev
from treewright.tree.records.model import (
    EvalError,
    EvalOutcome,
    Evaluation,
    Manifest,
    Node,
    NodeArtifacts,
    Recommendation,
)

LOSS = MetricConfig(name="loss", direction="minimize", primary=True)
COST = MetricConfig(name="cost", direction="minimize")


def results(**columns: Sequence[float] | Mapping[int, float]) -> Results:
    """Return sound results: a list holds the values of config 0, 1, ..."""
    values = {
        name: dict(column) if isinstance(column, Mapping) else dict(enumerate(column))
        for name, column in columns.items()
    }
    ids = set.intersection(*(set(column) for column in values.values()))
    return Results(values, set(ids), set(ids), Problems())


def recommendation(
    score: float = 0.1,
    *,
    passes: bool = True,
    reasons: Sequence[str] = (),
    rows: int = 8,
    expected: int = 8,
) -> Recommendation:
    return Recommendation(
        should_explore=passes,
        grade="strong" if passes else "weak",
        score=score,
        reasons=list(reasons),
        rows_used=rows,
        rows_expected=expected,
        primary_gain=score,
    )


def evaluation(
    number: int,
    root: float = 0.1,
    parent: float = 0.1,
    *,
    passes: bool = True,
    tree: str | None = None,
    error: str = "",
    results: str | None = None,
    code: str | None = None,
    rows: int = 8,
) -> Evaluation:
    digest = results if results is not None else f"results-{number}"
    return Evaluation(
        eval_id=f"e{number:06d}",
        parent_node_id="n0000",
        depth=1,
        idea_id="",
        idea_path="",
        idea_text_path="",
        idea_sha256="",
        experiment_dir="",
        status="failed" if error else "completed",
        candidate_tree=tree if tree is not None else f"tree-{number}",
        candidate_code=code if code is not None else f"code-{number}",
        parent_relative=recommendation(parent, passes=passes, rows=rows, expected=rows),
        root_relative=recommendation(root, passes=passes, rows=rows, expected=rows),
        error=EvalError(error, error) if error else None,
        results_csv=Artifact(f"artifacts/e{number:06d}_results.csv", digest, 10, "a sweep"),
    )


def manifest(**more) -> Manifest:
    """Return the manifest of a run that has only its root."""
    artifact = Artifact("artifacts/root_baseline.csv", "0" * 64, 10, "baseline.csv")
    root = Node(
        node_id="n0000",
        parent_node_id=None,
        depth=0,
        commit="c" * 40,
        tree="t" * 40,
        ref=None,
        worktree_path=None,
        baseline_results_csv_path=artifact.path,
        sweep_config_limit=8,
        idea_chain=[],
        status="frontier",
        created_at="2026-01-01T00:00:00.000Z",
        node_ideas_dir="node_ideas/n0000",
        artifacts=NodeArtifacts(baseline=artifact),
    )
    settings = {
        "tree_run_id": "run",
        "created_at": "2026-01-01T00:00:00.000Z",
        "ideas_per_node": 3,
        "beam_width": 1,
        "max_depth": 3,
        "sweep_config_limit": 8,
        "max_total_idea_evals": None,
        "stop_on_empty_frontier": True,
        "dedupe_scope": "node_plus_ancestors",
        "confirm_configs": 0,
        "seed": 0,
        "dry_run": True,
        "root_commit": root.commit,
        "root_commit_time": 0,
        "root_baseline_csv_path": artifact.path,
        "protected_paths": [],
        "agent_config": {},
        "environment": RunEnvironment("0", "3", "x", "h", []),
        "frontier": ["n0000"],
        "nodes": {"n0000": root},
    }
    return Manifest(**(settings | more))


def queued(number: int, depth: int = 1) -> ev.Queued:
    eval_id = f"e{number:06d}"
    return ev.Queued(
        eval_id=eval_id,
        parent_node_id="n0000",
        depth=depth,
        idea_id=f"n0000/idea_{number:03d}",
        idea_path=f"node_ideas/n0000/idea_{number:03d}.md",
        idea_sha256="1" * 64,
        experiment_dir=f"eval/{eval_id}/experiment",
    )


def finished(
    number: int,
    seconds: float = 0.1,
    cost: float = 0.0,
    *,
    error: str = "",
    usage: Usage | None = None,
) -> ev.Event:
    kind = ev.Failed if error else ev.Completed
    return kind(
        eval_id=f"e{number:06d}",
        attempt=1,
        outcome=EvalOutcome(
            candidate_commit="d" * 40,
            candidate_tree=f"tree-{number}",
            parent_relative=recommendation(number / 100),
            root_relative=recommendation(number / 100),
            timings={"sweep": seconds, "tests": seconds / 3},
            usage=usage or Usage(number, number, cost),
            error=EvalError(error, error) if error else None,
        ),
    )
