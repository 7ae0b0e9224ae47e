"""One browser, one page that the tests have one after the other, and a picture of it kept whatever
happens: of the whole page if the test fails.

A page costs a process. A test that leaves behind what a new address does not take away (a route,
a listener, a script of its own), or needs an empty cache, asks for `own_page`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect

from tests.browser import chromium

ARTIFACTS = Path(__file__).parents[2] / "test-artifacts" / "browser"
PATIENCE_MILLISECONDS = 90_000
WIDTH, HEIGHT = 1280, 900
EMPTY = "about:blank"
# By the page itself: where the browser is told to go there, it starts another process for it.
_LEAVE = "(address) => { setTimeout(() => location.replace(address)); }"
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


class _Lent:
    """The page that is there, or a new one where the last test failed with it."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None

    def page(self) -> Page:
        if self._page is None:
            self._page = _opened(self._browser)
        return self._page

    def drop(self) -> None:
        if self._page is not None:
            self._page.context.close()
        self._page = None


@pytest.fixture(scope="package")
def _lent(browser: Browser) -> Iterator[_Lent]:
    lent = _Lent(browser)
    yield lent
    lent.drop()


@pytest.fixture
def page(_lent: _Lent, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that fails its test if a script fails or the policy refuses something."""
    options = getattr(request, "param", {})
    opened = _lent.page()
    opened.set_viewport_size({"width": options.get("width", WIDTH), "height": HEIGHT})
    opened.emulate_media(color_scheme=options.get("scheme", "light"))
    clean = False
    try:
        with _watched(opened) as complaints:
            yield opened
            if not _pictured(opened, request.node):
                opened.mouse.move(0, 0)  # nothing of the next page is hovered over
                with opened.expect_navigation(url=EMPTY):
                    opened.evaluate(_LEAVE, EMPTY)
                clean = True
    finally:
        if not clean:
            _lent.drop()
    assert complaints == []


@pytest.fixture
def own_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in a separate browser context."""
    opened = _opened(browser)
    with _watched(opened) as complaints:
        yield opened
        _pictured(opened, request.node)
        opened.context.close()
    assert complaints == []


def _opened(browser: Browser) -> Page:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    return context.new_page()


@contextmanager
def _watched(page: Page) -> Iterator[list[str]]:
    """The errors that the page reports."""
    complaints: list[str] = []

    def note_error(error: Error) -> None:
        complaints.append(str(error))

    def note_message(message: ConsoleMessage) -> None:
        complaints.extend(_complaint(message))

    page.on("pageerror", note_error)
    page.on("console", note_message)
    yield complaints
    page.remove_listener("pageerror", note_error)
    page.remove_listener("console", note_message)


def _pictured(page: Page, test: pytest.Item) -> bool:
    """Keeps a picture; whether the test has failed."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w-]+", "_", test.name).strip("_")
    failed = test.stash.get(_FAILED, False)
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=failed)  # the whole takes a second
    return failed


def _complaint(message: ConsoleMessage) -> list[str]:
    """A server that was ended on purpose is not the page's fault."""
    expected = "Failed to load resource" in message.text or "ERR_" in message.text
    return [message.text] if message.type == "error" and not expected else []
