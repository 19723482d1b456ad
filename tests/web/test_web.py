"""The server of tables: what it lets people do, what it tells them, and what it does not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.helpers import ROOT
from tests.helpers.server import dice_of, fewer, running, wait_until_ready
from wotd_env import STATE, Game, Rules, notation
from wotd_env.cli import app
from wotd_env.core.state import States
from wotd_env.policy import Policy
from wotd_env.web.app import make_app
from wotd_env.web.limits import Limits, Rate, Refused, client_of
from wotd_env.web.log import concerns
from wotd_env.web.review import advise, replay
from wotd_env.web.store import Store
from wotd_env.web.tables import Tables

HERE, GREEDY = {"kind": "here", "name": "Ann"}, {"kind": "agent", "agent": "greedy"}
OPEN, INVITED = {"kind": "open"}, {"kind": "invited"}

VARIANTS: list[dict[str, Any]] = [
    {"players": 2, "spaces": 3},
    {"players": 2, "spaces": 2, "powers": "any", "immunity": True, "start": "loser"},
    {"players": 3, "spaces": 3, "powers": "own", "dead_pieces": 4, "colors": "random"},
    {"players": 5, "spaces": 1, "powers": "any"},
]


@pytest.fixture(autouse=True)
def dice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the dice of each test follow from its name."""
    monkeypatch.setattr(Tables, "random", staticmethod(dice_of(request.node.name)))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("tables") / "tables.sqlite") as client:
        yield client


class At:
    """A table as somebody with a key has it."""

    def __init__(self, client: httpx.Client, table: str, key: str) -> None:
        self.client, self.url = client, f"/api/tables/{table}"
        self.table, self.key = table, key
        self.headers = {"Authorization": f"Bearer {key}"}

    def get(self, path: str = "", **query: Any) -> httpx.Response:
        return self.client.get(self.url + path, headers=self.headers, params=query)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(self.url + path, headers=self.headers, json=body)

    @property
    def view(self) -> Any:
        answer = self.get()
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, true: Callable[[Any], bool]) -> Any:
        """Return the first view of which something is true, told by the socket."""
        with self.socket() as socket:
            while True:
                view = json.loads(socket.recv(timeout=60))
                if view["type"] == "view" and true(view):
                    return self.view

    @contextlib.contextmanager
    def socket(self, hello: str | None = None, **how: Any) -> Iterator[ClientConnection]:
        url = f"ws://{self.client.base_url.netloc.decode()}{self.url}/socket"
        with connect(url, compression=None, **how) as socket:
            socket.send(json.dumps({"type": "hello", "key": self.key}) if hello is None else hello)
            yield socket

    def act(self, view: Any, choice: int = 0) -> Any:
        """Take a choice of a view; return the next view in which there is one, or in which the game is over."""
        answer = self.post("/act", ply=view["ply"], action=view["choices"][choice]["action"])
        assert answer.status_code == 200, answer.text
        return self.on(answer.json())

    def act_none(self) -> list[int]:
        """Roll all dice again; return them."""
        dice: list[int] = self.post("/act", ply=0, action="none").json()["dice"]
        return dice

    def on(self, view: Any) -> Any:
        if view["choices"] or view["status"] == "over":
            return view
        return self.until(lambda view: bool(view["choices"]) or view["status"] == "over")


def make(client: httpx.Client, *seats: Any, **table: Any) -> tuple[At, Any]:
    """Set up a table; return it, and the answer."""
    answer = client.post("/api/tables", json={"seats": seats, "pace": 0, **table})
    assert answer.status_code == 201, answer.text
    content = answer.json()
    return At(client, content["table"], content["key"]), content


def lasting(view: Any) -> Any:
    """Return a view without who is connected, of which a server learns some time after a socket was closed."""
    return view | {"seats": [seat | {"connected": None} for seat in view["seats"]]}


def until_closed(socket: ClientConnection, message: str | None = None) -> None:
    """Send a message over and over, and receive what comes."""
    while True:
        if message is not None:
            socket.send(message)
        socket.recv(timeout=60)


def closed(at: At) -> tuple[int, str]:
    """Open a socket that the server closes at once; return the code and the reason."""
    with pytest.raises(ConnectionClosed) as told, at.socket() as socket:
        until_closed(socket)
    assert told.value.rcvd is not None
    return told.value.rcvd.code, told.value.rcvd.reason


def play(at: At, limit: int = 10_000) -> Any:
    """Play for whoever is mine until the game is over, or some decisions are taken; return the last view."""
    view = at.on(at.view)
    for number in range(limit):
        if view["status"] == "over":
            break
        view = at.act(view, number % len(view["choices"]))
    return view


# ---------------------------------------------------------------------------------------------------- games


@pytest.mark.parametrize("rules", VARIANTS)
def test_a_whole_game_is_played_by_the_rules(client: httpx.Client, rules: dict[str, Any]) -> None:
    at, content = make(client, HERE, *[GREEDY] * (rules["players"] - 1), rules=rules)
    view = at.on(content["view"])
    game = Game(Rules(**rules), skip_forced=False)
    while view["status"] != "over":
        _, state = notation.parse_position(view["position"])
        assert [choice["action"] for choice in view["choices"]] == np.flatnonzero(
            game.legal_actions(state)[0]
        ).tolist()
        for choice in view["choices"]:
            assert notation.parse_action(game, state, choice["notation"]) == choice["action"]
            after = state.copy()
            game.decide(after, [choice["action"]])
            for move in choice["moves"]:
                assert state["pieces"][0, move["seat"], move["path"]] == move["from"]
                assert after["pieces"][0, move["seat"], move["path"]] == move["to"]
            assert len(choice["moves"]) == (state["pieces"] != after["pieces"]).sum()
        view = at.act(view, view["ply"] % len(view["choices"]))
    view = at.view
    recorded = notation.parse_game(at.get("/text").json()["text"])
    assert recorded.actions.tolist() == [step["action"] for step in view["log"]]
    assert view["scores"] == game.scores(recorded.states[-1:])[0].tolist()
    assert view["result"]["rewards"] == pytest.approx(
        game.rewards(recorded.states[-1:])[0].tolist(), abs=1e-5
    )
    assert [step["ply"] for step in view["log"]] == list(range(view["ply"]))
    assert all(step["words"].startswith(view["seats"][step["seat"]]["name"]) for step in view["log"])


def test_dice_that_were_kept_are_told(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE)
    view = at.view
    choice = next(choice for choice in view["choices"] if sum(choice["keep"]) == 2)
    now = at.post("/act", ply=0, action=choice["action"]).json()
    held = [face for face, keep in zip(view["dice"], choice["keep"], strict=True) if keep]
    assert [face for face, keep in zip(now["dice"], now["kept"], strict=True) if keep] == held
    assert now["log"][0]["roll"] == now["dice"]
    assert now["log"][0]["dice"] == view["dice"]


