"""The page of `wotd serve` in a real browser: the analysis board."""

from urllib.parse import quote

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import expect

from tests.helpers.positions import immune_pieces
from tests.helpers.server import LINE
from wotd_env import Game, notation
from wotd_env.analysis import Advisor

pytestmark = pytest.mark.slow

BOARD = ".......|...../..B....|...../.......|...../.......|...../.......|....."


def test_choices_are_listed_by_their_chance_to_win(visit):
    page = visit(f"#/analysis/{quote(LINE, safe='')}", width=1366, height=768)
    rules, state = notation.parse_position(LINE)
    game = Game(rules, skip_forced=False)
    equities = Advisor(game).analyze(state).actions[0]
    rows = page.locator(".losses li")
    expect(rows).to_have_count(int(game.legal_actions(state).sum()))
    first = rows.first
    expect(first).to_contain_text(f"{50 + 50 * float(equities.max()):.0f} %")
    first.get_by_role("button").click()
    expect(page.locator("#analysis-title")).to_contain_text("After:")
    page.get_by_role("button", name="Back to the position").click()
    expect(page.locator("#analysis-title")).not_to_contain_text("After:")


def test_locks_are_on_the_pieces_that_the_engine_never_swaps(visit):
    game, state, immune = immune_pieces()
    page = visit(f"#/analysis/{quote(notation.position(game.rules, state), safe='')}")
    expect(page.locator(".board .lock")).to_have_count(len(immune))
    for seat, path in immune:
        cell = page.locator(".board [role=row]").nth(path).locator("[role=gridcell]").nth(seat + 1)
        expect(cell.locator(".lock")).to_have_count(1)


@pytest.mark.parametrize(("width", "height"), [(1366, 657), (1280, 720), (1366, 768)])
@pytest.mark.parametrize("language", ["en", "de"])
def test_eight_choices_are_visible(visit, width, height, language):
    page = visit(f"#/analysis/{quote(LINE, safe='')}", width=width, height=height, locale=language)
    rows = page.locator(".losses li")
    for number in range(8):
        expect(rows.nth(number)).to_be_in_viewport(ratio=1)
    bottom = rows.nth(7).bounding_box()["y"] + rows.nth(7).bounding_box()["height"]
    seen = page.locator(".losses .choice-list").bounding_box()
    assert bottom <= seen["y"] + seen["height"] + 0.5


def test_position_is_edited_by_taps_and_fields_and_shared_as_a_line(visit):
    page = visit("#/analysis")
    page.get_by_label("A tap on a space").select_option("B")
    page.locator(".board [role=row]").nth(1).locator("[role=gridcell]").nth(3).click()
    line = page.get_by_label("Position as text")
    expect(line).to_have_value(
        ".......|...../..B....|...../.......|...../.......|...../.......|..... wf(meo) 1 A keep 2 wwfmd"
    )
    page.get_by_label("Dice: w f m e o").fill("ddddf")
    page.get_by_label("Dice: w f m e o").press("Tab")
    page.get_by_label("Phase").select_option("move")
    expect(line).to_have_value(f"{BOARD} wf(meo) 1 A move 2 fdddd")
    address = page.url
    again = visit(address)
    expect(again.get_by_label("Position as text")).to_have_value(line.input_value())


def test_two_changes_before_the_server_answers_are_both_kept(visit):
    page = visit(f"#/analysis/{quote(LINE, safe='')}")
    line = page.get_by_label("Position as text")
    wanted = line.input_value().replace("keep 2 wwfmd", "keep 1 ffddd")
    requests = []

    def answer_in_reverse_order(route):
        requests.append(route)
        if len(requests) == 2:
            for request in reversed(requests):
                request.continue_()

    page.route("**/api/choices", answer_in_reverse_order)
    page.get_by_label("Dice: w f m e o").fill("ffddd")
    page.get_by_label("Dice: w f m e o").press("Tab")
    page.get_by_label("Re-rolls left").select_option("1")
    page.get_by_label("Dice: w f m e o").fill("w")  # not entered yet
    expect(line).to_have_value(wanted)
    expect(page.get_by_label("Dice: w f m e o")).to_have_value("w")


def test_choices_of_two_agents_are_marked(visit):
    page = visit(f"#/analysis/{quote(LINE, safe='')}")
    page.get_by_label("choice of an agent").select_option("planner")
    page.get_by_label("choice of another agent").select_option("greedy")
    for name in ("planner", "greedy"):
        expect(page.locator(".losses .loss", has_text=f"{name} ·")).to_have_count(1)


def test_an_invalid_change_keeps_the_position(visit):
    page = visit("#/analysis")
    page.get_by_label("Dice: w f m e o").fill("xxxxx")
    page.get_by_label("Dice: w f m e o").press("Tab")
    expect(page.get_by_role("alert")).to_contain_text("dice")
    expect(page.locator(".losses li").first).to_be_visible()
