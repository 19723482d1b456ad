"""A browser and a server for the tests of the page: any Chromium, or the one that WOTD_CHROMIUM names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = os.environ.get("WOTD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--disable-gpu", "--disable-quic"]  # beside those of Playwright
PATIENCE = 120_000  # milliseconds: the first game waits until the kernels are compiled


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    from tests.helpers.server import running

    with running(tmp_path_factory.mktemp("site") / "tables.sqlite") as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import expect, sync_playwright

    if CHROMIUM is None:
        pytest.skip("there is no chromium, and WOTD_CHROMIUM names none")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Open an address, by default of the lobby, in a browser profile of its own; fail if a page raises an error."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_page(address: str = "", width: int = 390, height: int = 844, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        # the answer to the first question; about:blank has no storage
        context.add_init_script("if (location.protocol !== 'about:') localStorage['wotd-tap'] ??= '\"keep\"'")
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(urljoin(f"{site}/", address))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors
