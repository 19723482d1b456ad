"""The page of `wotd serve`: one intention has one effect, and no move is played that nobody chose."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("starlette", reason="the server needs the extra web")

from playwright.sync_api import Locator, Page, expect

from tests.helpers.page import line, my_turn, open_rules, rested, set_up, step_through

pytestmark = pytest.mark.slow

REST = 500  # milliseconds


def own_tables(page: Page) -> dict[str, Any]:
    """Return the keys of the tables that a browser has stored."""
    found: dict[str, Any] = page.evaluate("JSON.parse(localStorage.getItem('wotd-tables') ?? '{}')")
    return found


def view_of(page: Page) -> Any:
    """Return the view of the shown table from the server."""
    table = page.url.rsplit("/", 1)[1]
    headers = {"Authorization": f"Bearer {own_tables(page)[table]['key']}"}
    return page.request.get(f"{page.url.split('#')[0]}api/tables/{table}", headers=headers).json()


def at_table(visit: Any, **how: Any) -> Page:
    """Return a page with a decision to take, whose clock stands still."""
    page: Page = visit(width=1280, height=720)
    set_up(page, **how)
    assert my_turn(page)
    rested(page)
    page.clock.install()
    page.clock.pause_at(10**12 * 2)
    return page


def click(page: Page, place: dict[str, float]) -> None:
    """Click at the center of a box, whatever is there."""
    page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)


def box(found: Locator) -> Any:
    return found.bounding_box()


def settled(page: Page, ply: int) -> None:
    """Wait until the page shows decision `ply`, and the server has answered all earlier messages."""
    page.wait_for_function("ply => document.querySelector('.play').dataset.at.endsWith(ply)", arg=f"/{ply}")
    assert view_of(page)["ply"] == ply


def decided_again(page: Page) -> None:
    """Wait for the second decision. Its dice may leave only one move; then the opponent plays at once."""
    page.wait_for_function("() => Number(document.querySelector('.play').dataset.at.split('/').pop()) >= 2")


@pytest.mark.parametrize("name", ["Start the game", "Watch agents play"])
def test_double_click_sets_up_one_table(visit, name):
    page = visit()
    open_rules(page)
    page.get_by_label("Speed of agents").select_option("very slow")
    page.get_by_role("button", name=name).dblclick()
    page.wait_for_selector(".play[data-at]")
    assert len(own_tables(page)) == 1
    assert view_of(page)["ply"] == 0
    page.go_back()
    open_rules(page)
    page.get_by_role("button", name=name).click()  # the same choices again are another table
    page.wait_for_selector(".play[data-at]")
    assert len(own_tables(page)) == 2


def test_double_click_takes_one_seat(visit, site):
    host, guest = visit(), visit()
    host.get_by_label("Players").select_option("3")
    for seat in "BC":
        host.get_by_label(f"who plays seat {seat}").select_option("open")
    host.get_by_role("button", name="Start the game").click()
    expect(host.locator("#whose")).to_have_text("Waiting for players")
    guest.goto(f"{site}/#/open/{host.url.rsplit('/', 1)[1]}")
    guest.get_by_label("Your name").fill("Bob")
    guest.get_by_role("button", name="Take the seat").dblclick()
    guest.wait_for_selector(".play[data-at]")
    assert view_of(guest)["mine"] == [1]
    assert view_of(host)["waiting_for"] == [2]


@pytest.mark.parametrize("gap", [0, 40, 80, 200, 400, REST - 1])
def test_second_click_does_not_roll_again(visit, gap):
    page = at_table(visit, position=line(".......|.....", "wf(meo) 1 A keep 2 wwfmd"))
    roll = box(page.locator("[data-name=roll]"))
    click(page, roll)
    settled(page, 1)
    page.clock.run_for(gap)
    click(page, roll)
    page.clock.run_for(REST - 1)  # clicks that are too early extend the rest
    click(page, roll)
    settled(page, 1)
    page.clock.run_for(REST)
    click(page, roll)
    decided_again(page)


@pytest.mark.parametrize("key", ["r", "Enter"])
def test_held_key_takes_one_decision(visit, key):
    page = at_table(visit, position=line(".......|.....", "wf(meo) 1 A keep 2 wwfmd"))
    for _ in range(5):
        page.keyboard.down(key)  # repeats the key
        page.clock.run_for(2 * REST)
    settled(page, 1)
    page.keyboard.up(key)
    page.keyboard.press(key)
    decided_again(page)


@pytest.mark.parametrize("cell", ["[data-name=roll]", ".choices .choice"])
def test_held_enter_on_a_button_takes_one_decision(visit, cell):
    page = at_table(visit, position=line(".......|.....", "wf(meo) 1 A keep 2 wwfmd"))
    page.locator(cell).last.focus()
    for _ in range(5):
        page.keyboard.down("Enter")
        page.clock.run_for(2 * REST)
    settled(page, 1)


def test_no_move_is_focused_or_confirmed_that_nobody_chose(visit):
    page = at_table(visit, position=line(".......|.....", "wf(meo) 1 A keep 1 wwffm"))
    page.locator("[data-name=stop]").focus()
    page.keyboard.press("Enter")
    settled(page, 1)
    page.clock.run_for(REST)
    assert page.evaluate("document.activeElement.closest('.choice') === null")
    page.keyboard.press("Enter")
    settled(page, 1)
    page.locator("[data-mark=move]").first.click()
    page.wait_for_function("() => !document.querySelector('.play').dataset.at.endsWith('/1')")


def test_double_click_gives_one_seat_to_an_agent(visit):
    page = visit(width=1280, height=720)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label("who plays seat B").select_option("here")
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")
    page.locator("summary", has_text="resign").click()
    rows = page.locator(".hand-over")
    expect(rows).to_have_count(2)
    rows.locator("option[value=greedy]").last.wait_for(state="attached")
    rows.last.scroll_into_view_if_needed()
    for count in (1, 2):  # the button of the other seat can move to the place of the first one
        place = box(rows.first.get_by_role("button"))
        page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)
        expect(rows).to_have_count(1)
    page.wait_for_load_state("networkidle")
    assert len(view_of(page)["mine"]) == 1


def test_double_click_pauses_once(visit):
    page = visit()
    open_rules(page)
    page.get_by_label("Speed of agents").select_option("very slow")
    page.get_by_role("button", name="Watch agents play").click()
    place = page.get_by_role("button", name="Pause").bounding_box()
    assert place
    page.mouse.dblclick(place["x"] + 5, place["y"] + 5)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    assert view_of(page)["pace"] is None


def test_double_click_answers_a_puzzle_but_does_not_leave_it(visit):
    page = visit("#/puzzle/1", width=1280, height=720)
    page.wait_for_selector(".dock.mine")
    rested(page)
    page.locator(".choices .choice").first.dblclick()
    expect(page.locator(".losses li").first).to_be_visible()
    assert page.url.endswith("#/puzzle/1")


# ------------------------------------------------------------------------------------------------ surroundings


@contextmanager
def proxy(site: str, asked: list[str]) -> Iterator[str]:
    """Serve a site under a prefix; yield the address, and note the paths of all requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            upstream = http.client.HTTPConnection(site.removeprefix("http://"))
            body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
            upstream.request(self.command, self.path.removeprefix("/games"), body, dict(self.headers))
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            self.send_response(answer.status)
            for name in ("content-type", "content-security-policy"):
                self.send_header(name, answer.headers.get(name, ""))
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/games/"
        server.shutdown()


