"""The page of `wotd serve` in a real browser: Debian's or anybody's Chromium, or that named by WOTD_CHROMIUM."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.helpers.server import dice_of, fewer, running
from wotd_env import Game, Rules, make_policy, notation
from wotd_env.web.tables import Tables

CHROMIUM = os.environ.get("WOTD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120_000  # milliseconds: the first game of all may have to wait until kernels are compiled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium, and WOTD_CHROMIUM names none"),
]


@pytest.fixture(autouse=True)
def dice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the dice of each test follow from its name."""
    monkeypatch.setattr(Tables, "random", staticmethod(dice_of(request.node.name)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    with running(tmp_path_factory.mktemp("site") / "tables.sqlite") as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Open a page in a browser of its own; at the end, no page has met an error."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_page(width: int = 390, height: int = 844, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(site)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


expect.set_options(timeout=PATIENCE)


def set_up(
    page: Page, *, agent: str = "greedy", powers: str = "none", spaces: int = 7, position: str = ""
) -> None:
    """Set up a table for one person and an agent that plays at once."""
    page.get_by_label("name of seat A").fill("Ann")
    page.get_by_label("agent of seat B").select_option(agent)
    page.get_by_label("Powers of the animals").select_option(powers)
    page.get_by_text("More rules").click()
    page.get_by_label("Agents play").select_option("fast")
    page.get_by_label("Plain spaces").fill(str(spaces))
    page.get_by_label("Start from a position").fill(position)
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")


def at(page: Page) -> str:
    """Say which position a page shows."""
    return page.locator(".play").get_attribute("data-at") or ""


@contextmanager
def a_step(page: Page) -> Iterator[None]:
    """Do what leads to another position, and wait for it."""
    before = at(page)
    yield
    page.wait_for_function("old => document.querySelector('.play').dataset.at !== old", arg=before)


def my_turn(page: Page) -> bool:
    """Wait until a person is to decide, or the game is over; say which."""
    page.wait_for_selector(".dock.mine, .result")
    return page.locator(".result").count() == 0


def decide(page: Page, press: Callable[[Locator], None]) -> None:
    """Take any decision by what the dock and the board offer."""
    cell = page.locator(".cell[data-mark=move]")
    die = page.locator(".die[aria-pressed=false]")
    stop = page.locator("[data-name=stop]")
    with a_step(page):
        if die.count() == 5:
            press(die.first)
            press(page.locator("[data-name=roll]"))
        elif stop.count():
            press(stop)
        elif cell.count():
            press(cell.first)
            if page.locator(".cell[data-mark=picked]").count():  # several choices lead there
                press(page.locator(".actions .primary").first)
        else:
            press(page.locator(".actions button").first)


def played(page: Page) -> list[str]:
    """Return the lines of the log."""
    return page.locator(".log li").all_inner_texts()


def board(page: Page) -> list[str]:
    """Return what every cell of the board says."""
    cells = page.locator("[role=gridcell]")
    labels: list[str] = cells.evaluate_all("cells => cells.map(cell => cell.getAttribute('aria-label'))")
    return labels


def violations(page: Page) -> list[str]:
    """Return what an accessibility checker has to say."""
    page.wait_for_function(
        "() => document.getAnimations().every(animation => animation.effect.getTiming().iterations > 1)"
    )
    found = Axe().run(page).response["violations"]
    return [f"{node['html']}: {node['failureSummary']}" for each in found for node in each["nodes"]]


def line(water: str, rest: str) -> str:
    """Return a position in which all paths but water are empty."""
    return "/".join([water, *[".......|....."] * 4]) + " " + rest


def recorded() -> str:
    """Return a game between agents as text."""
    game, policy = Game(Rules(spaces=2)), make_policy("greedy")
    state, actions = game.reset(1, seed=4), []
    rng = np.random.default_rng(0)
    while not game.is_over(state)[0]:
        actions.append(int(policy.act(game, state, rng)[0]))
        game.step(state, actions[-1:])
    return str(notation.record_game(game.rules, actions, seed=4, players=("Ann", "greedy")))


# ------------------------------------------------------------------------------------------------ playing


def test_a_whole_game_by_taps_and_its_review(visit):
    page = visit(has_touch=True, is_mobile=True)
    set_up(page, powers="own", spaces=2)
    while my_turn(page):
        decide(page, Locator.tap)
    expect(page.locator("#whose")).to_have_text(re.compile("wins with|share the victory"))
    page.get_by_role("link", name="Review the game").tap()
    expect(page.locator(".review")).to_be_visible()
    expect(page.get_by_role("region", name="Skill and luck").get_by_role("row")).to_have_count(3)
    page.go_back()
    page.get_by_role("button", name="Next game").tap()
    expect(page.locator(".sub")).to_contain_text("game 2")


def test_a_reload_brings_the_whole_game_back(visit):
    page = visit()
    set_up(page, powers="any")
    for _ in range(6):
        assert my_turn(page)
        decide(page, Locator.click)
    assert my_turn(page)
    before = at(page), played(page), board(page)
    assert len(before[1]) > 6
    page.reload()
    page.wait_for_selector(".play[data-at]")
    assert (at(page), played(page), board(page)) == before


def test_a_second_browser_joins_by_link(visit):
    host = visit()
    host.get_by_label("name of seat A").fill("Ann")
    host.get_by_label("who plays seat B").select_option("invited")
    host.get_by_role("button", name="Start the game").click()
    expect(host.locator("#whose")).to_have_text("Waiting for players")
    link = host.get_by_label("Link for seat B").input_value()
    guest, late = visit(), visit()
    guest.goto(link)
    guest.get_by_label("Your name").fill("<b>Bob</b>")
    guest.get_by_role("button", name="Take the seat").click()
    for page in (host, guest):
        expect(page.locator(".seat .name")).to_have_text(["Ann", "<b>Bob</b>"])
    names = {"Ann": host, "<b>Bob</b>": guest}
    for _ in range(8):  # each sees what the other does, and acts in turn
        host.wait_for_function("old => document.querySelector('.play').dataset.at === old", arg=at(guest))
        acting = names[host.locator(".seat.acts .name").inner_text()]
        waiting = host if acting is guest else guest
        assert waiting.locator(".dock.mine").count() == 0
        with a_step(waiting):
            assert my_turn(acting)
            decide(acting, Locator.click)
        host.wait_for_function("old => document.querySelector('.play').dataset.at === old", arg=at(acting))
        guest.wait_for_function("old => document.querySelector('.play').dataset.at === old", arg=at(acting))
    late.goto(link)
    expect(late.get_by_role("alert")).to_be_visible()
    expect(late.get_by_role("button", name="Take the seat")).to_be_hidden()


def test_an_open_seat_is_in_the_list(visit):
    host, guest = visit(), visit()
    host.get_by_label("name of seat A").fill("Olga")
    host.get_by_label("who plays seat B").select_option("open")
    host.get_by_role("button", name="Start the game").click()
    guest.get_by_role("link", name="Join Olga").click()
    guest.get_by_label("Your name").fill("Piet")
    guest.get_by_role("button", name="Take the seat").click()
    expect(host.locator(".seat .name")).to_have_text(["Olga", "Piet"])


def test_an_open_seat_that_is_not_in_the_list_is_taken_by_its_link(visit, tmp_path):
    with running(tmp_path / "tables.sqlite") as client:
        seats = [{"kind": "here", "name": "Olga"}, {"kind": "open"}]
        tables = [client.post("/api/tables", json={"seats": seats}).json()["table"] for _ in range(6)]
        page = visit()
        page.goto(str(client.base_url))
        expect(page.get_by_role("link", name="Join Olga")).to_have_count(5)
        page.goto(f"{client.base_url}/#/open/{tables[0]}")
        expect(page.get_by_text("There is an open seat for you, with Olga.")).to_be_visible()
        page.get_by_label("Your name").fill("Piet")
        page.get_by_role("button", name="Take the seat").click()
        expect(page.locator(".seat .name")).to_have_text(["Olga", "Piet"])
        page.evaluate("localStorage.clear()")
        page.goto(f"{client.base_url}/#/open/{tables[0]}")
        expect(page.get_by_role("alert")).to_have_text("This table has no open seat any more.")


def test_two_people_at_one_screen(visit):
    page = visit()
    page.get_by_label("name of seat A").fill("Ann")
    page.get_by_label("who plays seat B").select_option("here")
    page.get_by_label("name of seat B").fill("Bob")
    page.get_by_role("button", name="Start the game").click()
    acted: set[str] = set()
    while acted != {"Ann", "Bob"}:
        assert my_turn(page)
        acted.add(page.locator(".seat.acts .name").inner_text())
        decide(page, Locator.click)


def test_two_taps_and_a_confirmation_swap_pieces(visit):
    page = visit()
    set_up(
        page,
        position=line("..A.B..|.....", "wf(meo) 9 A move 0 ddddw"),
    )
    swaps = page.locator(".cell[data-mark=swap]")
    expect(swaps).to_have_count(2)
    swaps.first.click()
    expect(page.locator(".cell[data-mark=picked]")).to_have_count(1)
    page.keyboard.press("u")
    expect(swaps).to_have_count(2)
    swaps.first.click()
    swaps.first.click()
    with a_step(page):
        page.locator(".actions .primary").click()
    told = page.locator(".log li", has_text="swaps the pieces of Ann and greedy on water")
    expect(told).to_have_count(1)


def test_powers_are_confirmed_before_they_are_spent(visit):
    page = visit()
    set_up(
        page,
        position=line("..AB...|.....", "ew(fmo) 9 A move 0 wffmm powers=own"),
    )
    expect(page.locator(".cell[data-mark=power]")).to_have_count(1)
    page.locator(".cell[data-mark=power]").click()
    expect(page.locator(".cell[data-mark=picked]")).to_have_count(1)
    shown = at(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".cell[data-mark=power]")).to_have_count(1)
    assert at(page) == shown
    page.locator(".cell[data-mark=power]").click()
    with a_step(page):
        page.locator(".actions .primary").click()
    expect(page.locator(".seat").first.get_by_role("img", name="anxiety, used")).to_have_count(1)


def test_every_choice_is_there_in_words(visit):
    page = visit()
    set_up(
        page,
        position=line(".......|.....", "wf(meo) 1 A move 0 wwfmm"),
    )
    choices = page.locator(".choices .choice")
    expect(choices).to_have_text([re.compile(word, re.I) for word in ("water.* 2", "fire.* 1", "metal.* 2")])
    with a_step(page):
        choices.nth(1).click()
    expect(page.locator(".log li", has_text="Ann enters fire on space 1")).to_have_count(1)


def test_hints_and_chances_where_help_is_on(visit):
    page = visit()
    set_up(page)
    assert my_turn(page)
    expect(page.get_by_role("img", name="Chances to win")).to_be_visible()
    page.get_by_role("button", name="Show a hint").click()
    best = page.locator(".hints .choice").first
    expect(best).to_be_visible()
    with a_step(page):
        best.click()


def test_a_lost_connection_comes_back(visit, tmp_path):
    file = tmp_path / "tables.sqlite"
    with running(file) as client:
        page = visit()
        page.goto(str(client.base_url))
        set_up(page)
        assert my_turn(page)
        decide(page, Locator.click)
        assert my_turn(page)
        before = at(page), played(page), board(page)
    expect(page.locator("#offline")).to_contain_text("Connection lost")
    with running(file, port=client.base_url.port or 0):
        expect(page.locator("#offline")).to_be_hidden()
        assert (at(page), played(page), board(page)) == before
        decide(page, Locator.click)


def test_a_table_that_is_gone_is_said_to_be_gone(visit, tmp_path):
    file = tmp_path / "tables.sqlite"
    with running(file) as client:
        page = visit()
        page.goto(str(client.base_url))
        set_up(page)
    expect(page.locator("#offline")).to_contain_text("Connection lost")
    file.unlink()
    with running(file, port=client.base_url.port or 0):
        expect(page.get_by_role("heading", level=1)).to_have_text("This table is no longer there.")
        expect(page.locator("#offline")).to_be_hidden()
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("This table is not yours")


def test_a_page_too_many_says_why_it_waits(visit, tmp_path):
    with running(tmp_path / "tables.sqlite", fewer(sockets=1)) as client:
        page = visit()
        page.goto(str(client.base_url))
        set_up(page)
        other = page.context.new_page()
        other.goto(page.url)
        expect(other.locator("#offline")).to_have_text(
            "1 sockets are open, which is the most. Trying again …"
        )
        page.close()
        expect(other.locator("#offline")).to_be_hidden()
        expect(other.locator(".play[data-at]")).to_be_visible()


def test_agents_play_while_one_watches(visit):
    page = visit()
    page.get_by_text("More rules").click()
    page.get_by_label("Agents play").select_option("fast")
    page.get_by_label("Plain spaces").fill("1")
    page.get_by_role("button", name="Watch agents play").click()
    expect(page.locator(".result")).to_be_visible()
    assert page.locator(".dock.mine").count() == 0


def test_a_table_without_its_key_says_how_to_get_one(visit, site):
    page = visit()
    page.goto(site + "/#/table/nobodys")
    expect(page.get_by_role("heading", level=1)).to_have_text("This table is not yours")
    page.get_by_role("link", name="To the tables").click()
    expect(page.locator(".set-up form")).to_be_visible()


def test_what_is_wrong_is_said_in_the_words_of_the_server(visit):
    page = visit()
    page.get_by_text("More rules").click()
    page.get_by_label("Start from a position").fill("nonsense")
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("alert")).to_contain_text("position")