BOARD = "..A....|B..../#B.....|A..../.......|...../.......|...../.......|....."
LINE = f"{BOARD} wf(meo) 12 A keep 2 wwfmd used=B powers=own"


def test_decisions_can_be_written_as_words(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, position=LINE)
    assert at.post("/act", ply=0, action="stop").json()["log"][0]["notation"] == "stop"
    refused = at.post("/act", ply=1, action="stop")
    assert refused.status_code == 400
    assert refused.json()["field"] == "action"
    assert at.post("/act", ply=1, action="w5").json()["moved"] == [{"seat": 0, "path": 0, "from": 3, "to": 5}]


def test_a_position_can_be_the_beginning(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, position=LINE + " stream=0123456789abcdef")
    assert (
        notation.parse_position(at.view["position"])[1].tobytes()
        == notation.parse_position(LINE)[1].tobytes()
    )
    rolls = {
        tuple(make(client, HERE, HERE, position=LINE + " stream=0123456789abcdef")[0].act_none())
        for _ in range(8)
    }
    assert len(rolls) > 1  # the stream in the line is not the one that rolls


def test_forced_decisions_are_taken_by_themselves(client: httpx.Client) -> None:
    blocked = "|....A/|....A/|....A/|....A/|..... wf(meo) 3 A keep 2 wwwww"  # all but one piece have arrived
    at, _ = make(client, HERE, HERE, position=blocked)
    at.post("/act", ply=0, action="stop")
    view = at.until(lambda view: view["ply"] == 2)
    assert view["log"][1]["forced"]
    assert view["log"][1]["notation"] == "pass"


def test_the_next_game_is_begun_by_the_loser(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, rules={"spaces": 0, "start": "loser"})
    view = play(at)
    assert at.post("/next", game=view["game"] + 1).status_code == 409
    (loser,) = {0, 1} - set(view["result"]["winners"])
    again = at.post("/next", game=view["game"]).json()
    assert (again["game"], again["ply"], again["player"], again["roll_off"]) == (2, 0, loser, None)
    assert at.post("/next", game=1).status_code == 409
    assert at.get("/text", game=1).json()["text"].endswith(f"{view['log'][-1]['notation']}\n")
    assert at.get("/review", game=1).status_code == 200
    assert at.get("/review", game=2).status_code == 409
    assert at.get("/text", game=3).status_code == 404


def test_the_roll_for_the_start_is_told(client: httpx.Client) -> None:
    _, content = make(client, HERE, HERE, HERE, rules={"players": 3})
    *_, last = content["view"]["roll_off"]
    most = max((dice.count(5), seat) for seat, dice in enumerate(last) if dice)
    assert content["view"]["player"] == most[1]


# ---------------------------------------------------------------------------------------------------- people


def test_an_invitation_works_once(client: httpx.Client) -> None:
    host, content = make(client, HERE, INVITED)
    assert (content["view"]["status"], content["view"]["waiting_for"]) == ("waiting", [1])
    invitation = content["invitations"][0]["invitation"]
    assert host.post("/act", ply=0, action=0).status_code == 409
    looked = client.post(f"{host.url}/invitation", json={"invitation": invitation}).json()
    assert (looked["seat"], looked["table"]["help"]) == (1, False)
    joined = client.post(f"{host.url}/join", json={"name": "Bob", "invitation": invitation})
    guest = At(client, host.table, joined.json()["key"])
    assert joined.json()["view"]["status"] == "playing"
    assert [seat["name"] for seat in guest.view["seats"]] == ["Ann", "Bob"]
    again = client.post(f"{host.url}/join", json={"name": "Eve", "invitation": invitation})
    assert (again.status_code, again.json()["field"]) == (403, "invitation")
    mine, other = (host, guest) if host.view["choices"] else (guest, host)
    assert other.view["choices"] == []
    assert other.post("/act", ply=0, action=0).status_code == 403
    assert mine.post("/act", ply=0, action=0).status_code == 200
    assert mine.post("/act", ply=0, action=0).status_code == 409


def test_open_seats_are_listed_until_they_are_taken(client: httpx.Client) -> None:
    host, _ = make(client, HERE, OPEN, OPEN, rules={"players": 3})
    listed = {entry["table"]: entry for entry in client.get("/api/tables").json()["tables"]}
    assert listed[host.table]["open"] == [1, 2]
    joined = client.post(f"{host.url}/join", json={"name": "Bob", "seat": 2}).json()
    assert (joined["seat"], joined["view"]["waiting_for"]) == (2, [1])
    assert client.post(f"{host.url}/join", json={"name": "Eve", "seat": 2}).status_code == 409
    assert client.post(f"{host.url}/join", json={}).json()["view"]["seats"][1]["name"] == "Player B"
    assert host.table not in {entry["table"] for entry in client.get("/api/tables").json()["tables"]}
    assert client.post(f"{host.url}/join", json={"name": "Eve"}).status_code == 409


def test_nobody_fills_the_list_of_open_tables(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=client.base_url, transport=elsewhere, timeout=60) as stranger:
            theirs = make(stranger, HERE, OPEN)[0].table
        mine = [make(client, HERE, OPEN)[0].table for _ in range(60)]
        listed = [entry["table"] for entry in client.get("/api/tables").json()["tables"]]
        assert listed == [*mine[:-6:-1], theirs]
        for table, entries in ((mine[0], [mine[0]]), (make(client, HERE, HERE)[0].table, [])):
            asked = client.get("/api/tables", params={"table": table}).json()["tables"]
            assert [entry["table"] for entry in asked] == entries
        assert client.get("/api/tables", params={"table": "none"}).status_code == 404


def test_a_seat_is_given_to_an_agent_by_whom_it_belongs_to(client: httpx.Client) -> None:
    host, _ = make(client, HERE, OPEN, OPEN, rules={"players": 3})
    guest = At(
        client, host.table, client.post(f"{host.url}/join", json={"name": "Bob", "seat": 1}).json()["key"]
    )
    assert guest.post("/seat", seat=2, agent="greedy").status_code == 403
    assert host.post("/seat", seat=2, agent="nobody").status_code == 400
    assert host.post("/seat", seat=3, agent="greedy").status_code == 400
    assert host.post("/seat", seat=2, agent="greedy").json()["status"] == "playing"
    with guest.socket() as socket:
        socket.recv(timeout=60)
        assert host.post("/seat", seat=1, agent="greedy").status_code == 403  # Bob is there
        gone = guest.post("/seat", seat=1, agent="greedy")
        assert (gone.status_code, gone.json()["mine"], gone.json()["host"]) == (200, [], False)
        with pytest.raises(ConnectionClosed):
            until_closed(socket)
    assert guest.get().status_code == 403  # the key went with the seat
    assert host.view["seats"][1]["agent"] == "greedy"


