"""The page of `wotd serve` in a real browser: playing and reviewing."""

import re

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Locator, Page, expect

from tests.helpers.page import (
    a_step,
    at,
    board,
    decide,
    line,
    my_turn,
    open_rules,
    played,
    rested,
    set_up,
    step_through,
)
from tests.helpers.server import fewer, running
from wotd_env import Game, Rules
from wotd_env.notation import position

pytestmark = pytest.mark.slow


# ------------------------------------------------------------------------------------------------ playing


def test_a_game_can_be_played_and_reviewed_by_touch(visit):
    page = visit(has_touch=True, is_mobile=True)
    set_up(page, powers="own", spaces=2)
    while my_turn(page):
        decide(page, Locator.tap)
    expect(page.locator("#whose")).to_have_text(re.compile("wins with|share the victory"))
    end = page.locator(".end")
    totals = end.locator("td:last-child").all_inner_texts()
    assert totals == [score.split()[0] for score in page.locator(".seat .score").all_inner_texts()]
    for words in ("Decisive moment", "Best decision"):
        expect(end).to_contain_text(words)
    page.get_by_role("link", name="Review the game").tap()
    expect(page.locator(".review")).to_be_visible()
    expect(page.locator(".grades").get_by_role("row")).to_have_count(3)
    page.go_back()
    page.get_by_role("button", name="Rematch").tap()
    expect(page.locator(".sub").first).to_contain_text("game 2")


def test_the_form_keeps_the_number_of_dead_pieces_possible(visit):
    page = visit()
    open_rules(page)
    dead = page.get_by_label("Dead pieces")
    dead.fill("15")
    for label, value, most in (("Players", "3", "10"), ("Plain spaces", "1", "5"), ("Players", "5", "0")):
        field = page.get_by_label(label)
        field.select_option(value) if label == "Players" else field.fill(value)
        field.blur()
        expect(dead).to_have_attribute("max", most)
        expect(dead).to_have_value(most)


def test_a_reload_restores_the_game(visit):
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


def test_a_second_browser_joins_by_link_and_is_marked_as_away(visit):
    host = visit()
    host.get_by_label("name of seat A").fill("Ann")
    host.get_by_label("who plays seat B").select_option("invited")
    host.get_by_role("button", name="Start the game").click()
    expect(host.locator("#whose")).to_have_text("Waiting for players")
    link = host.get_by_label("Link for seat B").input_value()
    guest, late = visit(link), visit()
    guest.get_by_label("Your name").fill("<b>Bob</b>")
    guest.get_by_role("button", name="Take the seat").click()
    for page in (host, guest):
        expect(page.locator(".seat .name")).to_have_text(["Ann", "<b>Bob</b>"])
    expect(host.locator(".seat .state").first).to_have_text("you")
    expect(guest.locator(".seat .state").last).to_have_text("you")
    names = {"Ann": host, "<b>Bob</b>": guest}
    for _ in range(8):  # both see every decision and act in turn
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
    guest.goto("about:blank")
    expect(host.locator(".seat .state").last).to_have_text("away")


def test_a_guest_joins_an_open_seat_from_the_list_or_by_link(visit, tmp_path):
    with running(tmp_path / "tables.sqlite") as client:
        seats = [{"kind": "here", "name": "Olga"}, {"kind": "open"}]
        tables = [client.post("/api/tables", json={"seats": seats}).json()["table"] for _ in range(6)]
        page = visit(str(client.base_url))
        expect(page.get_by_role("link", name="Join Olga")).to_have_count(5)
        page.get_by_role("link", name="Join Olga").first.click()
        expect(page.get_by_role("button", name="Take the seat")).to_be_visible()
        page.goto(f"{client.base_url}/#/open/{tables[0]}")
        expect(page.get_by_text("There is an open seat for you, with Olga.")).to_be_visible()
        page.get_by_label("Your name").fill("Piet")
        page.get_by_role("button", name="Take the seat").click()
        expect(page.locator(".seat .name")).to_have_text(["Olga", "Piet"])
        page.evaluate("localStorage.clear()")
        page.goto(f"{client.base_url}/#/open/{tables[0]}")
        expect(page.get_by_role("alert")).to_have_text("this table has no open seat any more")


