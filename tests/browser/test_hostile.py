"""Text from runs is shown as text: the browser never executes it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import Server
from tests.toy import ToyRepository
from treewright.dashboard import export
from treewright.tree.records import store

pytestmark = pytest.mark.xdist_group("browser")


def unharmed(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0


def hostile_evaluation(toy: ToyRepository) -> str:
    manifest = store.load(toy.run_dir(samples.RUN_ID))
    for evaluation in manifest.evaluations.values():
        text = (toy.run_dir(samples.RUN_ID) / evaluation.idea_path).read_text()
        if samples.HOSTILE_TITLE in text:
            return evaluation.eval_id
    raise AssertionError("the hostile idea was not tried")


def test_an_idea_with_a_script_shows_as_text(
    page: Page, server: Server, searched: ToyRepository
) -> None:
    eval_id = hostile_evaluation(searched)
    log = searched.run_dir(samples.RUN_ID) / "eval" / eval_id / "experiment" / "sweep.log"
    log.write_text(samples.HOSTILE_TITLE)
    page.goto(f"{server.base}/tree/0/run#{eval_id}")
    detail = page.locator(".detail")
    expect(detail.locator("h2")).to_have_text(samples.HOSTILE_TITLE)
    expect(detail.locator(".idea")).to_contain_text(samples.HOSTILE_TITLE)
    detail.get_by_role("button", name="sweep.log").click()
    expect(detail.locator(".log")).to_have_text(samples.HOSTILE_TITLE)
    unharmed(page)


def test_a_log_that_is_requested_twice_is_shown_once(
    own_page: Page, server: Server, searched: ToyRepository
) -> None:
    """The same log is chosen again before the first answer has arrived."""
    eval_id = hostile_evaluation(searched)
    log = searched.run_dir(samples.RUN_ID) / "eval" / eval_id / "experiment" / "sweep.log"
    log.write_text("once")
    held: list[Route] = []
    own_page.route("**/log/**", lambda route: held.append(route))
    with own_page.expect_request("**/log/**"):
        own_page.goto(f"{server.base}/tree/0/run#{eval_id}")
    with own_page.expect_request("**/log/**"):
        own_page.locator(".detail").get_by_role("button", name="sweep.log").click()
    for route in held:
        route.fulfill(json={"text": "once", "from": 0, "next": 4, "size": 4, "live": False})
    expect(own_page.locator(".detail .log")).to_have_text("once")
    assert len(held) == 2


def test_a_goal_with_a_script_shows_as_text(page: Page, server: Server) -> None:
    page.goto(f"{server.base}/proof/0/proof")
    expect(page.locator("output")).to_contain_text(" of ")  # the search has a tree to walk
    outline = page.get_by_role("tree", name="Proof tree")
    outline.focus()
    for key in ("End", "Enter"):
        outline.press(key)
    expect(page.locator(".outline")).to_contain_text(proof_runs.HOSTILE)
    expect(page.locator(".detail .goal")).to_contain_text(proof_runs.HOSTILE)
    unharmed(page)


def test_an_export_with_a_script_shows_it_as_text(
    page: Page, searched: ToyRepository, tmp_path
) -> None:
    eval_id = hostile_evaluation(searched)
    export.write(export.find(samples.RUN_ID, searched.path), tmp_path / "x.html")
    page.goto(f"file://{tmp_path}/x.html#{eval_id}")
    expect(page.locator(".detail h2")).to_have_text(samples.HOSTILE_TITLE)
    unharmed(page)


def test_the_policy_refuses_external_resources(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.goto(server.base)
    expect(page.locator("h1")).to_have_text("Runs")
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = true";
          document.body.append(script);
        }"""
    )
    assert page.evaluate("window.hacked") is None
    refused = page.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    assert refused
    page.close()