def test_everybody_is_told_at_once(client: httpx.Client) -> None:
    host, content = make(client, HERE, HERE, position=LINE)
    watcher = At(client, host.table, content["watch"])
    assert (watcher.view["mine"], watcher.view["choices"]) == ([], [])
    assert watcher.post("/act", ply=0, action=31).status_code == 403
    with host.socket() as mine, watcher.socket() as theirs:
        seen = json.loads(theirs.recv(timeout=60))
        first = json.loads(mine.recv(timeout=60))
        assert (first["type"], first["ply"], first["log"]) == ("view", 0, [])
        mine.send(json.dumps({"type": "act", "ply": 0, "action": 31}))
        while seen["type"] != "view" or not seen["log"]:
            seen = json.loads(theirs.recv(timeout=60))
        assert (seen["ply"], seen["log_from"], seen["log"][0]["action"]) == (1, 0, 31)
        for wrong, status in [
            ({"type": "act", "ply": 0, "action": 31}, 409),
            ({"type": "act", "ply": 1, "action": 0}, 400),
            ({"type": "act", "ply": 1}, 400),
            ({"type": "next", "game": 1}, 409),
            ({"type": "hello", "key": host.key}, 400),
        ]:
            mine.send(json.dumps(wrong))
            answer: dict[str, Any] = {"type": "view"}
            while answer["type"] != "error":
                answer = json.loads(mine.recv(timeout=60))
            assert answer["status"] == status
    assert host.view["ply"] == 1


# ---------------------------------------------------------------------------------------------------- help, reviews


def test_help_is_one_setting_for_the_whole_table(client: httpx.Client) -> None:
    assert make(client, HERE, GREEDY)[1]["view"]["help"]
    assert not make(client, HERE, OPEN)[1]["view"]["help"]
    assert not make(client, HERE, INVITED)[1]["view"]["help"]
    without, _ = make(client, HERE, GREEDY, help=False)
    assert without.get("/help").status_code == 409
    at, content = make(client, HERE, HERE, HERE, rules={"players": 3, "powers": "any"}, help=True)
    told = at.get("/help").json()
    assert sum(told["chances"]) == pytest.approx(1, abs=1e-3)
    assert [hint["loss"] for hint in told["hints"]] == sorted(hint["loss"] for hint in told["hints"])
    assert {hint["action"] for hint in told["hints"]} <= {choice["action"] for choice in at.view["choices"]}
    assert (
        at.client.get(at.url + "/help", headers={"Authorization": f"Bearer {content['watch']}"}).json()[
            "hints"
        ]
        == []
    )
    with at.socket() as socket:
        kinds = [json.loads(socket.recv(timeout=60))["type"] for _ in range(2)]
        assert kinds == ["view", "help"]


@pytest.mark.parametrize("rules", VARIANTS[:3])
def test_a_game_is_reviewed_when_it_is_over(client: httpx.Client, rules: dict[str, Any]) -> None:
    at, _ = make(client, *[HERE] * rules["players"], rules=rules)
    assert at.get("/review").status_code == 409
    view = play(at)
    told = at.get("/review").json()
    assert len(told["steps"]) == view["ply"]
    for step in told["steps"]:
        assert step["regret"] is None or step["regret"] >= 0
        assert sum(step["chances"]) == pytest.approx(1, abs=1e-3)
        assert step["forced"] == (step["regret"] is None)
    for seat in told["seats"]:
        own = [step for step in told["steps"] if step["seat"] == seat["seat"]]
        assert seat["blunders"] == sum(step["class"] == "blunder" for step in own)
        assert seat["regret"] == pytest.approx(sum(step["regret"] or 0 for step in own), abs=0.01)
    assert sum(seat["luck"] for seat in told["seats"]) == pytest.approx(0, abs=0.01)
    n = rules["players"]
    shares = [(1 + (n - 1) * reward) / n for reward in view["result"]["rewards"]]  # all equal if nobody wins
    assert told["last_chances"] == pytest.approx(shares, abs=1e-4)
    pasted = client.post("/api/games", json={"text": told["text"], "review": True}).json()
    assert {name: pasted[name] for name in ("steps", "seats")} == {
        name: told[name] for name in ("steps", "seats")
    }


def test_help_that_came_too_late_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = Event()

    def slow(game: Game, states: States) -> Sequence[Any]:
        go_on.wait(60)
        return advise(game, states)

    monkeypatch.setattr("wotd_env.web.tables.advise", slow)
    with running(tmp_path / "tables", fewer(thinking=0.2)) as client:
        at, _ = make(client, HERE, HERE, help=True)
        late = at.get("/help")
        assert (late.status_code, late.headers["Retry-After"]) == (503, "5")
        go_on.set()
        for _ in range(600):  # what was begun late is done first
            if (told := at.get("/help")).status_code == 200:
                break
            Event().wait(0.1)
        assert len(told.json()["hints"]) == 2


def test_games_and_positions_as_text_are_shown(client: httpx.Client) -> None:
    told = client.post("/api/games", json={"text": LINE}).json()
    assert (told["steps"], told["last"]["position"], told["graded"]) == ([], LINE, False)
    assert client.post("/api/games", json={"text": LINE, "review": True}).json()["last_chances"][0] > 0
    for wrong in ("", "x", "[Position 3]", f'[Position "{LINE}"]\n\n12. A [wwfmd] nonsense'):
        assert client.post("/api/games", json={"text": wrong}).status_code == 400
    assert client.post("/api/games", json={"text": "x" * 70_000}).status_code == 413


def test_a_review_of_a_table_is_counted_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path / "tables", fewer(games=1e-6)) as client:
        at, other = (make(client, HERE, HERE, rules={"spaces": 0})[0] for _ in range(2))
        for table in (at, other):
            play(table)
        told = at.get("/review")
        for _ in range(9):
            assert client.post("/api/games", json={"text": LINE}).status_code == 200
        assert other.get("/review").status_code == 429
        assert at.get("/review").content == told.content
        at.post("/seat", seat=0, agent="greedy")
        assert at.get("/review").status_code == 429  # it would name somebody else


