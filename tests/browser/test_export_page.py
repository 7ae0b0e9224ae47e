"""An exported run opened from a file: no server, nothing loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.dashboard import proof_runs, samples
from tests.toy import ToyRepository
from treewright.dashboard import export

pytestmark = pytest.mark.xdist_group("browser")


def opened(page: Page, file: Path, fragment: str = "") -> list[str]:
    """Open the file, and return its further requests."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith("file:") and not request.url.startswith("data:"):
            asked.append(request.url)

    page.on("request", note)
    page.goto(f"file://{file}{fragment}")
    return asked


def test_an_exported_tree_run_opens_from_a_file(
    own_page: Page, searched: ToyRepository, tmp_path: Path
) -> None:
    export.write(export.find(samples.RUN_ID, searched.path), tmp_path / "run.html")
    asked = opened(own_page, tmp_path / "run.html")
    expect(own_page.locator(".connection")).to_contain_text("exported")
    own_page.get_by_role("button", name="Go to the best node").click()
    detail = own_page.locator(".detail")
    expect(detail).to_contain_text("ranked 1 of its depth")
    expect(detail.locator(".diff .added").first).to_be_visible()
    # The idea was found twice; the page says that only the first was tested and swept.
    expect(detail).to_contain_text("The same code had been measured before, as e000010")
    own_page.goto(f"file://{tmp_path / 'run.html'}#e000010")
    detail.get_by_role("button", name="tests.log").click()
    expect(detail.locator(".log")).to_have_text("(empty)")
    assert asked == []


def test_an_exported_proof_run_opens_from_a_file(own_page: Page, tmp_path: Path) -> None:
    run = proof_runs.solved(tmp_path)
    export.write(export.find(str(run.path), tmp_path), tmp_path / "proof.html")
    asked = opened(own_page, tmp_path / "proof.html")
    expect(own_page.locator(".script")).to_contain_text("· exact h.2")
    own_page.locator("#time").fill("2")
    expect(own_page.locator("output")).to_have_text("2 of 4")
    assert asked == []
