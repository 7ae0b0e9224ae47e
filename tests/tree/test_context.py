"""What agents are told about the node that they start from."""

from __future__ import annotations

from pathlib import Path

from tests.tree.making import LOSS, manifest
from treewright.tree.config import Config, MutateIdeas, SweepConfig
from treewright.tree.ideas import expansion as context
from treewright.tree.ideas.history import Outcomes
from treewright.tree.records.model import Node

CONFIG = Config(
    baseline_csv="b.csv",
    sweep=SweepConfig(command="true"),
    metrics=[LOSS],
    ideas=[MutateIdeas(files=["a.py"])],
)
METRIC = {"name": "loss", "direction": "minimize", "verdict": "unknown"}
MEASURED = {
    "parent_relative": {
        "recommendation": {"grade": "strong", "reasons": ["primary_metric_improved"]},
        "metrics": [METRIC | {"baseline_mean": 2.0, "candidate_mean": 1.5, "verdict": "improved"}],
    },
    "root_relative": {
        "recommendation": {"grade": "weak", "reasons": []},
        "metrics": [METRIC | {"baseline_mean": 2.0, "candidate_mean": None}],
    },
}


def test_ideas_and_measurements_are_told_also_where_a_mean_is_missing(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "idea.md").write_text("# Lower the rate\n")
    run = manifest()
    node = run.nodes["n0001"] = Node(
        node_id="n0001", parent_node_id="n0000", depth=1, commit="c" * 40, tree="x", ref=None,
        worktree_path=None, baseline_results_csv_path="", sweep_config_limit=8,
        idea_chain=["idea.md"], status="frontier", created_at="", node_ideas_dir="node_ideas/n0001",
    )  # fmt: skip
    monkeypatch.setattr(context, "last_summary", lambda *_: MEASURED)
    outcomes = Outcomes(tmp_path, tmp_path, CONFIG, run, node)
    told = context.describe_node(outcomes)
    assert "- Lower the rate" in told
    assert "Measured, parent-relative: grade strong (primary_metric_improved)" in told
    assert "- loss (minimize): 2 -> 1.5, improved" in told
    assert "- loss (minimize): 2 -> ?, unknown" in told
