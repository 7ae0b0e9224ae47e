"""Records for tests of the deciding parts, made in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treewright.tree.config import MetricConfig
from treewright.tree.model import EvalError, Evaluation, Recommendation
from treewright.tree.results import Problems, Results

LOSS = MetricConfig(name="loss", direction="minimize", primary=True)
COST = MetricConfig(name="cost", direction="minimize")


def results(**columns: Sequence[float] | Mapping[int, float]) -> Results:
    """Sound results: a list is the values of config 0, 1, ..."""
    values = {
        name: dict(column) if isinstance(column, Mapping) else dict(enumerate(column))
        for name, column in columns.items()
    }
    ids = set.intersection(*(set(column) for column in values.values()))
    return Results(values, set(ids), set(ids), Problems())


def recommendation(
    score: float = 0.1, *, passes: bool = True, reasons: Sequence[str] = (), rows: int = 8
) -> Recommendation:
    return Recommendation(
        should_explore=passes,
        grade="strong" if passes else "weak",
        score=score,
        reasons=list(reasons),
        rows_used=rows,
        rows_expected=8,
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
) -> Evaluation:
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
        parent_relative=recommendation(parent, passes=passes),
        root_relative=recommendation(root, passes=passes),
        error=EvalError(error, error) if error else None,
    )