def test_requests_stay_below_the_prefix_of_a_proxy(visit, site):
    page, asked = visit(), []
    page.on("websocket", lambda socket: asked.append(f"/{socket.url.split('/', 3)[3]}"))
    with proxy(site, asked) as address:
        for part in ("", "#/learn", "#/puzzle/1", "#/analysis"):
            page.goto(address + part)
            expect(page.locator("h1").first).to_be_visible()
            page.wait_for_load_state("networkidle")
        page.locator("#open-rules").click()
        expect(page.locator("#rules-text h2").first).to_be_visible()
        page.keyboard.press("Escape")
        page.goto(address)
        step_through(page)
        page.goto(address)
        page.get_by_role("button", name="Start the game").click()
        expect(page.locator("#offline")).to_be_visible()  # this proxy does not pass on sockets
    assert any(path.endswith("/socket") for path in asked)
    assert [path for path in asked if not path.startswith("/games/")] == []


REFUSE = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, name, { get() { throw new DOMException("refused", "SecurityError"); } });"""
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"


@pytest.mark.parametrize("script", [REFUSE, FULL])
def test_page_works_if_the_browser_stores_nothing(visit, script):
    page = visit()
    page.evaluate("localStorage.setItem('wotd-name', JSON.stringify('Old'))")
    page.add_init_script(script)
    page.reload()
    step_through(page)
    page.goto(page.url.split("#")[0] + "#/game")
    page.wait_for_selector(".review")
    page.goto(page.url.split("#")[0] + "#/")
    set_up(page)
    page.goto(page.url.split("#")[0] + "#/")
    expect(page.get_by_label("name of seat A")).to_have_value("Ann")  # newer than the stored name
    page.goto(page.url.split("#")[0] + "#/puzzle/1")
    page.wait_for_selector(".dock.mine")
    page.locator(".choices .choice").first.click()
    expect(page.locator(".statistics dd").first).to_contain_text("of 1")
    page.reload()
    page.goto(page.url.split("#")[0] + "#/game")
    page.wait_for_selector(".set-up form")  # nothing is left to show
