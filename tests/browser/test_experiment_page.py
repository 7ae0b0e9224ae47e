"""The page of an experiment: its grid, its measures, the way to each run and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.experiments import HOSTILE, experiment
from tests.dashboard.serving import served
from treewright.dashboard import export

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize("page", [{"width": 400, "scheme": "dark"}], indirect=True)
def test_an_experiment_grows_and_leads_to_its_runs(page: Page, tmp_path: Path) -> None:
    experiment(tmp_path, runs=5)
    with served("--runs", tmp_path) as server:
        page.goto(server.base)
        expect(page.locator("[data-key='experiment/0/damage']")).to_contain_text("5 of 36 runs")
        page.get_by_role("link", name="damage").click()
        expect(page.locator("main")).to_contain_text("5 of 36 finished")
        boxes = page.locator(".boxes .box")
        expect(boxes).to_have_count(36)
        expect(page.locator(".boxes .waiting")).to_have_count(30)
        expect(page.locator(".boxes .interrupted")).to_have_count(1)
        expect(page.locator(".connection")).to_have_text("live")
        experiment(tmp_path)
        expect(page.locator("h1 .chip")).to_have_text("finished")
        expect(page.locator(".boxes a.proved").first).to_be_visible()
        expect(page.get_by_role("columnheader", name="solve rate").first).to_be_visible()
        expect(page.locator(".whisker .range").first).to_be_attached()
        expect(page.locator("main")).to_contain_text(HOSTILE[:20])
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.locator(".boxes a.proved").first.click()
        expect(page.get_by_role("tree", name="Proof tree")).to_be_visible()
        page.get_by_role("banner").get_by_role("link", name="damage").click()
        expect(page.locator(".boxes .box")).to_have_count(36)


def test_an_exported_experiment_opens_from_a_file(page: Page, tmp_path: Path) -> None:
    directory = experiment(tmp_path, runs=5)
    export.write(export.find(str(directory), tmp_path), tmp_path / "x.html")
    page.goto(f"file://{tmp_path}/x.html")
    expect(page.locator(".boxes .box")).to_have_count(36)
    assert page.locator("main a").count() == 0, "there is no server to lead to"
