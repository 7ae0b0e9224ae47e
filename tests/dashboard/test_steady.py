"""A search without a barrier as the pages see it, while it grows."""

from __future__ import annotations

from pathlib import Path

from tests.toy import ToyRepository
from tests.tree.steady.running import steady
from treewright.dashboard import tree_view, words
from treewright.dashboard.live_tree import LiveTree


def test_every_change_reaches_a_page_that_follows(tmp_path: Path) -> None:
    toy = ToyRepository.create(tmp_path / "target repo")
    live = LiveTree(toy.run_dir("run"))
    rows: dict[str, object] = {}
    version = None

    def follow(_: object = None) -> None:
        nonlocal version
        live.refresh()
        if live.manifest is None:
            return
        found = tree_view.tree(live, {}, version)
        rows.update({row.id: row for row in (*found["nodes"], *found["evals"])})
        version = found["version"]
        summary = tree_view.summary(live.manifest)
        assert summary["policy"] == "mcts (lookahead 4)"
        assert summary["progress"]["of"] == 14

    manifest = steady(toy.path, "run", "mcts", observer=follow)
    follow()
    whole = tree_view.tree(live, {}, None)
    assert rows == {row.id: row for row in (*whole["nodes"], *whole["evals"])}
    assert {row.id for row in whole["nodes"] if row.frontier} == set(manifest.frontier)
    for evaluation in manifest.evaluations.values():
        assert words.decision(evaluation)[0]
