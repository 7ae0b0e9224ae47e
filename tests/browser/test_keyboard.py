"""Every control can be reached and read without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard import samples
from tests.dashboard.serving import Server
from tests.toy import ToyRepository
from treewright.tree.records import store
from treewright.tree.records.description import best_node

pytestmark = pytest.mark.xdist_group("browser")


def test_the_tree_can_be_walked_by_keys(
    page: Page, server: Server, searched: ToyRepository
) -> None:
    best = best_node(store.load(searched.run_dir(samples.RUN_ID)))
    page.goto(f"{server.base}/tree/0/run")
    canvas = page.get_by_role("application", name="Search tree")
    said = page.locator("[aria-live=polite]")
    expect(page.locator("h1 .chip")).to_have_text("finished")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(said).to_contain_text("n0000")
    canvas.press("ArrowRight")
    expect(said).to_contain_text("depth 1")
    canvas.press("ArrowRight")
    expect(said).to_contain_text(f"{best.node_id}, depth 2")
    canvas.press("ArrowDown")
    expect(said).not_to_contain_text(best.node_id)
    canvas.press("ArrowUp")
    canvas.press("ArrowLeft")
    expect(said).to_contain_text(f"{best.parent_node_id}, depth 1")
    canvas.press("b")
    expect(said).to_contain_text(best.node_id)
    canvas.press("Enter")
    heading = page.locator(".detail h2")
    expect(heading).to_be_focused()
    heading.press("Escape")
    expect(page.locator(".detail")).to_be_hidden()
    expect(canvas).to_be_focused()


def test_folding_hides_the_descendants(page: Page, server: Server) -> None:
    page.goto(f"{server.base}/tree/0/run")
    expect(page.locator("h1 .chip")).to_have_text("finished")
    canvas = page.get_by_role("application", name="Search tree")
    said = page.locator("[aria-live=polite]")
    canvas.focus()
    canvas.press("Home")
    canvas.press(" ")
    canvas.press("ArrowRight")
    expect(said).to_contain_text("n0000")
    canvas.press(" ")
    canvas.press("ArrowRight")
    expect(said).to_contain_text("depth 1")


def test_the_first_stop_skips_to_the_content(page: Page, server: Server) -> None:
    page.goto(server.base)
    expect(page.locator("h1")).to_have_text("Runs")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    outline = skip.evaluate("(link) => getComputedStyle(link).outlineStyle")
    assert outline != "none", "where the focus is can be seen"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize("path", ["/", "/tree/0/run#n0001", "/proof/0/proof"])
def test_every_control_has_a_name(page: Page, server: Server, path: str) -> None:
    page.goto(server.base + path)
    expect(page.locator("h1")).to_be_visible()
    if "#" in path:
        expect(page.locator(".detail .diff")).to_be_visible()
    nameless = page.evaluate(_NAMELESS)
    assert nameless == []


def test_colours_have_contrast(page: Page, server: Server) -> None:
    """The contrast of text and background by the WCAG formula, in light and in dark."""
    page.goto(server.base)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name in ("ink", "soft", "good", "bad", "best", "other", "warn", "last"):
            ratio = page.evaluate(_CONTRAST, name)
            least = 3.0 if name == "best" else 4.5
            assert ratio >= least, f"{name} in {scheme}: {ratio:.2f}"


_NAMELESS = """() => {
  const all = "button, a, input, canvas, [role=img], [tabindex='0']";
  const named = (one) => one.textContent.trim() || one.ariaLabel || one.title || one.labels?.length;
  return [...document.querySelectorAll(all)].filter((one) => !named(one))
    .map((one) => one.outerHTML.slice(0, 200));
}"""
_CONTRAST = """(name) => {
  const style = getComputedStyle(document.documentElement);
  const light = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [name, "paper"].map((one) => light(style.getPropertyValue(`--${one}`).trim()));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
