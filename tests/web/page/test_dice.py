"""The page of `wotd serve`: the meaning of a tap on a die, and the preview of moves by kept dice."""

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Page, expect

from tests.helpers.page import a_step, line, my_turn, rested, set_up

pytestmark = pytest.mark.slow

POSITION = line("A.....B|.....", "wf(meo) 1 A keep 2 wwfmd")


def words(page: Page) -> list[str]:
    """Return the words under the dice."""
    return page.locator(".die .keep").all_inner_texts()


def asked(visit) -> Page:
    """Return a page that asks for the meaning of a tap, because the first die was tapped."""
    page: Page = visit()
    page.add_init_script("if (!localStorage['wotd-name']) delete localStorage['wotd-tap']")
    page.reload()
    set_up(page, position=POSITION)
    assert my_turn(page)
    rested(page)
    expect(
        page.get_by_role("button", name="Re-roll all", exact=True)
    ).to_be_visible()  # not asked before the first tap
    page.locator(".die").first.click()
    expect(page.locator("[data-name=stop]")).to_have_count(0)
    return page


def test_a_tap_re_rolls_if_the_person_wants_it_so(visit):
    page = asked(visit)
    page.get_by_role("button", name="Re-rolls it").click()
    assert words(page) == ["re-roll", *["keep"] * 4]
    expect(page.locator(".die").first).to_have_attribute("aria-pressed", "true")
    with a_step(page):
        page.get_by_role("button", name="Re-roll 1").click()
    expect(page.locator(".log li span").last).to_contain_text("Keep water, fire, metal, dragon")
    assert my_turn(page)
    assert words(page) == ["keep"] * 5  # another tap is needed to roll again
    page.reload()
    assert my_turn(page)
    rested(page)
    expect(page.locator("[data-name=stop]")).to_be_visible()  # asked only once
    page.locator("summary", has_text="resign").click()
    page.get_by_label("A tap on a die").select_option("keep")
    assert words(page).count("keep") == 4  # as the last roll kept them


def test_a_tap_keeps_if_the_person_wants_it_so(visit):
    page = asked(visit)
    page.get_by_role("button", name="Keeps it").click()
    assert words(page) == ["keep", *["re-roll"] * 4]  # as the tap meant
    page.locator(".die").last.click()
    assert words(page) == ["keep", *["re-roll"] * 3, "keep"]


def test_kept_dice_show_where_they_lead(visit):
    page = visit()
    set_up(page, position=POSITION)
    assert my_turn(page)
    leads = page.locator(".cell[data-mark=lead]")
    expect(leads).to_have_count(0)
    for die, label in [(0, "water space 2, empty"), (1, "water space 3, empty")]:
        page.locator(".die").nth(die).click()
        expect(leads).to_have_count(1)
        expect(leads).to_have_attribute("aria-label", f"{label}, the kept dice lead here")
    page.locator(".die").nth(2).click()
    expect(leads).to_have_count(2)
    page.locator(".die").nth(4).click()  # a dragon leads nowhere
    expect(leads).to_have_count(2)