def test_two_people_can_play_at_one_screen(visit):
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


def test_powers_are_confirmed_before_they_are_spent(visit):
    page = visit()
    set_up(page, position=line("..AB...|.....", "ew(fmo) 9 A move 0 wffmm powers=own"))
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
    expect(page.locator(".seat").first.get_by_role("button", name="anxiety, used")).to_have_count(1)


def test_hints_and_win_chances_are_shown_with_help(visit):
    page = visit()
    set_up(page)
    assert my_turn(page)
    expect(page.get_by_role("img", name="Chances to win")).to_be_visible()
    page.locator("summary", has_text="Hints").click()
    best = page.locator(".hints .choice").first
    expect(best).to_be_visible()
    with a_step(page):
        best.click()


def test_the_page_reconnects_unless_the_table_was_deleted(visit, tmp_path):
    file = tmp_path / "tables.sqlite"
    with running(file) as client:
        page = visit(str(client.base_url))
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
    expect(page.locator("#offline")).to_contain_text("Connection lost")
    file.unlink()
    with running(file, port=client.base_url.port or 0):
        expect(page.get_by_role("heading", level=1)).to_have_text("This table is no longer there.")
        expect(page.locator("#offline")).to_be_hidden()
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("This table is not yours")
        page.get_by_role("link", name="To the tables").click()
        expect(page.locator(".set-up form")).to_be_visible()


def test_the_page_explains_the_socket_limit(visit, tmp_path):
    with running(tmp_path / "tables.sqlite", fewer(sockets=1)) as client:
        page = visit(str(client.base_url))
        set_up(page)
        other = page.context.new_page()
        other.goto(page.url)
        expect(other.locator("#offline")).to_have_text("1 sockets are open, the maximum. Trying again …")
        page.close()
        expect(other.locator("#offline")).to_be_hidden()
        expect(other.locator(".play[data-at]")).to_be_visible()


def test_the_page_shows_error_messages_of_the_server(visit):
    page = visit()
    open_rules(page)
    page.get_by_label("Start from a position").fill("nonsense")
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("alert")).to_contain_text("position")


# ------------------------------------------------------------------------------------------------ motion, control

SLIDES = """() => {
  window.slides = [];
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (frames, timing) {
    window.slides.push(frames[0].translate.split(" ").map(Number.parseFloat));
    return animate.call(this, frames, timing);
  };
}"""
WATER = "() => [...document.querySelectorAll('.path.color-0 .cell')].map(cell => cell.getBoundingClientRect().left)"


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_pieces_slide_from_their_old_space_unless_motion_is_reduced(visit, motion):
    page = visit(width=1280, height=720, reduced_motion=motion)
    set_up(page, position=line("A......|.....", "wf(meo) 9 A move 0 wwwff"))
    page.evaluate(SLIDES)
    with a_step(page):
        page.locator(".choices .choice", has_text="water").click()
    lefts = page.evaluate(WATER)
    slides = [] if motion == "reduce" else [pytest.approx([lefts[1] - lefts[4], 0], abs=1)]
    assert page.evaluate("window.slides.slice(0, 1)") == slides


def test_a_sentence_and_the_title_report_the_game(visit):
    page = visit()
    set_up(page, position=line("A......|.....", "wf(meo) 9 A move 0 wwwff"))
    assert my_turn(page)
    expect(page).to_have_title(re.compile("^Your turn: where to move"))
    with a_step(page):
        page.locator(".choices .choice", has_text="water").click()
    expect(page.locator(".happened")).to_have_text(re.compile("^(Ann|greedy): "))
    expect(page.locator(".happened")).to_be_visible()
    expect(page.locator(".happened .dice-row")).to_be_visible()  # the dice of the last decision
    row, die = (page.locator(f".happened{part}").first.bounding_box() for part in ("", " .glyph"))
    assert row["y"] <= die["y"] < die["y"] + die["height"] <= row["y"] + row["height"]


