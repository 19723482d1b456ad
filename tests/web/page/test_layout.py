"""The page of `wotd serve`: screen sizes, keyboard, accessibility, and languages."""

import re

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Locator, Page, expect

from tests.helpers.page import (
    a_step,
    decide,
    line,
    my_turn,
    open_rules,
    rested,
    set_up,
    step_through,
    violations,
)

pytestmark = pytest.mark.slow


def test_a_turn_can_be_played_with_the_keyboard_only(visit):
    page = visit(width=1280, height=800)
    page.wait_for_selector(".set-up form")
    press = page.keyboard.press

    def tab_to(wanted: str) -> None:
        for _ in range(80):
            press("Tab")
            if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
                return
        raise AssertionError(f"the Tab key does not reach {wanted}")

    tab_to(".set-up .primary")
    press("Enter")
    page.wait_for_selector(".play[data-at]")
    assert my_turn(page)
    press("1")
    expect(page.locator(".die").first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#news")).to_have_text(re.compile(" kept$"))
    press("u")
    expect(page.locator(".die").first).to_have_attribute("aria-pressed", "false")
    press("1")
    rested(page)
    with a_step(page):
        press("r")
    while page.locator(".die[aria-pressed]").count():
        rested(page)
        with a_step(page):
            for die in range(5):
                if page.locator(".die").nth(die).get_attribute("aria-pressed") == "false":
                    press(str(die + 1))
            tab_to(".actions .primary")
            press("Enter")
    tab_to("[role=gridcell]")
    press("Home")
    path, space = page.evaluate(
        """() => {
          const rows = [...document.querySelectorAll("[role=row]")].map((row) => [...row.children].slice(1));
          const row = rows.findIndex((cells) => cells.some((cell) => cell.dataset.mark === "move"));
          return [row, rows[row].findIndex((cell) => cell.dataset.mark === "move")];
        }"""
    )
    for _ in range(path):
        press("ArrowDown")
    for _ in range(space):
        press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("data-mark", "move")
    rested(page)
    with a_step(page):
        press("Enter")
    press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_every_page_fits_its_screen(visit, width):
    page = visit(width=width, height=640)
    page.wait_for_selector(".set-up form")

    def check() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            """() => [...document.querySelectorAll("button:not(.power), .button, select, summary, textarea, .tick")]
              .map((element) => [element.getBoundingClientRect(), element.outerHTML])
              .filter(([box]) => box.width && (box.width < 43.9 || box.height < 43.9)).map(([, html]) => html)"""
        )
        assert small == []

    check()
    page.get_by_label("Players").select_option("5")
    page.get_by_label("Powers of the animals").select_option("own")
    open_rules(page)
    check()
    page.get_by_label("Plain spaces").fill("10")
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")
    check()
    page.goto(page.url.split("#")[0])
    step_through(page)
    check()


