"""The context that agents receive about the node that they start from."""

from __future__ import annotations

from pathlib import Path

from tests.toy import ToyRepository
from tests.tree.making import LOSS, manifest
from tests.tree.runs import search
from treewright.tree.config import Config, MutateIdeas, SweepConfig, load
from treewright.tree.ideas import node_description
from treewright.tree.ideas.node_description import render_history
from treewright.tree.ideas.search_history import Outcomes, Returned
from treewright.tree.records import store
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


def test_the_context_has_ideas_and_measurements_when_a_mean_is_missing(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "idea.md").write_text("# Lower the rate\n")
    run = manifest()
    node = run.nodes["n0001"] = Node(
        node_id="n0001", parent_node_id="n0000", depth=1, commit="c" * 40, tree="x", ref=None,
        worktree_path=None, baseline_results_csv_path="", sweep_config_limit=8,
        idea_chain=["idea.md"], status="frontier", created_at="", node_ideas_dir="node_ideas/n0001",
    )  # fmt: skip
    monkeypatch.setattr(node_description, "last_summary", lambda *_: MEASURED)
    outcomes = Outcomes(tmp_path, tmp_path, CONFIG, run, node)
    told = node_description.describe_node(outcomes)
    assert "- Lower the rate" in told
    assert "Measured, parent-relative: grade strong (primary_metric_improved)" in told
    assert "- loss (minimize): 2 -> 1.5, improved" in told
    assert "- loss (minimize): 2 -> ?, unknown" in told


def test_the_context_has_the_output_of_the_evaluation(tmp_path: Path) -> None:
    """The context has further columns of the results and the end of the sweep's output."""
    toy = ToyRepository.create(tmp_path / "repo")
    sweep = (toy.path / "sweep.sh").read_text()
    columns = r"sed -i '1s/$/,hits,note/; 2,$s/$/,7,too slow/' "
    toy.write(
        "sweep.sh", f'{sweep}{columns} "$TREEWRIGHT_RESULTS_CSV"\necho artifact: a long tail\n'
    )
    toy.commit()
    run_dir = search(toy.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    run = store.load(run_dir)
    config = load(toy.path / "treewright.toml")
    outcomes = Outcomes(toy.path, run_dir, config, run, run.nodes["n0001"])
    assert outcomes.returned() == Returned(
        {"hits": 7.0}, ["note: too slow"], "artifact: a long tail"
    )
    told = "\n".join(render_history(outcomes, 1000))
    for part in ("- hits: 7", "- note: too slow", "artifact: a long tail"):
        assert part in told
