"""Each page in a real browser, with a real run behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Response, expect

from tests.dashboard import samples
from tests.dashboard.serving import Server
from tests.dashboard.test_orchestrator_view import fill
from tests.toy import ToyRepository
from treewright.tree.records import store
from treewright.tree.records.description import best_node

pytestmark = pytest.mark.xdist_group("browser")
MOST_BYTES = 500_000
SCREENS = [
    {"width": 1280, "scheme": "light"},
    {"width": 1280, "scheme": "dark"},
    {"width": 400, "scheme": "light"},
]


def name(screen: dict[str, object]) -> str:
    return f"{screen['width']}-{screen['scheme']}"


def no_sideways_scrolling(page: Page) -> None:
    width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{width} pixels too wide"


@pytest.mark.parametrize("page", SCREENS, ids=name, indirect=True)
def test_the_home_page_lists_the_runs(page: Page, server: Server) -> None:
    page.goto(server.base)
    row = page.locator('[data-key="tree/0/run"]')
    expect(row.locator(".chip")).to_have_text("finished")
    expect(row).to_contain_text("the maximum depth was reached")
    expect(row).to_contain_text("depth 2 of 2")
    expect(page.locator('[data-key="proof/0/proof"]')).to_contain_text("1 proved")
    expect(page.locator(".connection")).to_have_text("live")
    no_sideways_scrolling(page)
    row.get_by_role("link", name="run").click()
    expect(page.locator("h1")).to_contain_text("run")


@pytest.mark.parametrize("page", SCREENS, ids=name, indirect=True)
def test_the_page_of_a_tree_run(page: Page, server: Server, searched: ToyRepository) -> None:
    best = best_node(store.load(searched.run_dir(samples.RUN_ID))).node_id
    page.goto(f"{server.base}/tree/0/run")
    page.get_by_role("button", name="Go to the best node").click()
    detail = page.locator(".detail")
    expect(detail.locator("h2")).to_contain_text("Set ")
    expect(detail).to_contain_text(f"Promoted to {best}, ranked 1 of its depth")
    expect(detail.locator(".diff .added").first).to_contain_text(re.compile(r"\+[ABCD] \d"))
    expect(detail.locator(".diff .line").first).to_have_css("white-space", re.compile("^pre"))
    expect(detail.locator(".deltas svg circle").first).to_be_attached()
    expect(detail.locator(".interval").first).to_be_attached()
    expect(page.get_by_role("img", name="Root-relative score over evaluations")).to_be_visible()
    expect(page.get_by_role("img", name="When the evaluations of depth 2 ran")).to_be_visible()
    expect(page.locator(".best-path")).to_have_count(3)
    before = detail.locator(".diff .added").count()
    detail.get_by_role("button", name="since the root").click()
    expect(detail.locator(".diff .added")).to_have_count(before + 1)
    no_sideways_scrolling(page)


@pytest.mark.parametrize("page", SCREENS, ids=name, indirect=True)
def test_the_page_of_a_proof_run(page: Page, server: Server) -> None:
    page.goto(f"{server.base}/proof/0/proof")
    expect(page.locator(".script")).to_contain_text("· exact h.2")
    expect(page.locator("output")).to_have_text("4 of 4")
    expect(page.locator(".marks .reroute")).to_have_count(1)
    expect(page.locator(".agents")).to_contain_text("agent 1 (uct) at 3")
    slider = page.locator("#time")
    slider.fill("1")
    expect(page.locator("output")).to_have_text("1 of 4")
    expect(page.locator(".agents")).not_to_contain_text("agent 1")
    slider.fill("4")
    expect(page.locator(".whole")).to_have_text(
        "4 goals, all solved. The way to the proof has 4 goals."
    )
    outline = page.get_by_role("tree", name="Proof tree")
    outline.focus()
    for key in ("Home", "ArrowDown", "Enter"):
        outline.press(key)
    expect(page.locator(".detail h2")).to_have_text("Goal 1")
    expect(page.locator(".detail .goal")).to_have_text("h : p ∧ q\n⊢ q ∧ p")
    expect(page.locator(".detail")).to_contain_text("constructor")
    no_sideways_scrolling(page)


@pytest.mark.parametrize("page", SCREENS, ids=name, indirect=True)
def test_the_page_of_the_orchestrator(page: Page, bank_server: Server) -> None:
    page.goto(f"{bank_server.base}/bank/0/ledger")
    expect(page.locator("h1")).to_contain_text("ledger")
    expect(page.locator("main")).to_contain_text("8 of 12")
    expect(page.get_by_role("row", name=re.compile("^micro 12 8 67 %"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^search 12 0 0 %.*16 s"))).to_be_visible()
    expect(page.locator("figure svg")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("slots, light lane")
    expect(page.locator("main")).to_contain_text("There are no tickets yet.")
    no_sideways_scrolling(page)


def test_the_first_page_is_small_and_loads_no_external_resource(
    own_page: Page, server: Server
) -> None:
    answers: list[Response] = []
    own_page.on("response", lambda answer: answers.append(answer))
    own_page.goto(server.base)
    expect(own_page.locator('[data-key="tree/0/run"]')).to_be_visible()
    hosts = {answer.url.split("/")[2] for answer in answers}
    assert hosts == {server.base.removeprefix("http://")}
    finite = [answer for answer in answers if "/api/changes" not in answer.url]
    assert sum(len(answer.body()) for answer in finite) < MOST_BYTES
    assert len(finite) >= 4
    scripts = [answer.url for answer in finite if answer.url.endswith(".js")]
    assert len(scripts) == 1, "what a page imports is not asked for file by file"


def test_all_pages_together_are_below_the_limit() -> None:
    from treewright.dashboard import assets

    assert sum(len(asset.body) for asset in assets.all_assets().values()) < MOST_BYTES


def test_a_page_of_a_missing_run_says_so(page: Page, server: Server) -> None:
    page.goto(f"{server.base}/tree/0/absent")
    expect(page.locator("h1")).to_have_text("There is no such run.")


def test_the_page_of_an_empty_project_names_the_next_step(page: Page, empty_server: Server) -> None:
    page.goto(empty_server.base)
    expect(page.locator("main")).to_contain_text("There are no runs here yet.")
    expect(page.locator("main code").first).to_have_text("treewright tree")


def test_a_large_run_is_usable(page: Page, large_server: Server) -> None:
    page.goto(f"{large_server.base}/tree/0/big")
    expect(page.locator("main")).to_contain_text("3000 of 3000")
    page.get_by_role("button", name="Go to the best node").click()
    expect(page.locator(".detail h2")).not_to_be_empty()
    page.get_by_role("button", name="Show all").click()
    gantt = page.get_by_role("img", name=re.compile("^When the evaluations of depth"))
    expect(gantt).to_be_visible()
    canvas = page.get_by_role("application", name="Search tree")
    painted = canvas.evaluate(_COLOURS)
    assert painted > 5


_COLOURS = """(canvas) => new Promise((done) => requestAnimationFrame(() => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3]) colours.add(data.slice(i, i + 3).join());
  }
  done(colours.size);
}))"""


@pytest.fixture(scope="module")
def bank_server(tmp_path_factory: pytest.TempPathFactory):
    from tests.dashboard.serving import served

    project: Path = tmp_path_factory.mktemp("ledger")
    (project / ".treewright").mkdir()
    fill(project / ".treewright" / "ledger.db")
    with served("--runs", project) as running:
        yield running


@pytest.fixture
def empty_server(tmp_path: Path):
    from tests.dashboard.serving import served

    with served("--runs", tmp_path) as running:
        yield running


@pytest.fixture
def large_server(tmp_path: Path):
    from tests.dashboard.serving import served

    samples.large(tmp_path / ".treewright" / "tree_runs" / "big", 3000)
    with served("--runs", tmp_path) as running:
        yield running