def test_agents_can_be_paused_stepped_and_slowed(visit):
    page = visit(width=360, height=740)
    open_rules(page)
    page.get_by_role("button", name="Watch agents play").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    for _ in range(3):
        with a_step(page):
            page.get_by_role("button", name="Step").click()
    page.reload()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    with a_step(page):
        page.get_by_label("Speed of agents").select_option("fast")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_label("Speed of agents")).to_have_value("0.2")


def test_a_player_resigns_and_plays_a_rematch(visit):
    page = visit()
    page.on("dialog", lambda dialog: dialog.accept())
    set_up(page)
    assert my_turn(page)
    page.locator("summary", has_text="resign").click()
    page.get_by_role("button", name="Resign").click()
    expect(page.locator(".result")).to_have_text("Ann resigns, greedy wins.")
    expect(page.get_by_role("button", name="Resign")).to_be_hidden()
    page.get_by_role("button", name="Rematch").click()
    expect(page.locator(".sub").first).to_contain_text("game 2")


def test_tables_can_be_deleted(visit, site):
    page = visit()
    page.on("dialog", lambda dialog: dialog.accept())
    for _ in range(2):
        page.goto(site)
        set_up(page)
    page.locator("summary", has_text="resign").click()
    page.get_by_role("button", name="Delete the table").click()
    page.wait_for_selector(".set-up form")
    assert len(page.evaluate("JSON.parse(localStorage.getItem('wotd-tables'))")) == 1


def test_spectators_are_visible(visit):
    page = visit()
    set_up(page)
    link = page.evaluate(
        "() => { const [[id, { watch }]] = Object.entries(JSON.parse(localStorage['wotd-tables']));"
        " return `${location.origin}/#/watch/${id}/${watch}` }"
    )
    spectator = visit(link)
    for seen in (page, spectator):
        expect(seen.locator(".sub").first).to_contain_text("1 spectator")


# ------------------------------------------------------------------------------------------------ review


