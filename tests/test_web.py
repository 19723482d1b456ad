"""The server of tables: what it lets people do, what it tells them, and what it does not."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from websockets.sync.client import ClientConnection, connect

from tests.server import running
from wotd_env import Game, Rules, notation

HERE, GREEDY = {"kind": "here", "name": "Ann"}, {"kind": "agent", "agent": "greedy"}
OPEN, INVITED = {"kind": "open"}, {"kind": "invited"}

VARIANTS: list[dict[str, Any]] = [
    {"players": 2, "spaces": 3},
    {"players": 2, "spaces": 2, "powers": "any", "immunity": True, "start": "loser"},
    {"players": 3, "spaces": 3, "powers": "own", "dead_pieces": 4, "colors": "random"},
    {"players": 5, "spaces": 1, "powers": "any"},
]


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
