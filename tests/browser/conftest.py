"""One browser, a page per test, and a picture of it kept whatever happens: of the whole page if
the test fails."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.browser import chromium
from tests.dashboard.conftest import searched, server  # noqa: F401 (fixtures shared with them)

ARTIFACTS = Path(__file__).parents[2] / "test-artifacts" / "browser"
PATIENCE_MILLISECONDS = 90_000
_FAILED = pytest.StashKey[bool]()
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For these tests, not for the session: playwright keeps an event loop running in this
    thread, and tests that start one of their own must come after its end."""
    with chromium.launched() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that fails its test if a script fails or the policy refuses something."""
    options = getattr(request, "param", {})
    context = browser.new_context(
        viewport={"width": options.get("width", 1280), "height": 900},
        color_scheme=options.get("scheme", "light"),
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.extend(_complaint(message)))
    yield opened
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w-]+", "_", request.node.name).strip("_")
    failed = request.node.stash.get(_FAILED, False)
    opened.screenshot(path=ARTIFACTS / f"{name}.png", full_page=failed)  # the whole takes a second
    context.close()
    assert complaints == []


def _complaint(message: ConsoleMessage) -> list[str]:
    """A server that was ended on purpose is not the page's fault."""
    expected = "Failed to load resource" in message.text or "ERR_" in message.text
    return [message.text] if message.type == "error" and not expected else []