@pytest.mark.parametrize("players", [2, 5])
@pytest.mark.parametrize(("width", "height"), [(844, 390), (683, 384)])
def test_the_board_and_the_dice_are_beside_each_other_on_low_screens(visit, width, height, players):
    page = visit(width=width, height=height)
    page.get_by_label("Players").select_option(str(players))
    page.get_by_role("button", name="Start the game").click()
    assert my_turn(page)
    board, dock, stop = (
        page.locator(part).bounding_box() for part in (".board", ".dock", "[data-name=stop]")
    )
    assert dock["x"] >= board["x"] + board["width"]
    assert board["y"] >= 0
    assert board["y"] + board["height"] <= height + 8
    assert dock["y"] >= 0
    assert stop["y"] + stop["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "height"), [(390, 844), (360, 740), (844, 390)])
def test_own_seat_is_marked_in_words_among_five_seats(visit, width, height):
    page = visit(width=width, height=height)
    page.get_by_label("Players").select_option("5")
    for seat in "BCDE":
        page.get_by_label(f"who plays seat {seat}").select_option("open")
    page.get_by_label("Powers of the animals").select_option("own")
    page.get_by_role("button", name="Start the game").click()
    state = page.locator(".seat .state").first
    expect(state).to_have_text("you")
    assert state.evaluate(
        "it => getComputedStyle(it).clipPath === 'none' && it.scrollWidth <= it.clientWidth"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_accessibility_violations(visit, theme):
    page = visit(width=1024, height=768, color_scheme=theme)
    page.wait_for_selector(".set-up form")
    open_rules(page)
    assert violations(page) == []
    set_up(page, position=line(".B.A...|.....", "wf(meo) 9 A move 0 ddddw powers=own"))
    assert violations(page) == []
    page.locator(".cell[data-mark=swap]").first.click()
    page.locator("summary", has_text="Share").click()
    assert violations(page) == []
    page.goto(page.url.split("#")[0])
    set_up(page, powers="own")
    assert my_turn(page)
    page.locator(".die").first.click()
    page.locator("summary", has_text="Hints").click()
    expect(page.locator(".hints .choice").first).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Rules").click()
    expect(page.locator("#rules-text h2").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 320, "height": 568})
    page.get_by_role("button", name="Keys").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.goto(page.url.split("#")[0])
    step_through(page)
    assert violations(page) == []


def test_the_page_explains_that_it_needs_scripts(visit):
    page = visit(java_script_enabled=False)
    expect(page.locator("noscript h1")).to_be_visible()
    page.locator("noscript a[lang=de]").click()
    expect(page.locator("body")).to_contain_text("Würfel")


def test_the_page_sends_no_requests_to_other_servers(visit, site):
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    set_up(page)
    assert my_turn(page)
    assert asked
    assert all(url.startswith((site, "blob:", "data:")) for url in asked)


SCREENS = [(1366, 657), (1280, 720), (1024, 768), (1920, 1080), (360, 740)]
BOX = """selector => [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect())
  .filter((box) => box.width).map(({ left, top, right, bottom }) => [left, top, right, bottom])"""


def boxes(page: Page, selector: str) -> list[list[float]]:
    """Return left, top, right and bottom of all visible elements of a kind."""
    found: list[list[float]] = page.evaluate(BOX, selector)
    return found


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("players", [2, 5])
def test_dice_and_buttons_are_on_the_screen_and_cover_no_piece(visit, width, height, players):
    page = visit(width=width, height=height)
    page.wait_for_selector(".set-up form")
    page.get_by_label("Players").select_option(str(players))
    set_up(page, powers="own")
    assert my_turn(page)
    page.wait_for_selector(".seat .chance")
    assert page.evaluate("window.scrollY") == 0
    controls = boxes(page, ".die, .dock button")
    assert len(controls) > 5
    for left, top, right, bottom in controls:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    dock = boxes(page, ".dock")[0][1]
    assert max(bottom for *_, bottom in boxes(page, ".board .piece, .sign")) <= dock + 1
    targets = boxes(page, ".die, .cell, .sign, .power, .actions button")
    assert min(min(right - left, bottom - top) for left, top, right, bottom in targets) >= 23.9


@pytest.mark.parametrize(("width", "height"), [(1366, 657), (1440, 900), (1920, 1080)])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_game_can_be_started_without_scrolling(visit, width, height, language):
    page = visit(width=width, height=height, locale=language)
    page.wait_for_selector(".set-up form")
    for button in page.locator(".set-up .primary").all():
        expect(button).to_be_in_viewport(ratio=1)
    assert page.locator(".set-up details[open]").count() == 0


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_layout_is_stable_during_a_turn(visit, width, height):
    page = visit(width=width, height=height)
    set_up(page, powers="none")
    fixed = ".turn, .seats, .bar, .board-box, .dock" + (", .choices, .log-card" if width >= 1000 else "")
    assert my_turn(page)
    page.wait_for_selector(".seat .chance")
    first = boxes(page, fixed)
    assert first
    for _ in range(5):
        decide(page, Locator.click)
        assert boxes(page, fixed) == first
        assert my_turn(page)
        assert boxes(page, fixed) == first


def test_the_board_fills_a_large_screen(visit):
    page = visit(width=1920, height=1080)
    set_up(page)
    assert my_turn(page)
    (left, _, _, _), (_, _, right, _) = boxes(page, ".play")[0], boxes(page, ".side")[0]
    assert right - left > 0.85 * 1920
    assert boxes(page, ".dock")[0][3] > 0.95 * 1080
    paths = boxes(page, ".path")
    assert paths[-1][3] - paths[0][1] > 0.5 * 1080


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_a_review_shows_all_its_columns(visit, width, height):
    page = visit(width=width, height=height)
    step_through(page)
    card = boxes(page, ".review .side .card")[0]
    assert max(right for _, _, right, _ in boxes(page, ".review th, .review td")) <= card[2]
    shares = page.locator(".review tbody td:last-child").all_inner_texts()
    assert shares
    assert all(0 <= int(share) <= 100 for share in shares)
