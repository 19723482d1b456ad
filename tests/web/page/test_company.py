"""The page of `wotd serve`: people who leave, let others wait or lose their connection, and agents in their place."""

import re
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Page, expect

from tests.helpers.page import a_step, at, line, my_turn, open_rules, rested, set_up

pytestmark = pytest.mark.slow

KEEP = line(".......|.....", "wf(meo) 1 A keep 2 wwfmd")
LAST = "......A|...../" + "/".join(["...B...|A...."] * 4) + " wf(meo) 1 A keep 2 wwwww"


def answer_dialogs(page: Page, *answers: bool) -> list[str]:
    """Accept or dismiss the next dialogs of a page; return their questions as they come."""
    questions: list[str] = []

    def answer(dialog: Any) -> None:
        questions.append(dialog.message)
        if answers[len(questions) - 1]:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    return questions


def two_people(visit: Any, clock: str, position: str = "") -> tuple[Page, Page]:
    """Return the pages of a host and of a guest in seat B, at a table with a clock."""
    host, guest = visit(), visit(width=844, height=390)
    host.get_by_label("name of seat A").fill("Ann")
    host.get_by_label("who plays seat B").select_option("invited")
    open_rules(host)
    choices = host.get_by_label("Time for a decision")
    choices.evaluate("(it, value) => it.options[1].value = value", clock)  # shorter than all that are offered
    choices.select_option(clock)
    host.get_by_label("Start from a position").fill(position)
    host.get_by_role("button", name="Start the game").click()
    guest.goto(host.get_by_label("Link for seat B").input_value())
    guest.get_by_label("Your name").fill("Bob")
    guest.get_by_role("button", name="Take the seat").click()
    for page in (host, guest):
        page.wait_for_selector(".play[data-status=playing]")
    return host, guest


def test_handing_over_a_seat_asks_and_can_be_taken_back(visit):
    page = visit()
    questions = answer_dialogs(page, False, True)
    set_up(page, position=KEEP)
    page.locator("summary", has_text="resign").click()
    page.get_by_label("Speed of agents").select_option(
        "very slow"
    )  # the game lasts longer than any wait for the page
    expect(page.get_by_label("agent for Ann")).to_have_value("strong")
    hand_over = page.get_by_role("button", name="Hand over")
    hand_over.click()
    expect(page.locator(".seat .name").first).to_have_text("Ann")
    hand_over.click()
    expect(page.locator(".seat .name").first).to_have_text("strong")
    expect(page.locator(".die[aria-pressed]")).to_have_count(0)
    page.locator(".dock").get_by_role("button", name="Take the seat back").click()
    expect(page.locator(".seat .name").first).to_have_text("Ann")
    assert len(questions) == 2
    assert all("strong" in question and "Ann" in question for question in questions)
    assert my_turn(page)


def test_a_seat_can_be_taken_back_after_the_end(visit):
    page = visit()
    answer_dialogs(page, True)
    set_up(page, position=LAST)
    page.locator("summary", has_text="resign").click()
    page.get_by_role("button", name="Hand over").click()
    page.wait_for_selector(".result")
    page.locator(".dock").get_by_role("button", name="Take the seat back").click()
    expect(page.locator(".seat .name").first).to_have_text("Ann")


def test_who_returns_to_a_replaced_seat_watches_and_takes_it_back(visit):
    host, guest = two_people(visit, "300")
    answer_dialogs(host, True)
    table = guest.url
    guest.goto("about:blank")
    host.locator("summary", has_text="resign").click()
    host.locator(".hand-over", has_text="Bob").get_by_role("button", name="Hand over").click()
    expect(host.locator(".seat .name").last).to_have_text("strong")
    guest.goto(table)
    expect(guest.locator(".board")).to_be_visible()
    guest.locator(".dock").get_by_role("button", name="Take the seat back").click()
    expect(host.locator(".seat .name").last).to_have_text("Bob")


def test_an_idle_player_is_reminded_and_replaced(visit):
    host, guest = two_people(visit, "1", KEEP.replace(" A ", " B "))
    expect(guest.locator("#offline")).to_have_text("The others are waiting for you.")
    expect(guest.locator(".sub").first).to_contain_text("no time left")
    answer_dialogs(host, True)
    host.locator(".dock").get_by_role("button", name="Let an agent play").click()
    expect(host.locator(".seat .name").last).to_have_text("strong")
    expect(guest.locator("#offline")).to_be_hidden()


def test_a_decision_without_an_answer_reopens_the_socket(visit):
    page = visit(width=1280, height=720)
    sockets: list[Any] = []

    def pass_on(socket: Any) -> None:
        server = socket.connect_to_server()
        sockets.append(server)
        frozen = len(sockets) == 1
        socket.on_message(lambda text: None if frozen and '"act"' in text else server.send(text))

    page.route_web_socket(re.compile("/socket$"), pass_on)
    set_up(page, position=KEEP)
    rested(page)
    before = at(page)
    page.clock.install()
    page.clock.pause_at(2 * 10**12)
    page.locator("[data-name=stop]").click()
    pending = page.get_by_text("Waiting for the server …")
    expect(page.locator(".dock")).to_have_attribute("aria-busy", "true")
    expect(pending).to_be_visible()
    page.clock.run_for(4_900)
    expect(page.locator("#offline")).to_be_hidden()
    page.clock.run_for(200)
    expect(page.locator("#offline")).to_have_text("No answer. Trying again …")
    page.clock.run_for(1_000)
    expect(page.locator("#offline")).to_be_hidden()
    expect(pending).to_be_hidden()
    assert len(sockets) == 2
    assert at(page) == before
    page.clock.run_for(1_000)
    with a_step(page):
        page.locator("[data-name=stop]").click()


@pytest.mark.parametrize("place", [".board", "button:text('Skip')"])
def test_a_tap_skips_the_waits_for_agents(visit, place):
    page = visit()
    page.get_by_label("Players").select_option("3")
    open_rules(page)
    page.get_by_label("Speed of agents").select_option("very slow")
    page.get_by_label("Plain spaces").fill("0")
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")
    if not page.locator(".dock.mine").count():
        rested(page)
        page.locator(place).click(position={"x": 3, "y": 3})
    page.wait_for_selector(".dock.mine", timeout=4_500)  # a single decision of an agent takes 5 s
