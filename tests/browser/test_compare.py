"""Choosing runs on the home page, and the page of their comparison."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import served
from tests.toy import ToyRepository
from treewright.proving import layout as proof_layout
from treewright.tree.records import layout

pytestmark = pytest.mark.xdist_group("browser")
SAMPLES = Path(__file__).parents[1] / "proving" / "sample_runs"


def test_two_runs_are_chosen_and_compared(
    page: Page, searched: ToyRepository, tmp_path: Path
) -> None:
    for name in ("run", "again"):
        shutil.copytree(searched.run_dir(samples.RUN_ID), layout.runs_directory(tmp_path) / name)
    proof_runs.solved(tmp_path)
    with served("--runs", tmp_path) as server:
        page.goto(server.base)
        bar = page.locator(".compare-bar")
        expect(bar).to_contain_text("Choose two or more")
        page.get_by_label("Compare run").check()
        page.get_by_label("Compare proof").check()
        expect(bar).to_contain_text("these are of two")
        page.get_by_label("Compare proof").uncheck()
        page.get_by_label("Compare again").check()
        page.get_by_role("link", name="Compare 2 runs").click()
        expect(page.locator("h1")).to_have_text("Comparison")
        expect(page.get_by_role("img", name="Best found by evaluations")).to_be_visible()
        expect(page.get_by_role("img", name="Best found by time")).to_be_visible()
        expect(page.locator("path.series")).to_have_count(4)
        expect(page.get_by_role("region", name="Differences")).to_contain_text("loss")
        expect(page.locator("main")).to_contain_text("shared, 0 only in")
        assert page.evaluate("window.hacked") is None
        width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{width} pixels too wide"
        page.goto(f"{server.base}/compare?run=tree/0/run&run=proof/0/proof")
        expect(page.locator("h1")).to_have_text("These runs cannot be compared")
        expect(page.locator("main p")).to_contain_text(". Choose others")


def test_two_proof_runs_are_compared_by_closed_goals(page: Page, tmp_path: Path) -> None:
    """One run finished with real Lean; the other is a copy that was killed before its verdict."""
    runs = tmp_path / proof_layout.RUNS
    for name in ("whole", "killed"):
        shutil.copytree(SAMPLES / "centralized", runs / name)
    trace = runs / "killed" / proof_layout.TRACE
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:-1]))
    (runs / "killed" / proof_layout.RESULT).unlink()
    with served("--runs", tmp_path) as server:
        page.goto(server.base)
        page.get_by_label("Compare whole").check()
        page.get_by_label("Compare killed").check()
        page.get_by_role("link", name="Compare 2 runs").click()
        expect(page.locator("h1")).to_have_text("Comparison")
        rows = page.get_by_role("region", name="Runs", exact=True).get_by_role("row")
        expect(rows.nth(2)).to_contain_text("killed")
        expect(rows.nth(2)).to_contain_text("not finished")
        for axis in ("simulations", "time"):
            expect(page.get_by_role("img", name=f"Goals proved by {axis}")).to_be_visible()
        expect(page.locator("path.series")).to_have_count(4)
        differences = page.get_by_role("region", name="Differences")
        expect(differences).to_contain_text("goals")
        expect(differences).to_contain_text("unknown: too few pairs")
        expect(page.get_by_role("region", name="Shared")).to_contain_text("proved")
        expect(page.locator("main")).to_contain_text("1 shared, 0 only in")
