"""A proof search of thousands of goals: an overview, the current path, and folded lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard import proof_runs
from tests.dashboard.grown_proofs import grown
from tests.dashboard.serving import Server, served
from treewright.dashboard import export

pytestmark = pytest.mark.xdist_group("browser")
MOST_ELEMENTS = 1000
MANY = 5000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("grown")
    grown(made, 200, proved=False, run_id="open")
    grown(made, MANY, proved=True, run_id="proved")
    return made


@pytest.fixture(scope="module")
def grown_server(project: Path) -> Iterator[Server]:
    with served("--runs", project) as running:
        yield running


def outline_of(page: Page) -> Locator:
    outline = page.get_by_role("tree", name="Proof tree")
    expect(outline.get_by_role("treeitem").first).to_be_visible()
    return outline


def elements(page: Page) -> int:
    return page.evaluate("document.querySelectorAll('*').length")


def is_bounded(page: Page, outline: Locator) -> None:
    """Return whether the path is on top, few lines are elements, and no element is wider than the
    page."""
    expect(page.locator(".whole")).to_contain_text("The way to the proof has ")
    assert outline.locator(".row.way").count() > 5
    assert outline.locator(".folded").first.inner_text().startswith("▸ ")
    assert elements(page) < MOST_ELEMENTS
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("page", [{"width": 1280}, {"width": 400, "scheme": "dark"}], indirect=True)
def test_five_thousand_goals_start_with_the_path(page: Page, grown_server: Server) -> None:
    page.goto(f"{grown_server.base}/proof/0/proved")
    outline = outline_of(page)
    is_bounded(page, outline)
    first = outline.get_by_role("treeitem").first
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(first.locator(".folded")).to_contain_text("other tactics: ")
    texts = outline.locator(".row .what").evaluate_all("(all) => all.map((one) => one.clientWidth)")
    assert min(texts) >= 40, "every line has room for words"


def test_an_exported_search_of_five_thousand_goals_is_bounded(
    page: Page, project: Path, tmp_path: Path
) -> None:
    run = project / ".treewright" / "proof_runs" / "proved"
    export.write(export.find(str(run), project), tmp_path / "proof.html")
    page.goto(f"file://{tmp_path / 'proof.html'}")
    outline = outline_of(page)
    is_bounded(page, outline)
    outline.locator(".folded").first.click()
    expect(outline.get_by_text("▾ other tactics")).to_be_visible()


def test_every_goal_can_be_unfolded_and_the_page_stays_bounded(
    page: Page, grown_server: Server
) -> None:
    page.goto(f"{grown_server.base}/proof/0/proved")
    outline = outline_of(page)
    outline.focus()
    outline.press("Home")
    for _ in range(8):  # down, showing the other tactics of every goal on the way
        outline.press("o")
        outline.press("ArrowRight")
        outline.press("ArrowDown")
    height = outline.evaluate("(one) => one.scrollHeight / one.clientHeight")
    assert height > 2
    outline.press("End")
    expect(outline.locator("[aria-selected=true]")).to_be_in_viewport()
    assert elements(page) < MOST_ELEMENTS


def test_open_goals_can_be_visited_by_keys(page: Page, grown_server: Server) -> None:
    page.goto(f"{grown_server.base}/proof/0/open")
    outline = outline_of(page)
    expect(page.locator(".whole")).to_contain_text("The most promising way leaves ")
    chosen = outline.locator("[aria-selected=true]")
    said = page.locator("[aria-live=polite]")
    outline.focus()
    outline.press("b")
    expect(said).to_contain_text(", open, ")
    outline.press("Home")
    expect(said).to_contain_text("goal 0, open, ⊢ ")
    expect(said).to_contain_text("Folded: ")
    outline.press("o")
    expect(chosen.locator(".folded")).to_have_text("▾ other tactics")
    outline.press("ArrowLeft")  # folds all descendants
    expect(chosen).to_have_attribute("aria-expanded", "false")
    expect(outline.get_by_role("treeitem")).to_have_count(1)
    expect(chosen.locator(".folded")).to_contain_text(" goals, ")
    outline.press("ArrowRight")
    expect(chosen).to_have_attribute("aria-expanded", "true")
    outline.press("ArrowDown")
    expect(chosen).to_have_attribute("aria-level", "2")
    outline.press("ArrowLeft")
    outline.press("ArrowLeft")
    expect(said).to_contain_text("goal 0, ")
    outline.press("0")
    expect(chosen.locator(".folded")).to_contain_text("other tactics: ")
    outline.press("Enter")
    expect(page.locator(".detail h2")).to_be_focused()
    page.locator(".detail").get_by_role("button", name="goal ").first.click()
    expect(page.locator(".detail h2")).not_to_have_text("Goal 0")
    page.locator(".detail h2").press("Escape")
    expect(outline).to_be_focused()


def test_a_block_of_the_overview_leads_to_its_goal(page: Page, grown_server: Server) -> None:
    page.goto(f"{grown_server.base}/proof/0/open")
    outline_of(page)
    picture = page.get_by_role("img", name="The whole search: 20")
    box = picture.bounding_box()
    assert box is not None
    place = {"x": box["width"] - 3, "y": 20}  # the second line, which is as wide as the first
    picture.hover(position=place)
    expect(page.locator(".hint")).to_contain_text("goal ")
    hinted = page.locator(".hint").inner_text().partition(":")[0]
    picture.click(position=place)
    expect(page.locator(".detail h2")).to_have_text(hinted.capitalize())
    expect(page.locator(".outline [aria-selected=true]")).to_be_in_viewport()


def test_the_page_shows_the_time_per_tactic(page: Page, grown_server: Server) -> None:
    page.goto(f"{grown_server.base}/proof/0/open")
    outline_of(page)
    rows = page.get_by_role("region", name="in Lean").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("exact?")
    expect(rows.nth(1)).to_contain_text(" %")
    page.locator("#time").fill("0")
    expect(page.locator("main")).to_contain_text("No tactic has been tried yet.")


def test_a_growing_search_keeps_the_chosen_line_in_place(page: Page, tmp_path: Path) -> None:
    """New goals arrive above and below the chosen line."""
    run = grown(tmp_path, 1000, proved=False)
    (run.path / "result.json").unlink()
    with served("--runs", tmp_path) as running:
        page.goto(f"{running.base}/proof/0/grown")
        outline = outline_of(page)
        outline.focus()
        outline.press("Home")
        for _ in range(20):  # more than there is room for, above and below
            outline.press("o")
            outline.press("ArrowDown")
        chosen = outline.locator("[aria-selected=true]")
        expect(chosen).to_be_in_viewport()
        before = chosen.bounding_box(), chosen.get_attribute("id")
        numbers = range(9000, 9030)
        tried = [
            {"tactic": f"new{i}", "outcome": "goals", "edge": i, "children": [i]} for i in numbers
        ]
        made = [{"id": i, "key": str(i), "goals": [proof_runs.view(f"new {i}")]} for i in numbers]
        run.iterate(0, *tried, new=made)
        expect(page.locator(".whole")).to_contain_text("1,03")
        assert (chosen.bounding_box(), chosen.get_attribute("id")) == before
        assert elements(page) < MOST_ELEMENTS


def test_hostile_goals_stay_harmless(page: Page, tmp_path: Path) -> None:
    """HTML, invisible characters, a megabyte in one line, cycles and goals that do not exist."""
    run = proof_runs.ProofRun(tmp_path)
    unseen = "a \u202e reversed \x1b[31m \u0000 \u200b end"
    run.iterate(
        0,
        {"tactic": proof_runs.HOSTILE, "outcome": "goals", "edge": 0, "children": [1, 1, 2, 77]},
        {"tactic": unseen, "outcome": "goals", "edge": 1, "children": [0]},
        {"tactic": "t " * 100_000, "outcome": "error", "detail": unseen},
        new=[
            {"id": 1, "key": "k1", "goals": [proof_runs.view(unseen)]},
            {"id": 2, "key": "k2", "goals": [proof_runs.view("x" * 1_000_000)]},
        ],
    )
    with served("--runs", tmp_path) as running:
        page.goto(f"{running.base}/proof/0/proof")
        outline = outline_of(page)
        expect(outline).to_contain_text(proof_runs.HOSTILE)
        expect(outline).to_contain_text("a \\u202e reversed \\u001b[31m \\u0000 \\u200b end")
        outline.get_by_text("xxx").click()
        expect(page.locator(".detail .goal")).to_contain_text("980,002 more characters")
        outline.focus()
        outline.press("Home")
        outline.press("Enter")
        expect(page.locator(".detail")).to_contain_text("\\u202e reversed")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate("document.body.innerText.length") < 60_000