@pytest.fixture
def long_reviews(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    """Let reviews from now on begin, and end when they are let go; gives the events of both."""
    begun, go_on, ended = events = [Event() for _ in range(3)]

    def long(recorded: notation.RecordedGame, graded: bool) -> dict[str, Any]:
        begun.set()
        go_on.wait(60)
        ended.set()
        return replay(recorded, graded)

    def begin() -> list[Event]:
        monkeypatch.setattr("wotd_env.web.app.replay", long)
        return events

    yield begin
    go_on.set()


def test_a_review_counts_until_its_thread_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_reviews: Callable[[], list[Event]]
) -> None:
    monkeypatch.setattr("wotd_env.web.app._REVIEW", 0.1)
    with running(tmp_path / "tables", fewer(reviews=1)) as client:
        _, go_on, _ = long_reviews()
        late, next_ = (client.post("/api/games", json={"text": LINE}) for _ in range(2))
        assert (late.status_code, late.json()["error"]) == (503, "the review takes too long")
        assert (next_.status_code, next_.json()["error"].partition(";")[0]) == (
            503,
            "too many games wait for their review",
        )
        go_on.set()
        monkeypatch.setattr("wotd_env.web.app._REVIEW", 60)
        for _ in range(600):
            if client.post("/api/games", json={"text": LINE}).status_code == 200:
                break
            Event().wait(0.1)
        else:
            pytest.fail("the review that has ended still counts")


def test_a_review_does_not_keep_the_server_from_stopping(
    tmp_path: Path, long_reviews: Callable[[], list[Event]], caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor() as pool:
        with running(tmp_path / "tables") as client:
            begun, _, ended = long_reviews()
            address = f"{client.base_url}/api/games"
            asked = pool.submit(httpx.post, address, json={"text": LINE}, timeout=60)
            begun.wait(60)
        assert not ended.is_set()
        assert (asked.result().status_code, asked.result().json()["error"]) == (
            503,
            "the server is being stopped",
        )
    assert not [record for record in caplog.records if record.exc_info]


# ---------------------------------------------------------------------------------------------------- what is kept


def test_a_server_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, GREEDY, rules=VARIANTS[2] | {"players": 2, "dead_pieces": 2})
        waiting, invited = make(client, HERE, INVITED, position=LINE, help=True)
        play(at, 7)
        before = [lasting(at.view), lasting(waiting.view)]
    with running(tmp_path / "tables") as client:
        at, waiting = At(client, at.table, at.key), At(client, waiting.table, waiting.key)
        assert [lasting(at.view), lasting(waiting.view)] == before
        assert play(at)["status"] == "over"
        body = {"name": "Bob", "invitation": invited["invitations"][0]["invitation"]}
        assert client.post(f"{waiting.url}/join", json=body).json()["view"]["position"] == LINE


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tables SET settings = '{' WHERE id = ?",
        "UPDATE tables SET settings = '[]' WHERE id = ?",
        "UPDATE tables SET settings = CAST(X'7bff' AS TEXT) WHERE id = ?",
        "UPDATE steps SET note = CAST(X'ff' AS TEXT) WHERE id = ? AND ply = 1",
        """UPDATE tables SET settings = '{"rules": {"players": 9}, "position": null}' WHERE id = ?""",
        "UPDATE tables SET settings = replace(settings, '\"kind\"', '\"sort\"') WHERE id = ?",
        "UPDATE games SET state = X'00' WHERE id = ?",
        "UPDATE games SET roll_off = '' WHERE id = ?",
        "UPDATE steps SET state = X'00' WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = CAST(state || state AS BLOB) WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = replace(hex(state), '0', '7') WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = randomblob(64) WHERE id = ? AND ply = 1",
        "UPDATE steps SET action = 1000000 WHERE id = ? AND ply = 1",
        "UPDATE steps SET action = 'x' WHERE id = ? AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND ply = 1",
    ],
)
def test_a_damaged_table_is_left_out(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path / "tables") as client:
        damaged, _ = make(client, HERE, HERE, rules=VARIANTS[0])
        play(damaged, 3)
        whole, _ = make(client, HERE, HERE, rules=VARIANTS[0])
        play(whole, 3)
        before = lasting(whole.view)

    def all_rows(file: sqlite3.Connection) -> list[str]:
        file.text_factory = lambda text: text.decode(errors="replace")
        return list(file.iterdump())

    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file, file:
        assert file.execute(damage, (damaged.table,)).rowcount == 1
        rows = all_rows(file)
    with running(tmp_path / "tables") as client:
        whole = At(client, whole.table, whole.key)
        assert lasting(whole.view) == before
        assert client.get(f"/api/tables/{damaged.table}").status_code == 404
    (told,) = (record.getMessage() for record in caplog.records if record.levelname == "ERROR")
    assert f"table {damaged.table} " in told
    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file:
        assert all_rows(file) == rows  # what may still be saved by hand


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE games SET state = X'00' WHERE id = ? AND game = 1",
        "UPDATE games SET roll_off = '' WHERE id = ? AND game = 1",
        "UPDATE steps SET note = CAST(X'ff' AS TEXT) WHERE id = ? AND game = 1 AND ply = 1",
        "UPDATE steps SET state = 3 WHERE id = ? AND game = 1 AND ply = 1",
        "UPDATE steps SET state = (SELECT state FROM games) WHERE id = ? AND game = 1 AND ply = 3",
        "UPDATE steps SET action = 'x' WHERE id = ? AND game = 1 AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND game = 1 AND ply = 1",
    ],
)
def test_an_earlier_game_that_is_damaged_is_said_to_be(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, HERE, rules={"spaces": 0})
        play(at)
        at.post("/next", game=1)
        play(at)
    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file, file:
        assert file.execute(damage, (at.table,)).rowcount == 1
    with running(tmp_path / "tables") as client:
        at = At(client, at.table, at.key)
        for path in ("/text", "/review"):
            answer = at.get(path, game=1)
            assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (
                410,
                "game 1 of this table is damaged on disk",
                "game",
            )
            assert at.get(path, game=2).status_code == 200
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [message.partition(":")[0] for message in told] == [f"game 1 of table {at.table} is damaged"] * 2


def test_one_server_has_a_file_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "tables")
    store.put_table("a", {})
    with pytest.raises(ValueError, match="another server has it open"):
        Store(tmp_path / "tables")
    store.close()
    (tmp_path / "other").write_text("no file of tables at all")
    with pytest.raises(ValueError, match="other must be a file of tables"):
        Store(tmp_path / "other")


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path, journal: str) -> None:
    file = tmp_path / "other"
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("CREATE TABLE tables (id)")
    before = file.read_bytes()
    with pytest.raises(
        ValueError, match=r"other must be a file of tables .* it is a database of something else"
    ):
        Store(file)
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (before, [file])


def test_a_file_without_the_mark_of_the_application_is_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with contextlib.closing(Store(file)) as store:
        store.put_table("a", {})
    with contextlib.closing(sqlite3.connect(file)) as database:
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        assert mark.to_bytes(4, "big") == b"wots"
        database.execute("PRAGMA application_id = 0")
    with contextlib.closing(Store(file)) as store:
        assert [*store.tables()] == ["a"]
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(ValueError, match="its format is 2, not 1"):
        Store(file)


