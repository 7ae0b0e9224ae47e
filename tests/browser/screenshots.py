"""`make screenshots`: the pictures of the README and the guide, from real runs.

A search over the bundled example, a distributed proof search in real Lean, an experiment on one,
and a bank of goals through the orchestrator; then the pages in a real browser.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from math import ceil
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.browser import chromium
from tests.dashboard.serving import served

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 900
PAGES: tuple[tuple[str, Literal["light", "dark"]], ...] = (
    ("tree", "light"),
    ("tree", "dark"),
    ("proof", "light"),
    ("experiment", "light"),
    ("bank", "light"),
)
PROOFS = """\
theorem both (p q : Nat → Prop) : (∃ x, p x ∧ q x) → (∃ x, p x) ∧ (∃ x, q x) := by
  sorry

theorem sums (a b : Nat) (h : a ≤ b) : ∃ c, b = a + c ∧ c ≤ b := by
  sorry

theorem lists (xs ys : List Nat) : (xs ++ ys).reverse.length = ys.length + xs.length := by
  sorry
"""
SEARCH = ["--mcts-mode", "distributed", "--agents", "4", "--simulations", "40"]
SEARCH += ["--block-fraction", "0.25", "--no-refute"]

EXPERIMENT = """\
modes = ["centralized", "distributed"]
agents = [3]
seeds = [1, 2, 3]
simulations = 25

[[interventions]]
name = "block"
block_fraction = [0.3, 0.7]
block_duration = 10

[[goals]]
name = "swap"
statement = "∀ p q r : Prop, p ∧ (q ∧ r) → (r ∧ q) ∧ p"

[[goals]]
name = "exists"
statement = "∀ p q : Nat → Prop, (∃ x, p x ∧ q x) → (∃ x, q x) ∧ (∃ x, p x)"

[[goals]]
name = "even"
statement = "∀ n : Nat, n * (n + 1) % 2 = 0"
"""


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        demo = Path(name)
        environment = {**os.environ, "TREEWRIGHT_DEMO_DIR": str(demo)}
        subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], env=environment, check=True)
        project = demo / "forecast"
        (project / "Proofs.lean").write_text(PROOFS, encoding="utf-8")
        treewright(project, "prove", "Proofs.lean", *SEARCH)
        (project / "damage.toml").write_text(EXPERIMENT, encoding="utf-8")
        treewright(project, "prove", "--experiment", "damage.toml")
        bank = ROOT / "bench" / "bank.jsonl"
        if bank.is_file():
            treewright(project, "bank", str(bank), "--timeout", "60", "--cpu-target", "20")
        with served("--runs", project) as server, chromium.launched() as browser:
            shoot(browser, server.base)


def treewright(cwd: Path, *arguments: str) -> None:
    """A goal that stays unproved is no reason not to show the search for it."""
    command = [sys.executable, "-m", "treewright", *arguments]
    subprocess.run(command, cwd=cwd, check=False)


def shoot(browser: Browser, base: str) -> None:
    page = opened(browser, base)
    keys = page.locator("[data-key]").evaluate_all("(rows) => rows.map((r) => r.dataset.key)")
    # Below the list is the path of a temporary directory, which is cut off.
    below = page.get_by_role("table").bounding_box()
    assert below is not None
    save(page, "home-light", height=ceil(below["y"] + below["height"]))
    for name, scheme in PAGES:
        key = next((one for one in keys if one.startswith(f"{name}/")), None)
        if key is None:
            continue
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(f"{base}/{key}")
        expect(page.locator(".connection")).to_have_text("live", timeout=60_000)
        if name == "tree":
            page.get_by_role("button", name="Go to the best node").click()
            expect(page.locator(".diff .added").first).to_be_visible(timeout=60_000)
            page.get_by_role("button", name="Show all").click()
        if name == "proof":
            page.get_by_role("button", name="sums").click()
        save(page, f"{name}-{scheme}", HEIGHT)


def opened(browser: Browser, base: str) -> Page:
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.goto(base)
    expect(page.locator("[data-key]").first).to_be_visible(timeout=60_000)
    return page


def save(page: Page, name: str, height: int) -> None:
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.mouse.move(0, 0)  # nothing is hovered over
    page.evaluate("scrollTo(0, 0)")
    # Two frames: the canvas is drawn on the next one.
    page.evaluate("new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))")
    page.screenshot(path=IMAGES / f"{name}.png")
    print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