# ------------------------------------------------------------------------------------------------ review


def test_a_recorded_game_is_stepped_through(visit):
    page = visit()
    page.get_by_label("text of a game").fill(recorded())
    page.get_by_role("button", name="Step through").click()
    expect(page.locator(".review")).to_be_visible()
    slider = page.get_by_role("slider")
    page.keyboard.press("Home")
    expect(slider).to_have_value("0")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("1")
    page.keyboard.press("End")
    last = slider.input_value()
    page.locator(".graph > svg").click(position={"x": 3, "y": 40})
    expect(slider).to_have_value("0")
    page.get_by_role("button", name="to the end").click()
    expect(slider).to_have_value(last)
    page.locator(".worst-list button").first.click()
    expect(page.locator(".verdict .grade")).to_be_visible()
    page.get_by_role("link", name="Play on from here").click()
    expect(page.get_by_label("Start from a position")).to_have_value(re.compile("wf"))
    page.get_by_role("button", name="Start the game").click()
    expect(page.locator(".board")).to_be_visible()


# ------------------------------------------------------------------------------------------------ for everybody


def test_keyboard_alone(visit):
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
    with a_step(page):
        press("r")
    while page.locator(".die[aria-pressed]").count():
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
            """() => [...document.querySelectorAll("button, .button, select, summary, textarea, .tick")]
              .map((element) => [element.getBoundingClientRect(), element.outerHTML])
              .filter(([box]) => box.width && (box.width < 43.9 || box.height < 43.9)).map(([, html]) => html)"""
        )
        assert small == []

    check()
    page.get_by_role("radio", name="5").check(force=True)
    page.get_by_label("Powers of the animals").select_option("own")
    page.get_by_text("More rules").click()
    check()
    page.get_by_label("Plain spaces").fill("10")
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")
    check()
    page.goto(page.url.split("#")[0])
    page.get_by_label("text of a game").fill(recorded())
    page.get_by_role("button", name="Step through").click()
    page.wait_for_selector(".review")
    check()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_checker_finds_nothing_that_keeps_anybody_out(visit, theme):
    page = visit(width=1024, height=768, color_scheme=theme)
    page.wait_for_selector(".set-up form")
    page.get_by_text("More rules").click()
    assert violations(page) == []
    page.get_by_text("More rules").click()
    set_up(
        page,
        position=line(".B.A...|.....", "wf(meo) 9 A move 0 ddddw powers=own"),
    )
    assert violations(page) == []
    page.locator(".cell[data-mark=swap]").first.click()
    page.locator("summary", has_text="Share").click()
    assert violations(page) == []
    page.goto(page.url.split("#")[0])
    set_up(page, powers="own")
    assert my_turn(page)
    page.locator(".die").first.click()
    page.get_by_role("button", name="Show a hint").click()
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
    page.get_by_label("text of a game").fill(recorded())
    page.get_by_role("button", name="Step through").click()
    page.wait_for_selector(".review")
    assert violations(page) == []


def test_rules_in_four_languages(visit):
    page = visit()
    page.get_by_role("button", name="Rules").click()
    text = page.locator("#rules-text")
    seen = set()
    for language, name in {"en": "English", "es": "Español", "de": "Deutsch", "hi": "हिन्दी"}.items():
        page.get_by_role("button", name=name).click()
        expect(text).to_have_attribute("lang", language)
        expect(text.locator("h2, h3").first).to_be_visible()
        seen.add(text.inner_text())
    assert len(seen) == 4


def test_without_scripts_the_page_says_what_it_needs(visit):
    page = visit(java_script_enabled=False)
    expect(page.locator("noscript h1")).to_be_visible()
    page.locator("noscript a[lang=de]").click()
    expect(page.locator("body")).to_contain_text("Würfel")


def test_nothing_is_asked_of_other_servers(visit, site):
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    set_up(page)
    assert my_turn(page)
    assert asked
    assert all(url.startswith((site, "blob:", "data:")) for url in asked)
