"""The page "People against agents" in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import expect

from tests.helpers.page import decide, my_turn, set_up, violations

pytestmark = pytest.mark.slow


def test_a_finished_game_of_this_browser_appears_in_the_results(visit, site):
    page = visit(width=390)
    page.goto(f"{site}/#/results")
    expect(page.get_by_text("No game counts yet")).to_be_visible()
    page.get_by_role("link", name="To the tables").click()
    set_up(page, spaces=0)
    while my_turn(page):
        decide(page, lambda element: element.click())
    page.goto(f"{site}/#/")
    page.get_by_role("link", name="People against agents").click()
    expect(page.locator(".results tbody th")).to_have_text("greedy")
    expect(page.locator(".results tbody td").first).to_have_text("1")
    assert len(page.evaluate("JSON.parse(localStorage.getItem('wotd-person'))")) == 44
    for width in (390, 1366):
        for theme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=theme)
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
