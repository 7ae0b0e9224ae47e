"""The user's changes of a run, on the timeline and in the table below."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.serving import Server, served
from tests.toy import ToyRepository, set_parameter
from tests.tree.steady.running import steady
from treewright.tree.records import events as ev
from treewright.tree.records.model import Manifest
from treewright.tree.records.steering import new_command
from treewright.tree.run import command_files
from treewright.tree.run.command_files import CommandFile

pytestmark = pytest.mark.xdist_group("browser")
HOSTILE = "<img src=x onerror='window.hacked = true'>"


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Manifest]]:
    """A real search that got six commands, one of them invalid."""
    toy = ToyRepository.create(tmp_path_factory.mktemp("steered") / "target repo")
    run_dir = toy.run_dir("run")
    told = [
        [
            CommandFile(new_command("pause")),
            CommandFile(new_command("resume")),
            CommandFile(new_command("inject", node_id="n0000"), set_parameter("A", 2.5)),
        ],
        [CommandFile(new_command("boost", node_id="n0099"))],
        [
            CommandFile(new_command("ban", pattern=HOSTILE)),
            CommandFile(new_command("budget", settings={"max_total_idea_evals": 10})),
        ],
    ]

    def observe(event: object) -> None:
        for letter in told.pop(0) if told and isinstance(event, ev.Completed) else ():
            command_files.submit(run_dir, letter)

    manifest = steady(toy.path, "run", "mcts", observer=observe)
    assert isinstance(manifest.steering, list)
    assert len(manifest.steering) == 6
    with served("--runs", toy.path) as running:
        yield running, manifest


@pytest.mark.parametrize("page", [{"width": 1280}, {"width": 400, "scheme": "dark"}], indirect=True)
def test_the_table_lists_each_change_with_its_user_and_time(
    page: Page, steered: tuple[Server, Manifest]
) -> None:
    server, manifest = steered
    page.goto(f"{server.base}/tree/0/run")
    table = page.get_by_role("table").filter(has_text="Changes by users")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(6)
    records = manifest.steering
    assert isinstance(records, list)
    for row, record in zip(rows.all(), reversed(records), strict=True):
        expect(row).to_contain_text(record.command.action)
        expect(row).to_contain_text(record.command.by)
    expect(table).to_contain_text("refused: there is no node n0099")
    expect(table).to_contain_text("max_total_idea_evals 10 (was 14)")
    expect(table).to_contain_text(HOSTILE)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    depths = page.get_by_role("group", name="Depth").get_by_role("button")
    said = []
    for button in depths.all():
        button.click()
        found = page.locator(".chart .change")
        said += found.evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")
    for record in records:
        assert any(f"{record.command.action} " in words for words in said), record.command.action
    assert any("refused: there is no node n0099" in words for words in said)


def test_a_mark_leads_to_its_line_in_the_table(
    page: Page, steered: tuple[Server, Manifest]
) -> None:
    server, _ = steered
    page.goto(f"{server.base}/tree/0/run")
    depths = page.get_by_role("group", name="Depth").get_by_role("button")
    expect(depths.first).to_be_visible()
    for button in depths.all():
        button.click()
        if page.locator(".chart .change").count():
            break
    mark = page.locator(".chart .change").first
    words = mark.get_attribute("aria-label")
    assert words is not None
    mark.focus()
    mark.press("Enter")
    pointed = page.locator("tr.pointed")
    expect(pointed).to_have_count(1)
    action = words.partition(": ")[2].split()[0]
    expect(pointed.locator("strong")).to_have_text(action)
