"""The API's documents about a real, finished search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import samples
from tests.dashboard.serving import Server
from treewright.tree.records import store
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Manifest


@pytest.fixture
def manifest(run_dir: Path) -> Manifest:
    return store.load(run_dir)


def item(server: Server, name: str) -> dict[str, Any]:
    answer = server.get(f"/api/tree/0/run/item/{name}")
    assert answer.status_code == 200
    return answer.json()


def test_the_home_list_has_every_run(server: Server, manifest: Manifest) -> None:
    runs = {run["key"]: run for run in server.get("/api/runs").json()["runs"]}
    assert set(runs) == {"tree/0/run", "proof/0/proof"}
    run = runs["tree/0/run"]
    assert run["liveness"]["state"] == "stopped"
    assert run["liveness"]["detail"] == "the maximum depth was reached"
    done = len(manifest.evaluations)
    assert (run["progress"]["done"], run["progress"]["of"]) == (done, done)
    assert run["best"]["node"] == best_node(manifest).node_id
    assert run["spent"]["evals"] == done
    assert runs["proof/0/proof"]["progress"] == {"done": 1, "of": 1, "proved": 1}


def test_the_tree_document_matches_the_manifest(server: Server, manifest: Manifest) -> None:
    answer = server.get("/api/tree/0/run").json()
    rows = {row["id"]: row for row in answer["tree"]["evals"]}
    assert set(rows) == set(manifest.evaluations)
    assert {row["id"] for row in answer["tree"]["nodes"]} == set(manifest.nodes)
    for evaluation in manifest.evaluations.values():
        row = rows[evaluation.eval_id]
        assert evaluation.decision is not None
        assert row["fate"] == evaluation.decision.fate
        assert row["finished"] >= row["started"] >= row["queued"]
        if evaluation.error is None and evaluation.root_relative is not None:
            assert row["score"] == evaluation.root_relative.score
    again = server.get("/api/tree/0/run", params={"since": answer["tree"]["version"]}).json()
    assert (again["tree"]["nodes"], again["tree"]["evals"]) == ([], [])
    assert again["tree"]["full"] is False


def test_a_promoted_node_in_detail(server: Server, manifest: Manifest) -> None:
    node = best_node(manifest)
    found = item(server, node.node_id)
    assert found["node"]["commit"] == node.commit
    assert found["words"][0].startswith(f"Promoted to {node.node_id}, ranked ")
    loss = next(m for m in found["comparisons"]["parent"] if m["name"] == "loss")
    assert len(loss["pairs"]) == 8
    mean = sum(gain for _, gain in loss["pairs"]) / 8
    assert loss["of"]["gain"] == pytest.approx(mean)
    assert loss["of"]["gain_low"] <= mean <= loss["of"]["gain_high"]
    parent = server.get(f"/api/tree/0/run/diff/{node.node_id}").json()
    root = server.get(f"/api/tree/0/run/diff/{node.node_id}?against=root").json()
    assert parent["text"].count("+++ b/params.txt") == 1
    assert root["text"].count("\n+") > parent["text"].count("\n+"), "two ideas since the root"


def test_reasons_of_failures_are_in_words(server: Server, manifest: Manifest) -> None:
    said = {key: " ".join(item(server, key)["words"]) for key in manifest.evaluations}
    cheats = [
        key for key, e in manifest.evaluations.items()
        if e.error is not None and e.error.code == "protected_path_changed"
    ]  # fmt: skip
    assert cheats
    for key in cheats:
        assert said[key].startswith("It changed a protected path")
    for text in said.values():
        assert "\\" not in text
        assert "&lt;" not in text, "plain text is not Markdown"


def test_the_root_has_details_and_unknown_nodes_are_missing(server: Server) -> None:
    assert item(server, "n0000")["title"] == "The root"
    assert server.get("/api/tree/0/run/diff/n0000").json()["text"] == ""
    assert server.get("/api/tree/0/run/item/n9999").status_code == 404
    assert server.get("/api/tree/0/other").status_code == 404


def test_logs_come_in_pieces(server: Server, run_dir: Path) -> None:
    log = run_dir / "eval" / "e000001" / "experiment" / "sweep.log"
    log.write_text("a" * 70_000 + "end\n")
    address = "/api/tree/0/run/log/e000001/sweep.log"
    last = server.get(address).json()
    assert last["text"].endswith("end\n")
    assert last["from"] == 70_004 - len(last["text"])
    first = server.get(address, params={"offset": 0}).json()
    rest = server.get(address, params={"offset": first["next"]}).json()
    assert first["text"] + rest["text"] == log.read_text()
    assert server.get("/api/tree/0/run/log/e000001/nothing.log").status_code == 404


def test_hostile_text_is_sent_unchanged(server: Server) -> None:
    rows = server.get("/api/tree/0/run").json()["tree"]["evals"]
    assert samples.HOSTILE_TITLE in {row.get("title") for row in rows}


def test_large_runs_omit_titles_of_rejected_candidates(tmp_path: Path) -> None:
    from treewright.dashboard.roots import Roots
    from treewright.dashboard.tree_library import TreeLibrary

    samples.large(tmp_path / ".treewright" / "tree_runs" / "big", 2500)
    (run,) = Roots([tmp_path]).scan()
    library = TreeLibrary()
    summary = library.summary(run)
    assert summary["progress"]["done"] == 2500
    assert b'"evals"' in library.tree(run, None)
    shelf = library._runs.get(run)
    assert len(shelf.titles) < 100
