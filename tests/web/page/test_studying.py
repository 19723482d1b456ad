"""The page of `wotd serve` in a real browser: puzzles and the tutorial."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Page, expect

from tests.helpers.page import violations
from wotd_env import Game, notation
from wotd_env.web import app

pytestmark = pytest.mark.slow

PUZZLES = json.loads((app.STATIC / "puzzles.json").read_text())
SIZES = [(360, 740), (768, 1024), (1366, 768)]


def number_of(kind: str) -> int:
    """Return the number of the first puzzle of a kind."""
    return 1 + next(i for i, puzzle in enumerate(PUZZLES) if puzzle["kind"] == kind)


def action_of(number: int, best: bool) -> int:
    """Return the best or the worst action of a puzzle."""
    puzzle = PUZZLES[number - 1]
    rules, state = notation.parse_position(puzzle["position"])
    legal = Game(rules, skip_forced=False).legal_actions(state)[0].nonzero()[0]
    lost = puzzle["lost"]
    return int(legal[lost.index(0 if best else max(lost))])


def answer(page: Page, number: int, best: bool) -> None:
    """Answer the shown puzzle by the list of choices."""
    page.locator(f".choices [data-action='{action_of(number, best)}']").click()
    page.wait_for_selector("[data-name=next]")


@pytest.mark.parametrize("kind", ["dice", "move", "swap", "power"])
def test_a_puzzle_is_judged_and_counted_once(visit, site, kind):
    page, number = visit(width=1366, height=768), number_of(kind)
    page.goto(f"{site}/#/puzzle/{number}")
    answer(page, number, best=False)
    expect(page.locator("#puzzle-title")).to_have_text("There is a better choice")
    expect(page.locator(".losses li").first).to_contain_text("best")
    expect(page.locator(".losses li", has_text="your choice")).not_to_contain_text("best")
    expect(page.locator(".losses li")).to_have_count(len(PUZZLES[number - 1]["lost"]))
    expect(page.locator(".statistics dd").first).to_have_text("0 of 1")
    page.get_by_role("button", name="Try again").click()
    answer(page, number, best=True)
    expect(page.locator("#puzzle-title")).to_have_text("The best choice!")
    expect(page.locator(".statistics dd").first).to_have_text("0 of 1")  # the first answer counts
    page.reload()
    expect(page.locator(".statistics dd").first).to_have_text("0 of 1")


def test_dice_of_a_puzzle_are_kept_by_hand(visit, site):
    page, number = visit(), number_of("dice")
    page.goto(f"{site}/#/puzzle/{number}")
    page.locator(".die").first.click()
    page.locator("[data-name=roll]").click()
    expect(page.locator(".die").first).to_have_class(re.compile("kept"))
    expect(page.locator(".losses li strong")).to_have_count(1)


def test_everybody_gets_the_same_puzzle_on_a_day(visit, site):
    first, second = visit(timezone_id="Pacific/Kiritimati"), visit(timezone_id="Pacific/Pago_Pago")
    labels = []
    for page in (first, second):
        page.clock.set_fixed_time("2026-11-25T12:00:00Z")
        page.goto(f"{site}/#/puzzle")
        page.reload()
        expect(page.locator(".sub").first).to_contain_text("puzzle of the day")
        labels.append(
            page.locator("[role=gridcell]").evaluate_all("cells => cells.map(cell => cell.ariaLabel)")
        )
    assert labels[0] == labels[1]
    number = 1 + 20782 % len(PUZZLES)  # 2026-11-25 is 20,782 days after 1970-01-01
    answer(first, number, best=True)
    expect(first.locator(".statistics dd").last).to_have_text("1 day")


def test_the_next_puzzle_has_the_chosen_kind(visit, site):
    page = visit()
    page.goto(f"{site}/#/puzzle/{number_of('dice')}")
    page.get_by_label("Kind").select_option("move")
    page.get_by_label("Difficulty").select_option("hard")
    page.get_by_role("button", name="Another puzzle").click()
    page.wait_for_function("old => !location.hash.endsWith(old)", arg=f"/{number_of('dice')}")
    expect(page.locator(".sub").first).to_contain_text("move · hard")
    expect(page.get_by_label("Kind")).to_have_value("move")


def test_an_unknown_puzzle_shows_an_error(visit, site):
    page = visit()
    page.goto(f"{site}/#/puzzle/9999")
    expect(page.get_by_role("alert")).to_contain_text("1 to")


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_puzzles_fit_the_screen_and_are_accessible(visit, site, width, height, theme):
    page = visit(width=width, height=height, color_scheme=theme)
    number = number_of("swap")
    page.goto(f"{site}/#/puzzle/{number}")
    page.wait_for_selector(".dock.mine")
    assert violations(page) == []
    answer(page, number, best=False)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