def test_a_recorded_game_can_be_stepped_through(visit):
    page = visit()
    step_through(page)
    expect(page.locator(".grades")).to_contain_text(
        "An error costs at least 0.5 %, a blunder at least 2.5 %."
    )
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
    page.get_by_role("link", name="Analyze").click()
    expect(page.get_by_label("Position as text")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Play on from here").click()
    expect(page.get_by_label("Start from a position")).to_have_value(re.compile("wf"))
    expect(page.get_by_label("name of seat A")).to_have_value("Ann")
    expect(page.get_by_label("agent of seat B")).to_have_value("greedy")
    page.get_by_role("button", name="Start the game").click()
    expect(page.locator(".board")).to_be_visible()


# ------------------------------------------------------------------------------------------------ dice, words, errors


def faces(page: Page) -> list[str | None]:
    """Return the faces of the dice from left to right."""
    return [die.get_attribute("data-face") for die in page.locator(".die").all()]


def test_a_kept_die_keeps_its_place_and_key(visit):
    page = visit(width=1280, height=720)
    # Five different faces, because an action names only one of several equal dice.
    set_up(page, position=line(".......|.....", "wf(meo) 1 A keep 2 wfmed"))
    assert my_turn(page)
    rested(page)
    kept = faces(page)[3]
    page.keyboard.press("4")
    with a_step(page):
        page.keyboard.press("r")
    assert my_turn(page)
    assert faces(page)[3] == kept
    expect(page.locator(".die").nth(3)).to_have_attribute("aria-pressed", "true")
    page.reload()
    page.wait_for_selector(".dock.mine")
    assert faces(page)[3] == kept


@pytest.mark.parametrize("address", ["constructor", "new/%E0%A4%A", "nowhere"])
def test_an_unknown_address_shows_an_error_and_a_home_link(visit, address):
    page = visit(f"#/{address}")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    page.get_by_role("link", name="Way of the Dragon").click()
    expect(page.locator(".set-up form")).to_be_visible()


def test_an_invitation_names_the_address_that_others_reach(visit, tmp_path):
    with running(tmp_path / "tables", address="http://192.0.2.7:8000/") as client:
        page = visit(str(client.base_url))
        page.get_by_label("who plays seat B").select_option("invited")
        page.get_by_role("button", name="Start the game").click()
        link = page.get_by_label("Link for seat B")
        expect(link).to_have_value(re.compile(r"^http://192\.0\.2\.7:8000/#/join/"))


def test_play_now_starts_a_game_with_the_last_settings(visit, site):
    page = visit(width=1366, height=657)
    page.get_by_label("Players").select_option("3")
    page.get_by_label("agent of seat C").select_option("newcomer")
    set_up(page, agent="planner", powers="own", spaces=2)
    page.goto(site)
    page.get_by_role("button", name="Play now").click()
    expect(page.locator(".seat .name")).to_have_text(["Ann", "planner", "newcomer"])
    page.goto(site)
    open_rules(page)
    expect(page.get_by_label("Plain spaces")).to_have_value("2")
    expect(page.get_by_label("Powers of the animals")).to_have_value("own")


def test_a_pasted_position_sets_the_number_of_players(visit):
    game = Game(Rules(players=4))
    page = visit()
    open_rules(page)
    page.get_by_label("Start from a position").fill(position(game.rules, game.new(1, seed=1)))
    page.get_by_role("button", name="Start the game").click()
    expect(page.locator(".seat")).to_have_count(4)


def test_an_opponent_is_chosen_by_its_strength(visit):
    page = visit()
    open_rules(page)
    agent = page.get_by_label("agent of seat B")
    expect(agent).to_have_value("easy")
    group = agent.locator("optgroup[label='By strength'] option")
    expect(group).to_have_text([re.compile(f"^{level} · ") for level in range(1, 8)])
    page.get_by_label("Plain spaces").fill("6")
    page.get_by_label("Plain spaces").blur()
    expect(group.last).to_be_disabled()
    expect(group.last).to_have_text("near perfect is not made for spaces=6")
    expect(page.locator(".seat-box .quiet")).to_contain_text("near perfect is not made for spaces=6")
    agent.select_option("newcomer")
    page.get_by_role("button", name="Start the game").click()
    expect(page.locator(".seat .name").last).to_have_text("newcomer")


def test_copying_reports_a_stopped_server(visit, tmp_path):
    with running(tmp_path / "tables.sqlite") as client:
        page = visit(str(client.base_url))
        set_up(page)
        page.locator("summary", has_text="Share").click()
    page.get_by_role("button", name="Copy the game").click()
    work = page.locator(".work", has_text="Copy the game")
    expect(work.get_by_role("alert")).to_have_text("The server does not answer. Is it running?")


def test_a_power_opens_its_part_of_the_rules(visit):
    page = visit()
    set_up(page, powers="own")
    page.locator(".seat").first.get_by_role("button", name="fear").click()
    dialog = page.get_by_role("dialog", name="Rules")
    expect(dialog.get_by_text("Water, black tortoise: fear")).to_be_in_viewport()
    expect(dialog.locator(".marked")).to_contain_text("fear")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Rules").click()
    expect(dialog.locator(".marked")).to_have_count(0)


def test_a_waiting_table_hides_colors_until_agents_fill_its_seats(visit):
    page = visit()
    page.get_by_label("Players").select_option("3")
    open_rules(page)
    page.get_by_label("Colors").select_option("random")
    for seat in "BC":
        page.get_by_label(f"who plays seat {seat}").select_option("open")
    page.get_by_role("button", name="Start the game").click()
    expect(page.locator(".seat .unknown")).to_have_count(3)
    expect(page.locator(".board .piece")).to_have_count(0)
    page.get_by_role("button", name="Fill with agents").click()
    expect(page.locator(".seat .name")).to_have_text(["Player A", "easy", "easy"])
    assert my_turn(page)
    expect(page.locator(".board .piece")).to_have_count(15)