def test_what_cannot_be_written_has_not_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, HERE)
        before = at.view
        with monkeypatch.context() as patch:
            patch.setattr(Store, "put_step", full)
            assert at.post("/act", ply=0, action=31).status_code == 503
        assert at.view == before
        assert at.post("/act", ply=0, action=31).status_code == 200


def test_a_game_that_cannot_be_begun_is_begun_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("wotd_env.web.tables._AGAIN", 0.1)
    with running(tmp_path / "tables") as client:
        host, _ = make(client, HERE, OPEN)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "put_game", full)
            joined = client.post(f"{host.url}/join", json={"name": "Bob"})
            assert joined.status_code == 200  # the seat is his, and so is its key
            assert (joined.json()["view"]["status"], joined.json()["view"]["waiting_for"]) == ("waiting", [])
        guest = At(client, host.table, joined.json()["key"])
        assert guest.until(lambda view: view["status"] == "playing")["mine"] == [1]


def test_the_file_is_for_its_owner_and_holds_neither_keys_nor_dice_to_come(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file) as client:
        at, content = make(client, HERE, INVITED, position=LINE)
        keys = [at.key, content["watch"], content["invitations"][0]["invitation"]]
        body = {"name": "Bob", "invitation": keys[-1]}
        keys.append(client.post(f"{at.url}/join", json=body).json()["key"])
        assert at.post("/act", ply=0, action=0).status_code == 200
    assert file.stat().st_mode & 0o077 == 0
    assert not any(key.encode() in file.read_bytes() for key in keys)
    with contextlib.closing(sqlite3.connect(file)) as database:
        states = b"".join(
            row[0] for row in database.execute("SELECT state FROM games UNION ALL SELECT state FROM steps")
        )
    assert not np.frombuffer(states, STATE)["rng"].any()


# ---------------------------------------------------------------------------------------------------- who may what


def test_only_keys_of_a_table_open_it(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE)
    other, _ = make(client, HERE, HERE)
    assert client.get(at.url).status_code == 401
    for key in (other.key, "x", at.key[:-1], at.key + "x", "é"):
        stranger = At(client, at.table, key)
        stranger.headers = {"Authorization": f"Bearer {key}".encode()}  # type: ignore[dict-item]
        for answer in (stranger.get(), stranger.get("/text"), stranger.get("/review"), stranger.get("/help")):
            assert answer.status_code == 403
        for path in ("/act", "/next", "/seat"):
            assert stranger.post(path).status_code == 403
        with stranger.socket(json.dumps({"type": "hello", "key": key})) as socket:
            assert json.loads(socket.recv(timeout=60))["status"] == 403
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=60)
    assert client.get("/api/tables/none", headers=at.headers).status_code == 404
    assert closed(At(client, "none", at.key)) == (4404, "there is no such table, or it is gone")
    assert at.view["ply"] == 0


def test_who_tries_keys_has_to_wait(tmp_path: Path) -> None:
    with running(tmp_path / "tables", fewer(wrong_keys=1e-6)) as client:
        at, _ = make(client, HERE, INVITED)
        wrong = At(client, at.table, "x")
        assert [wrong.get().status_code for _ in range(4)] == [403] * 4
        assert client.post(f"{at.url}/join", json={"invitation": "x"}).status_code == 403
        answer = wrong.get()
        assert (answer.status_code, answer.json()["error"].split(";")[0]) == (429, "too many wrong keys")
        assert int(answer.headers["retry-after"]) > 0


def test_dice_follow_from_nothing_that_was_sent(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []

    def draw() -> int:
        drawn.append(secrets.randbits(64))
        return drawn[-1]

    monkeypatch.setattr(Tables, "random", staticmethod(draw))
    at, content = make(client, HERE, GREEDY, rules={"spaces": 1, "powers": "own"})
    sent = json.dumps(content)
    view = at.on(content["view"])
    while view["status"] != "over":
        sent += json.dumps(view)
        view = at.act(view)
    sent += at.get().text + at.get("/review").text + at.get("/text").text
    assert len(drawn) >= view["ply"] + 2  # for each decision, and for the beginning
    assert len(set(drawn)) == len(drawn)
    for bits in drawn:
        assert str(bits) not in sent
        assert f"{bits:x}" not in sent
    assert at.key not in sent[len(json.dumps(content)) :]


def test_pages_of_other_sites_and_other_names_are_refused(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE)
    for headers, field in [
        ({"Host": "rebound.example"}, "host"),
        ({"Host": ""}, "host"),
        ({"Host": "127.0.0.1.example:80"}, "host"),
        ({"Origin": "http://example.com"}, "origin"),
        ({"Origin": "null"}, "origin"),
        ({"Origin": "http://localhost:1"}, "origin"),
    ]:
        answer = client.post(f"{at.url}/act", headers=at.headers | headers, json={"ply": 0, "action": 31})
        assert (answer.status_code, answer.json()["field"]) == (403, field)
    with pytest.raises(InvalidStatus) as refused, at.socket(origin="http://example.com"):
        pass
    assert refused.value.response.status_code == 403
    here = str(client.base_url)
    assert client.get(at.url, headers=at.headers | {"Origin": here}).status_code == 200
    with at.socket(origin=here) as socket:
        assert json.loads(socket.recv(timeout=60))["type"] == "view"


def test_names_of_the_server_are_the_same_in_small_and_capital_letters(tmp_path: Path) -> None:
    async def answers(*hosts: str) -> list[int]:
        with contextlib.closing(Store(tmp_path / "tables")) as store:
            made: Any = make_app(store, names=["Play.Example.org"])
            async with httpx.AsyncClient(transport=httpx.ASGITransport(made)) as client:
                return [(await client.get(f"http://{host}/api/setup")).status_code for host in hosts]

    asked = answers("play.example.org", "PLAY.example.org:8000", "example.org")
    assert asyncio.run(asked) == [200, 200, 403]


def test_every_answer_has_the_headers_that_protect_a_page(client: httpx.Client) -> None:
    for path in (
        "/",
        "/static/index.html",
        "/colors.css",
        "/api/setup",
        "/api/tables/none",
        "/rules/en",
        "/drawings.svg",
        "/nothing",
    ):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_nothing_outside_the_page_is_served(client: httpx.Client) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/none",
        "/rules/../app.py",
        "/rules/%2e%2e%2fapp",
        "/rules/fr",
    ):
        assert client.get(path).status_code == 404


