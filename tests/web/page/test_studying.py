"""The page of `wotd serve` in a real browser: puzzles and the tutorial."""

import json

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Page, expect

from tests.helpers.page import violations
from wotd_env import Game, notation
from wotd_env.core.rules import ELEMENTS
from wotd_env.rendering.text import ANIMALS
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


def test_the_next_puzzle_has_the_chosen_kind(visit):
    page = visit(f"#/puzzle/{number_of('dice')}")
    page.get_by_label("Kind").select_option("move")
    page.get_by_label("Difficulty").select_option("hard")
    page.get_by_role("button", name="Another puzzle").click()
    page.wait_for_function("old => !location.hash.endsWith(old)", arg=f"/{number_of('dice')}")
    expect(page.locator(".sub").first).to_contain_text("move · hard")
    expect(page.get_by_label("Kind")).to_have_value("move")


def test_an_unknown_puzzle_shows_an_error(visit):
    page = visit("#/puzzle/9999")
    expect(page.get_by_role("alert")).to_contain_text("1 to")


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_puzzles_fit_the_screen_and_are_accessible(visit, width, height, theme):
    number = number_of("swap")
    page = visit(f"#/puzzle/{number}", width=width, height=height, color_scheme=theme)
    page.wait_for_selector(".dock.mine")
    assert violations(page) == []
    answer(page, number, best=False)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


LESSON = json.loads((app.STATIC / "lesson.json").read_text())


def solve_task(page: Page, task: dict[str, object]) -> None:
    """Take the wanted choice of a task."""
    rules, state = notation.parse_position(str(task["position"]))
    wanted = notation.legal_words(Game(rules, skip_forced=False), state)[task["accept"][0]]  # type: ignore[index]
    page.locator(f".choices [data-action='{wanted}']").click()


def test_the_tutorial_leads_through_eight_steps_to_a_game(visit):
    page = visit(width=360, height=740)
    page.get_by_role("link", name="Learn the game").click()
    for number, step in enumerate(LESSON, 1):
        expect(page.locator("#lesson-title")).to_have_text(f"{number} of 8: {step['title']}")
        for task in step["tasks"]:
            expect(page.locator(".task")).to_have_text(task["words"])
            solve_task(page, task)
            expect(page.locator(".task")).to_have_text(task["done"])
            if task is not LESSON[-1]["tasks"][-1]:
                page.locator("[data-name=next]").click()
    expect(page.locator(".seat .score").first).to_contain_text("12")
    page.get_by_role("button", name="Play your first game").click()
    page.wait_for_selector(".play[data-at]")
    expect(page.locator(".seat .name").last).to_have_text("newcomer")


def test_the_tutorial_is_played_on_the_board(visit, site):
    page = visit("#/learn/1")
    for die in (0, 1):
        page.locator(".die").nth(die).click()
    page.locator("[data-name=roll]").click()
    expect(page.locator(".die.kept")).to_have_count(2)
    expect(page.locator(".task")).to_have_text(LESSON[0]["tasks"][0]["done"])
    page.goto(f"{site}/#/learn/7")
    swaps = page.locator(".cell[data-mark=swap]")
    swaps.first.click()
    swaps.first.click()
    page.locator(".actions .primary").click()
    expect(page.locator(".task")).to_have_text(LESSON[6]["tasks"][0]["done"])


def test_another_choice_in_the_tutorial_gets_a_hint(visit):
    page = visit("#/learn/4")
    page.locator(".choices .choice").first.click()
    expect(page.locator(".task .hint")).to_have_text(LESSON[3]["tasks"][0]["hint"])
    solve_task(page, LESSON[3]["tasks"][0])
    expect(page.locator(".task .hint")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_tutorial_fits_the_screen_and_is_accessible(visit, site, width, height, theme):
    page = visit(width=width, height=height, color_scheme=theme)
    for number in range(1, 9):
        page.goto(f"{site}/#/learn/{number}")
        expect(page.locator("#lesson-title")).to_contain_text(f"{number} of 8")
        page.wait_for_selector(".dock.mine")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        dock = page.locator(".dock").bounding_box()
        board = page.locator(".board").bounding_box()
        assert dock is not None
        assert board is not None
        assert board["y"] + board["height"] <= dock["y"] + 1
        assert dock["y"] + dock["height"] <= height + 1
    assert violations(page) == []
    solve_task(page, LESSON[7]["tasks"][0])
    page.wait_for_selector(".actions .primary")
    assert violations(page) == []


def test_every_element_is_shown_with_its_animal(visit):
    page = visit("#/learn")
    animals = [f"{element}: {animal}" for element, animal in zip(ELEMENTS, ANIMALS, strict=True)]
    expect(page.locator(".animals li")).to_have_text(animals)
