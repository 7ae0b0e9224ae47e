"""One browser and one page that the tests use in turn, with a picture of each test.

The picture shows the whole page if the test fails. A page costs a process. A test that leaves a
route, a listener or a script that a new address does not remove, or that needs an empty cache, uses
`own_page`."""

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
# The page navigates itself: a navigation by the browser would start another process.
_LEAVE = "(address) => { setTimeout(() => location.replace(address)); }"
_FAILED = pytest.StashKey[bool]()
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start a browser for these tests only: playwright keeps an event loop running in this thread,
    and tests that start a loop must come after its end."""
    with chromium.launched() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


class _Lent:
    """The shared page, or a new one if the last test failed with it."""

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
    """Lend a page that fails its test if a script fails or the policy refuses a request."""
    options = getattr(request, "param", {})
    opened = _lent.page()
    opened.set_viewport_size({"width": options.get("width", WIDTH), "height": HEIGHT})
    opened.emulate_media(color_scheme=options.get("scheme", "light"))
    clean = False
    try:
        with _watched(opened) as complaints:
            yield opened
            if not _pictured(opened, request.node):
                opened.mouse.move(0, 0)  # no element of the next page is under the pointer
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
    """Save a picture and return whether the test has failed."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w-]+", "_", test.name).strip("_")
    failed = test.stash.get(_FAILED, False)
    page.screenshot(
        path=ARTIFACTS / f"{name}.png", full_page=failed
    )  # a picture of the whole page takes a second
    return failed


def _complaint(message: ConsoleMessage) -> list[str]:
    """Return the error text, unless a server was ended on purpose."""
    expected = "Failed to load resource" in message.text or "ERR_" in message.text
    return [message.text] if message.type == "error" and not expected else []
