"""`make demo`, end to end: the real command on the real example, checked by its manifest."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXPECTED = tomllib.loads((EXAMPLES / "expected.toml").read_text(encoding="utf-8"))["ideas"]


def test_the_demo_promotes_only_ideas_that_help(tmp_path: Path, treewright):
    place = tmp_path / "a place with spaces"
    # A PATH without the tests' Python: the demo must select the right `python` itself.
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        cwd=tmp_path,
        env={**os.environ, "TREEWRIGHT_DEMO_DIR": str(place), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    repo = place / "forecast"
    run_dir = repo / ".treewright" / "tree_runs" / "demo"
    assert done.stdout.rstrip().endswith(str(run_dir / "TREE_SUMMARY.md"))
    assert (run_dir / "TREE_SUMMARY.md").is_file()
    for heading in ("The accepted ideas", "Cheats, rejected:", "Breakages, rejected:"):
        assert heading in done.stdout
    assert git(repo, "status", "--porcelain") == ""

    manifest = json.loads((run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["stop_reason"] == "max_depth_reached"
    check_decisions(manifest)

    validated = treewright("tree", "--tree-run-id", "demo", "--validate-only", cwd=repo)
    assert validated.returncode == 0, validated.stdout + validated.stderr

    again = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env={**os.environ, "TREEWRIGHT_DEMO_DIR": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    ("better", "kinds", "complaint"),
    [
        (False, {"cheats", "breaks"}, "did not improve mase"),
        (True, {"breaks"}, "no cheat was rejected"),
        (True, {"cheats"}, "no breakage was rejected"),
    ],
)
def test_the_demo_fails_if_a_promise_is_broken(better, kinds, complaint, capsys):
    verdict = runpy.run_path(str(EXAMPLES / "demo.py"))["verdict"]
    assert verdict(better, kinds) == 1
    assert complaint in capsys.readouterr().err
    assert verdict(True, {"cheats", "breaks", "noise"}) == 0


def check_decisions(manifest: dict) -> None:
    """Assert that only ideas that help were promoted and the others refused for the expected
    reason."""
    ideas = {
        idea["path"]: Path(idea["origin"]).stem
        for node in manifest["nodes"].values()
        for idea in node["ideas"]
    }
    tried = set()
    for evaluation in manifest["evaluations"].values():
        idea = ideas[evaluation["idea_path"]]
        tried.add(idea)
        decision = evaluation["decision"]
        reasons = set(decision["gate"]["reasons"])
        if evaluation["confirmation"] is not None:
            reasons |= set(evaluation["confirmation"]["reasons"])
        if EXPECTED[idea]["kind"] == "helps":
            assert decision["promoted_to_node_id"] is not None, (idea, decision)
        else:
            assert decision["promoted_to_node_id"] is None, (idea, decision)
            assert EXPECTED[idea]["code"] in reasons, (idea, reasons)
    kinds = {EXPECTED[idea]["kind"] for idea in tried}
    assert kinds == {"helps", "noise", "hurts", "breaks", "cheats"}
    best = max(manifest["nodes"].values(), key=lambda node: len(node["idea_chain"]))
    assert len(best["idea_chain"]) == 3


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repo, capture_output=True, text=True, check=True
    ).stdout
