"""Live pages: a page follows a running search, and reconnects after its server was killed."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import served

pytestmark = pytest.mark.xdist_group("browser")
NO_RELOAD = "window.opened = (window.opened ?? 0) + 1"


def test_a_search_is_followed_without_reloading(page: Page, tmp_path: Path) -> None:
    toy = samples.target_for_live(tmp_path)
    gate = tmp_path / "gate"
    with served("--runs", toy.path) as running:
        page.goto(running.base)
        expect(page.locator("main")).to_contain_text("There are no runs here yet.")
        page.evaluate(NO_RELOAD)
        with samples.searching(toy):
            row = page.locator('[data-key="tree/0/run"]')
            expect(row.locator(".chip")).to_have_text("running")
            assert page.evaluate("window.opened") == 1
            page.goto(f"{running.base}/tree/0/run#e000001")
            page.evaluate(NO_RELOAD)
            detail = page.locator(".detail")
            expect(detail).to_contain_text("It is being evaluated.")
            expect(detail.locator(".log")).to_contain_text("the sweep has begun")
            gate.touch()
            expect(page.locator("h1 .chip")).to_have_text("finished")
            expect(detail).to_contain_text("Promoted to n0001")
            assert page.evaluate("window.opened") == 1


def lasting_port() -> int:
    """Return a free port below the ephemeral range, so that no other process gets it."""
    for port in random.sample(range(20_000, 32_768), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("a hundred ports are all taken")


def test_a_page_reconnects_to_a_restarted_server(page: Page, tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    port = lasting_port()
    with served("--runs", tmp_path, port=port) as first:
        page.goto(f"{first.base}/proof/0/proof")
        expect(page.locator(".connection")).to_have_text("live")
        page.evaluate(NO_RELOAD)
    expect(page.locator(".connection")).to_contain_text("offline")
    run.iterate(0)
    with served("--runs", tmp_path, port=port):
        expect(page.locator(".connection")).to_have_text("live")
        expect(page.locator("output")).to_have_text("1 of 1")
        assert page.evaluate("window.opened") == 1


def test_a_page_polls_without_server_sent_events(own_page: Page, tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    own_page.add_init_script("delete window.EventSource")
    with served("--runs", tmp_path) as running:
        own_page.goto(f"{running.base}/proof/0/proof")
        expect(own_page.locator(".connection")).to_have_text("polling")
        run.iterate(0)
        expect(own_page.locator("output")).to_have_text("1 of 1")


def test_the_result_ends_a_proof_run_and_a_refused_goal_is_shown(
    page: Page, tmp_path: Path
) -> None:
    run = proof_runs.ProofRun(tmp_path)
    run.write("verdict", goal=0, status="proved", iterations=1)
    with served("--runs", tmp_path) as running:
        page.goto(f"{running.base}/proof/0/proof")
        expect(page.locator("main")).to_contain_text("1 proved, 1 decided so far")
        run.write("verdict", goal=1, status="ill_typed", detail="unknown name", iterations=0)
        run.end(1, 2)
        expect(page.locator("h1 .chip")).to_have_text("finished")
        expect(page.locator("main")).to_contain_text("1 of 2 proved")
        page.get_by_role("button", name="goal 1").click()
        expect(page.locator(".verdict.ill_typed")).to_contain_text("unknown name")
        page.goto(running.base)
        expect(page.locator("main")).to_contain_text("2 of 2 goals")
