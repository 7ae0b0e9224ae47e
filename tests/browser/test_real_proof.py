"""The proof page over a search in real Lean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import program
from tests.dashboard.serving import served
from treewright.dashboard.roots import Roots

pytestmark = pytest.mark.xdist_group("browser")
STATEMENT = "∀ p q : Prop, p ∧ q → q ∧ p"


def test_a_real_search_is_shown(page: Page, tmp_path: Path) -> None:
    patient = ("--step-timeout", "60")  # the tree must not depend on the load of the machine
    search = ("--mcts-mode", "distributed", "--agents", "2", "--simulations", "20")
    done = program.run(
        ["prove", "--statement", STATEMENT, *patient, *search], cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (run,) = Roots([tmp_path]).scan()
    trace = (run.path / "trace.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in trace.splitlines()]
    (verdict,) = [line for line in lines if line["type"] == "verdict"]
    turns = sum(line["type"] == "iteration" for line in lines)
    with served("--runs", tmp_path) as running:
        page.goto(f"{running.base}/proof/0/{run.run_id}")
        expect(page.locator("h1 .chip")).to_have_text("finished")
        expect(page.locator(".script")).to_have_text(verdict["proof"])
        expect(page.locator("output")).to_have_text(f"{turns} of {turns}")
        expect(page.locator(".verdict.proved")).to_contain_text("proved after")
        outline = page.get_by_role("tree", name="Proof tree")
        outline.focus()
        outline.press("Home")
        outline.press("Enter")
        expect(page.locator(".detail .goal")).to_contain_text("p ∧ q → q ∧ p")
        expect(page.locator(".detail .verdict")).to_have_text("solved")