def test_rules_are_there_in_four_languages(client: httpx.Client) -> None:
    shapes = set()
    for language in ("en", "es", "de", "hi"):
        answer = client.get(f"/rules/{language}")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        shapes.add(tuple(re.findall(r"</?(\w+)", answer.text)))
    assert len(shapes) == 1
    assert set(next(iter(shapes))) == {"h2", "h3", "p", "strong", "table", "tr", "th", "td"}


def test_drawings_are_sent_once(client: httpx.Client) -> None:
    answer = client.get("/drawings.svg")
    assert "piece-0" in answer.text
    again = client.get("/drawings.svg", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


# ---------------------------------------------------------------------------------------------------- what comes in

SEATS = [HERE, GREEDY]
WRONG_TABLES: list[tuple[Any, str | None]] = [
    ([], None),
    ("x", None),
    ({}, "seats"),
    ({"seats": SEATS, "more": 1}, "more"),
    ({"seats": [HERE]}, "seats"),
    ({"seats": {"0": HERE}}, "seats"),
    ({"seats": SEATS, "rules": []}, "rules"),
    ({"seats": SEATS, "rules": {"players": "2"}}, "players"),
    ({"seats": SEATS, "rules": {"players": 2.0}}, "players"),
    ({"seats": SEATS, "rules": {"players": {}}}, "players"),
    ({"seats": SEATS, "rules": {"spaces": 11}}, "spaces"),
    ({"seats": SEATS, "rules": {"powers": ["own"]}}, "powers"),
    ({"seats": SEATS, "rules": {"colors": ["water", "water"]}}, "colors"),
    ({"seats": SEATS, "rules": {"colors": [[], {}]}}, "colors"),
    ({"seats": SEATS, "rules": {"start": {}}}, "start"),
    ({"seats": SEATS, "rules": {"max_turns": 1001}}, "max_turns"),
    ({"seats": SEATS, "rules": {"max_turns": 10**40}}, "max_turns"),
    ({"seats": SEATS, "rules": {"unknown": 1}}, "rules"),
    ({"seats": SEATS, "position": "x"}, "position"),
    ({"seats": SEATS, "position": LINE, "rules": {"spaces": 7}}, "rules"),
    ({"seats": SEATS, "position": 1}, "position"),
    ({"seats": SEATS, "position": LINE.replace("keep 2", "over 2")}, "position"),
    ({"seats": SEATS, "help": "yes"}, "help"),
    ({"seats": SEATS, "pace": "1"}, "pace"),
    ({"seats": SEATS, "pace": 1e9}, "pace"),
    ({"seats": SEATS, "pace": True}, "pace"),
    ({"seats": [GREEDY, GREEDY], "pace": 0}, "pace"),
    ({"seats": [HERE, {"kind": "agent", "agent": "oracle:/etc/passwd"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": "agent", "agent": "os:system"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": "agent", "agent": ["greedy"]}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": "agent"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": []}]}, "seats[1]"),
    ({"seats": [HERE, 3]}, "seats[1]"),
    ({"seats": [HERE, HERE | {"agent": "greedy"}]}, "seats[1]"),
    ({"seats": [HERE, HERE | {"name": "x" * 25}]}, "name"),
    ({"seats": [HERE, HERE | {"name": "\ud800"}]}, "name"),
    ({"seats": [HERE, HERE | {"name": "a\u202eb"}]}, "name"),
    ({"seats": [HERE, HERE | {"name": 7}]}, "name"),
    (
        {"seats": [HERE] * 4 + [{"kind": "agent", "agent": "td"}], "rules": {"players": 5, "spaces": 6}},
        "seats[4]",
    ),
]


