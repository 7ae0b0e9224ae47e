"""Pages of a search without a barrier while it grows."""

from __future__ import annotations

from pathlib import Path

from tests.toy import ToyRepository
from tests.tree.steady.running import steady
from treewright.dashboard import tree_detail, tree_view
from treewright.dashboard.tree_library import LiveTree
from treewright.tree.records import events as ev
from treewright.tree.records.steering import new_command
from treewright.tree.run import command_files
from treewright.tree.run.command_files import CommandFile


def test_the_page_shows_the_users_changes(tmp_path: Path) -> None:
    toy = ToyRepository.create(tmp_path / "target repo")
    run_dir = toy.run_dir("run")
    live = LiveTree(run_dir)
    versions: list[str] = []

    def observe(event: object) -> None:
        live.refresh()
        versions.append(live.version)
        if isinstance(event, ev.Completed) and event.eval_id == "e000003":
            command_files.submit(run_dir, CommandFile(new_command("ban", node_id="n0000")))
            command_files.submit(run_dir, CommandFile(new_command("boost", node_id="n0099")))

    manifest = steady(toy.path, "run", "mcts", observer=observe)
    assert "n0000" not in manifest.frontier
    live.refresh()
    refused, banned = tree_view.summary(manifest)["changes"]
    assert banned["words"].startswith("ban n0000, by ")
    assert refused["words"].endswith("refused, there is no node n0099")
    assert (banned["refused"], refused["refused"]) == (False, True)
    said = [(one["action"], one["what"], one["node"], one["why"]) for one in (banned, refused)]
    assert said == [
        ("ban", "n0000", "n0000", ""),
        ("boost", "n0099", "n0099", "there is no node n0099"),
    ]
    for one in (banned, refused):
        assert one["by"] in one["words"]
        assert one["asked"] <= one["at"]
    before = next(
        version for version in versions if (live.touched_since(version) or set()) >= {"n0000"}
    )
    rows = tree_view.tree(manifest, live.version, live.touched_since(before), {})["nodes"]
    assert not next(row for row in rows if row.id == "n0000").frontier


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
        found = tree_view.tree(live.manifest, live.version, live.touched_since(version), {})
        rows.update({row.id: row for row in (*found["nodes"], *found["evals"])})
        version = found["version"]
        summary = tree_view.summary(live.manifest)
        assert summary["policy"] == "mcts (lookahead 4)"
        assert summary["progress"]["of"] == 14

    manifest = steady(toy.path, "run", "mcts", observer=follow)
    follow()
    whole = tree_view.tree(manifest, live.version, None, {})
    assert rows == {row.id: row for row in (*whole["nodes"], *whole["evals"])}
    assert {row.id for row in whole["nodes"] if row.frontier} == set(manifest.frontier)
    for evaluation in manifest.evaluations.values():
        assert tree_detail.describe_decision(evaluation)[0]
