"""The cap on evaluations holds, and no idea is chosen beyond it."""

from __future__ import annotations

import json

from tests.toy import ToyRepository


def test_no_more_ideas_are_chosen_than_the_budget_allows(toy: ToyRepository, treewright) -> None:
    done = treewright(
        "tree", "--tree-run-id", "run", "--ideas-per-node", "2", "--beam-width", "2",
        "--max-total-idea-evals", "3", "--sweep-config-limit", "8", "--until-done",
        "--repo", str(toy.path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stop_reason"] == "max_total_idea_evals"
    manifest = json.loads((toy.run_dir("run") / "manifest.json").read_text())
    chosen = [idea for node in manifest["nodes"].values() for idea in node["ideas"]]
    assert len(chosen) == len(manifest["evaluations"]) == 3
    checked = treewright("tree", "--tree-run-id", "run", "--validate-only", "--repo", str(toy.path))
    assert json.loads(checked.stdout)["findings"] == []
