"""The page of `wotd serve` in a real browser, in each of its languages."""

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")
pytest.importorskip("axe_playwright_python", reason="the helpers of the page use it")

from playwright.sync_api import Page, expect

from tests.helpers.page import violations

pytestmark = pytest.mark.slow

TITLES = {
    "en": "Way of the Dragon",
    "es": "El camino del dragón",
    "de": "Der Weg des Drachen",
    "hi": "ड्रैगन का मार्ग",
}
PAGES = {
    "": "form button.primary",
    "learn/2": ".lesson .play",
    "puzzle/3": ".puzzle .play",
    "analysis": ".analysis .losses li",
}


def fits(page: Page) -> bool:
    """Return whether the page is not wider than the window, and contains no unfilled text."""
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return not wide and "{" not in page.locator("body").inner_text()


@pytest.mark.parametrize("width", [320, 1366])
@pytest.mark.parametrize("language", TITLES)
def test_all_pages_fit_in_every_language(visit, site, language, width):
    page = visit(width=width, height=800, locale=language)
    expect(page.locator("h1")).to_have_text(TITLES[language])
    for address, part in PAGES.items():
        page.goto(f"{site}/#/{address}")
        page.locator(part).first.wait_for()
        assert page.evaluate("document.documentElement.lang") == language
        assert fits(page), address
    assert not violations(page)


@pytest.mark.parametrize("language", TITLES)
def test_a_game_is_played_in_every_language(visit, language):
    page = visit(width=320, height=800, locale=language)
    page.locator("form button.primary").click()
    page.locator(".dock.mine").wait_for()
    page.locator(".dock .actions button").last.click()  # stop rolling
    page.locator(".log li code").first.wait_for()
    assert fits(page)
    assert not violations(page)
    english = page.locator(".log").inner_text().count("re-roll")
    assert language == "en" or not english


def test_the_chosen_language_stays(visit):
    page = visit(width=1366, height=800, locale="fr")
    choice = page.locator("#languages select")
    expect(choice).to_have_value("en")  # there is no French
    choice.select_option("de")
    expect(page.locator("h1")).to_have_text(TITLES["de"])
    page.reload()
    expect(page.locator("#languages select")).to_have_value("de")
    page.locator("#open-rules").click()
    expect(page.locator("#rules-text h2").first).to_have_text(TITLES["de"])


def test_sounds_are_off_until_they_are_turned_on(visit):
    page = visit(width=1366, height=800, locale="en")
    page.evaluate("""() => {
        const Made = AudioContext;
        window.made = 0;
        window.AudioContext = class extends Made { constructor() { super(); window.made++; } };
    }""")
    page.locator("form button.primary").click()
    page.locator(".dock.mine").wait_for()
    page.locator(".menu summary").click()
    tick = page.get_by_label("Sound")
    expect(tick).not_to_be_checked()
    assert page.evaluate("window.made") == 0
    tick.check()
    assert page.evaluate("window.made") == 1