@pytest.mark.parametrize(("body", "field"), WRONG_TABLES, ids=range(len(WRONG_TABLES)))
def test_a_wrong_table_is_refused_with_the_field_and_the_reason(
    client: httpx.Client, body: Any, field: str | None
) -> None:
    answer = client.post(
        "/api/tables", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert 10 < len(answer.json()["error"]) <= 400


MALFORMED = [
    *(b"", b"{", b"\xff\xfe", b"[" * 2000, b"0" * 2048, b'{"ply": NaN}', b'{"ply": 1e999, "action": 1}'),
    *(b'{"ply": "0", "action": 1}', b'{"ply": 0, "action": true}', b'{"ply": 0, "action": -1}'),
    *(b'{"ply": 0, "action": 1000}', b'{"ply": 0, "action": null}', b'{"ply": 0, "action": "\\ud800"}'),
    *(b'{"ply": 0, "action": 1.5}', b'{"ply": false, "action": 31}'),
]


@pytest.mark.parametrize(
    "content",
    MALFORMED,
    ids=range(len(MALFORMED)),
)
def test_a_malformed_decision_changes_nothing(client: httpx.Client, content: bytes) -> None:
    at, _ = make(client, HERE, HERE)
    before = at.view
    answer = client.post(
        f"{at.url}/act", content=content, headers=at.headers | {"Content-Type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    with at.socket() as socket:
        socket.recv(timeout=60)
        socket.send(content)
        told: dict[str, Any] = {"type": "view"}
        while told["type"] != "error":
            told = json.loads(socket.recv(timeout=60))
        assert told["status"] == 400
    assert lasting(at.view) == lasting(before)


def test_requests_must_be_json_and_short(client: httpx.Client) -> None:
    assert client.post("/api/tables", content=b"{}").status_code == 415
    assert client.post("/api/tables", data={"seats": "x"}).status_code == 415
    assert client.post("/api/tables", json={"seats": "x" * 3000}).status_code == 413
    assert client.put("/api/tables", json={}).status_code == 405
    assert client.get("/api/none").json()["status"] == 404


def test_there_are_limits(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file, fewer(tables=2, sockets_per_address=1, messages=0.001, requests=1e6)) as client:
        at, _ = make(client, HERE, HERE)
        make(client, HERE, HERE)
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 503
        with at.socket() as socket:
            socket.recv(timeout=60)
            assert closed(at) == (1013, "you have 1 sockets open, which is the most")
            with pytest.raises(ConnectionClosed):
                until_closed(socket, "x")
        assert at.view["ply"] == 0
    with running(tmp_path / "other", fewer(sockets=0)) as client:
        assert closed(make(client, HERE, HERE)[0]) == (1013, "0 sockets are open, which is the most")
    with running(tmp_path / "more", fewer(tables_per_address=1, new_tables=1e-6, patience=0.3)) as client:
        at, _ = make(client, HERE, HERE)
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 429
        with at.socket("") as socket:
            assert json.loads(socket.recv(timeout=60))["status"] == 400
        with (
            connect(f"ws://{client.base_url.netloc.decode()}{at.url}/socket") as idle,
            pytest.raises(ConnectionClosed),
        ):
            idle.recv(timeout=60)


def test_tables_that_nobody_comes_back_to_make_room(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file) as client:
        old, _ = make(client, HERE, HERE)
        older, _ = make(client, HERE, HERE)
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE tables SET touched = touched - 100000")
        database.execute("UPDATE tables SET touched = touched - 10000000 WHERE id = ?", (older.table,))
    with running(file, fewer(tables=1)) as client:
        assert client.get(older.url).status_code == 404  # after 30 days
        assert client.get(old.url).status_code == 401
        make(client, HERE, HERE)
        assert client.get(old.url).status_code == 404  # after a day, where there is no room
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 503
    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM tables").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM games").fetchone() == (1,)


def test_a_rate_fills_again() -> None:
    now = [0.0]
    rate = Rate(2, "things", at_once=3, clock=lambda: now[0])
    for _ in range(3):
        rate.count("a")
    with pytest.raises(Refused, match="too many things; try again in 1 s") as refused:
        rate.count("a")
    assert (refused.value.status, refused.value.wait) == (429, 1)
    rate.count("b")
    now[0] = 0.5
    rate.count("a")
    with pytest.raises(Refused):
        rate.check("a")


def test_a_network_is_one_client() -> None:
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff") != client_of("2001:db8:1::1")
    assert client_of("::ffff:10.0.0.1") == client_of("10.0.0.1") != client_of("10.0.0.2")


# ---------------------------------------------------------------------------------------------------- agents


class Stuck:
    """A policy that never answers, until it is let go."""

    go = Event()

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        self.go.wait()
        return np.zeros(len(state), np.int64)


class Wrong:
    """A policy that is always wrong."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        return np.full(len(state), 54)


class Failing:
    """A policy that fails where it is asked about more than one game at a time, or about a move."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        if len(state) > 1 or state["phase"][0] == 2:
            raise RuntimeError("/secret/path")
        return np.full(len(state), 31)


def test_agents_that_hang_or_fail_are_replaced_and_harm_no_other_table(tmp_path: Path) -> None:
    policies: dict[str, Policy] = {"stuck": Stuck(), "wrong": Wrong(), "failing": Failing()}
    with running(tmp_path / "tables", fewer(thinking=0.2), policies) as client:
        agents = {agent["name"] for agent in client.get("/api/setup").json()["agents"]}
        assert agents >= {"stuck", "wrong", "failing", "greedy", "planner"}
        tables = {
            name: make(client, HERE, {"kind": "agent", "agent": name}, rules={"spaces": 0})[0]
            for name in (*policies, "greedy")
        }
        tables["failing too"] = make(client, HERE, {"kind": "agent", "agent": "failing"})[0]
        for name, at in tables.items():
            play(at, 10)
            view = at.view
            notes = {step["note"] for step in view["log"] if step["seat"] == 1} - {None}
            what = "did not answer in time" if name == "stuck" else "failed"
            assert notes <= {f"{name.split()[0]} {what}; greedy chose"}
            assert bool(notes) == (name != "greedy")
            assert "secret" not in json.dumps(view)
    Stuck.go.set()  # it did not keep the server from stopping


# ---------------------------------------------------------------------------------------------------- as a command


Serve = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start the command for a file of tables; whatever still runs in the end is killed."""
    started = []

    def start(file: Path, *options: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "wotd_env.cli",
            "serve",
            "--port",
            "0",
            "--file",
            str(file),
            *options,
        ]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def client_for(process: subprocess.Popen[str]) -> httpx.Client:
    assert process.stdout is not None
    found = re.search(r"http://\S+/", process.stdout.readline())
    assert found
    client = httpx.Client(base_url=found[0], timeout=60)
    wait_until_ready(client)
    return client


def send_nonsense(at: At) -> None:
    """Send what is neither HTTP nor WebSocket, and text that is none."""
    address = at.client.base_url.host, at.client.base_url.port or 80
    upgrade = (
        f"GET {at.url}/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    )
    not_utf8 = b"\x81\x84\0\0\0\0\xff\xfe\xfd\xfc"
    for content in (
        b"\0nonsense\r\n\r\n",
        upgrade.encode() + b"\r\n" + not_utf8,
        upgrade.encode() + b"Origin: http://example.com\r\n\r\n",
        upgrade.replace("websocket", "h2c").encode() + b"\r\n",
    ):
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass


def test_the_command_serves_and_stops(serve: Serve, tmp_path: Path) -> None:
    process = serve(tmp_path / "tables", "--policy", "mine=first")
    with contextlib.closing(client_for(process)) as client:
        agents = [agent["name"] for agent in client.get("/api/setup").json()["agents"]]
        assert "mine" in agents
        at, _ = make(client, HERE, {"kind": "agent", "agent": "mine"})
        play(at, 3)
        send_nonsense(at)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")  # nothing of what clients do is in the log
    assert "Stopped" in output


class Unready:
    """A policy that never says what rules it plays."""

    def check_rules(self, rules: Rules) -> None:
        Event().wait()

    def act(self, game: Game, state: States, rng: np.random.Generator) -> Any:
        raise NotImplementedError


def test_the_command_stops_while_it_warms_up(serve: Serve, tmp_path: Path) -> None:
    process = serve(tmp_path / "tables", "--policy", "slow=tests.web.test_web:Unready")
    assert process.stdout is not None
    (address,) = re.findall(r"http://\S+/", process.stdout.readline())
    assert not httpx.get(f"{address}api/setup", timeout=60).json()["ready"]
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "Stopped" in output


def test_the_log_says_nothing_of_what_clients_and_a_second_interrupt_cause() -> None:
    for message, concern in {
        "Invalid HTTP request received.": False,
        "Traceback (most recent call last):\n  ...\nasyncio.exceptions.CancelledError\n": False,
        "Traceback (most recent call last):\n  ...\nValueError: a mistake\n": True,
    }.items():
        assert concerns(logging.makeLogRecord({"msg": message})) == concern


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--policy", "x"], "--policy must be NAME=POLICY"),
        (["--policy", "x=nobody"], "nobody"),
        (["--policy", "x=greedy", "--policy", "x=td"], "gives 'x' to 'greedy' and to 'td'"),
        (["--policy", "x=sb3:model.zip"], "model.zip"),
        (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
        (["--port", "70000"], "port must be from 0 to 65535"),
    ],
)
def test_the_command_says_what_is_wrong(
    serve: Serve, tmp_path: Path, options: list[str], reason: str
) -> None:
    process = serve(tmp_path / "tables", *options)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert reason in errors


@pytest.mark.parametrize(
    "name",
    ["https://play.example.org", "play.example.org:80", "play.example.org/", "*.org", "müller.org", ""],
)
def test_the_command_takes_names_of_hosts_alone(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tables"
    result = CliRunner().invoke(
        app, ["serve", "--name", "play.example.org", "--name", name, "--file", str(file)]
    )
    assert result.exit_code == 2
    assert f"must be the name of a host alone, such as play.example.org, got {name!r}" in result.stderr
    assert not file.exists()


def test_the_command_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(app, ["serve"])
    assert result.exit_code == 2
    assert "pip install 'wotd-env[web]'" in result.output


def run_the_script_of_the_documentation(client: httpx.Client) -> dict[str, Any]:
    page = ROOT / "docs" / "serve.md"
    (script,) = re.findall(r"^```py\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    try:
        exec(script.replace("http://127.0.0.1:8000", str(client.base_url)), names)
    finally:
        names["server"].close()
    return names


def test_the_script_of_the_documentation_plays_and_keeps_to_the_limits(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[float | str] = []
    get, pause, script = httpx.Client.get, time.sleep, threading.get_ident()

    def noted_pause(seconds: float) -> None:
        if threading.get_ident() == script:
            done.append(seconds)
        else:  # the server is at work in this process, too
            pause(seconds)

    def noted(self: httpx.Client, url: str, **how: Any) -> httpx.Response:
        done.append(url)
        return get(self, url, **how)

    monkeypatch.setattr(httpx.Client, "get", noted)
    monkeypatch.setattr("time.sleep", noted_pause)
    names = run_the_script_of_the_documentation(client)
    assert names["view"]["status"] == "over"
    *waiting, text = done
    assert text == f"{names['table']}/text"
    assert waiting[1::2] == [names["table"]] * (len(waiting) // 2)
    assert all(isinstance(pause, float) and pause >= 1 / Limits().requests for pause in waiting[::2])


def test_the_script_of_the_documentation_takes_no_refusal_for_a_view(tmp_path: Path) -> None:
    with (
        running(tmp_path / "tables", fewer(tables_per_address=0)) as client,
        pytest.raises(httpx.HTTPStatusError, match="429"),
    ):
        run_the_script_of_the_documentation(client)


# ---------------------------------------------------------------------------------------------------- hard times


@pytest.mark.slow
def test_nothing_that_was_answered_is_lost_when_the_server_is_killed(serve: Serve, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables: list[At] = []
    answered: dict[str, list[Any]] = {}  # the decisions that the server has said it has taken
    for round_ in range(6):
        process = serve(tmp_path / "tables")
        with contextlib.closing(client_for(process)) as client:
            tables = [At(client, at.table, at.key) for at in tables]
            for at in tables:
                log = at.view["log"]
                assert log[: len(answered[at.table])] == answered[at.table]
                # One more can be there: that which was being answered.
                assert sum(step["seat"] == 0 for step in log[len(answered[at.table]) :]) <= 1
            if round_ < 5:
                at, _ = make(client, HERE, GREEDY, rules=VARIANTS[round_ % 2], help=False)
                tables.append(at)
                answered[at.table] = []

            def play_on(at: At, process: subprocess.Popen[str] = process) -> None:
                try:
                    view = at.view
                    while view["status"] == "playing":
                        answered[at.table] = answered[at.table][: view["log_from"]] + view["log"]
                        if view["choices"]:
                            choice = view["choices"][view["ply"] % len(view["choices"])]
                            view = at.post("/act", ply=view["ply"], action=choice["action"]).json()
                        else:
                            view = at.get(log_from=view["ply"]).json()
                except httpx.HTTPError:
                    assert process.wait(60) == -signal.SIGKILL

            with ThreadPoolExecutor() as pool:
                players = [pool.submit(play_on, at) for at in tables]
                for _ in range(int(rng.integers(1, 40))):
                    client.get("/api/tables")
                process.kill()
                for player in players:
                    player.result()
            process.communicate()
    assert any(answered.values())


def malformed(rng: np.random.Generator, key: str) -> bytes:
    """Return a message that is wrong in some way."""
    valid = json.dumps({"type": "act", "ply": 0, "action": 31}).encode()
    kind = rng.integers(6)
    if kind == 0:
        return rng.bytes(int(rng.integers(0, 200)))
    if kind == 1:
        return valid[: int(rng.integers(len(valid)))]
    if kind == 2:
        changed = bytearray(valid)
        changed[rng.integers(len(changed))] = rng.integers(256)
        return bytes(changed).replace(b": 31", b": 131").replace(b": 0", b": 9")
    values: list[Any] = [
        None,
        True,
        -1,
        10**30,
        1.5,
        "",
        "x" * 50,
        [],
        {},
        [[[]]],
        "\ud800",
        "wwwww",
        99,
        key,
    ]
    names = ["type", "ply", "action", "game", "key", "", "seat", "__class__"]
    body = {
        names[rng.integers(len(names))]: values[rng.integers(len(values))] for _ in range(rng.integers(5))
    }
    return json.dumps(body | {"type": ["act", "next", "hello", 1][rng.integers(4)], "ply": 10**6}).encode()


@pytest.mark.slow
def test_malformed_messages_harm_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path / "tables", fewer(sockets_per_address=100)) as client:
        target, _ = make(client, HERE, HERE)
        honest, made = make(client, HERE, GREEDY, rules={"spaces": 10})
        before = target.view

        def attack(seed: int) -> None:
            rng = np.random.default_rng(seed)
            sent = 0
            while sent < 10_000:
                with contextlib.suppress(ConnectionClosed), target.socket() as socket:
                    for _ in range(500):
                        message = malformed(rng, target.key)
                        sent += 1
                        if rng.integers(2):
                            socket.send(message.decode("utf-8", "replace"))
                        else:
                            socket.send(message, text=bool(rng.integers(50) == 0))
                        told = {"type": "view"}
                        while told["type"] in ("view", "help"):
                            told = json.loads(socket.recv(timeout=60))
                        assert told["type"] == "error"
                for _ in range(100):
                    message = malformed(rng, target.key)
                    sent += 1
                    path = ("/act", "/next", "/join", "/seat")[rng.integers(4)]
                    headers = target.headers | {"Content-Type": "application/json"}
                    answer = client.post(target.url + path, content=message, headers=headers)
                    assert 400 <= answer.status_code < 500, answer.text

        with ThreadPoolExecutor() as pool:
            attacks = [pool.submit(attack, seed) for seed in range(10)]
            view = made["view"]
            while not all(each.done() for each in attacks):
                view = honest.act(view) if view["choices"] else honest.on(honest.view)
                if view["status"] == "over":
                    view = honest.on(honest.post("/next", game=view["game"]).json())
            for each in attacks:
                each.result()
        after = target.view
        assert lasting(after) == lasting(before)
    assert not [record for record in caplog.records if "Exception" in record.getMessage()]
