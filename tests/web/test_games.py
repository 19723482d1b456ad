"""Games at a table: decisions, seats, invitations, and the socket."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")


from tests.helpers.server import (
    GREEDY,
    HERE,
    INVITED,
    LINE,
    OPEN,
    VARIANTS,
    At,
    fewer,
    lasting,
    make,
    play,
    running,
    told,
)
from wotd_env import Game, Rules, notation


@pytest.mark.parametrize("rules", VARIANTS)
def test_whole_game_follows_the_rules(client: httpx.Client, rules: dict[str, Any]) -> None:
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


def test_kept_dice_stay_and_the_log_shows_the_roll(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE)
    view = at.view
    choice = next(choice for choice in view["choices"] if sum(choice["keep"]) == 2)
    now = at.post("/act", ply=0, action=choice["action"]).json()
    held = [face for face, keep in zip(view["dice"], choice["keep"], strict=True) if keep]
    assert not Counter(held) - Counter(now["dice"])
    assert now["log"][0]["roll"] == now["dice"]
    assert now["log"][0]["dice"] == view["dice"]


def test_action_can_be_a_word(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, position=LINE)
    assert at.post("/act", ply=0, action="stop").json()["log"][0]["notation"] == "stop"
    refused = at.post("/act", ply=1, action="stop")
    assert refused.status_code == 400
    assert refused.json()["field"] == "action"
    assert at.post("/act", ply=1, action="w5").json()["moved"] == [{"seat": 0, "path": 0, "from": 3, "to": 5}]


def test_game_can_start_from_a_position(client: httpx.Client) -> None:
    line = LINE + " stream=0123456789abcdef"
    tables = [make(client, HERE, HERE, position=line)[0] for _ in range(8)]
    begun, wanted = (notation.parse_position(each)[1] for each in (tables[0].view["position"], LINE))
    assert begun.tobytes() == wanted.tobytes()
    rolls = {str(at.post("/act", ply=0, action="none").json()["dice"]) for at in tables}
    assert len(rolls) > 1  # the dice do not come from the stream in the line


def test_server_takes_forced_decisions(client: httpx.Client) -> None:
    blocked = "|....A/|....A/|....A/|....A/|..... wf(meo) 3 A keep 2 wwwww"  # all but one piece have arrived
    at, _ = make(client, HERE, HERE, position=blocked)
    at.post("/act", ply=0, action="stop")
    view = at.until(lambda view: view["ply"] == 2)
    assert view["log"][1]["forced"]
    assert view["log"][1]["notation"] == "pass"


def test_loser_starts_the_next_game(client: httpx.Client) -> None:
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


def test_view_shows_the_roll_off(client: httpx.Client) -> None:
    _, content = make(client, HERE, HERE, HERE, rules={"players": 3})
    *_, last = content["view"]["roll_off"]
    most = max((dice.count(5), seat) for seat, dice in enumerate(last) if dice)
    assert content["view"]["player"] == most[1]


def test_invitation_works_once(client: httpx.Client) -> None:
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


def at_once(
    client: httpx.Client, path: str, body: Any, headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """Send a request three times at the same time, as a double click or a retry does."""
    with ThreadPoolExecutor() as pool:
        sent = [pool.submit(client.post, path, json=body, headers=headers) for _ in range(3)]
        return [each.result() for each in sent]


def test_repeated_request_sets_up_one_table(tmp_path: Path) -> None:
    key = "k" * 43
    body = {"seats": [HERE, OPEN, INVITED], "rules": {"players": 3}, "key": key}
    with running(tmp_path / "tables", fewer(tables_per_address=1)) as client:
        answers = at_once(client, "/api/tables", body)
        first = answers[0].json()
        assert [each.status_code for each in answers] == [201] * 3
        assert all(each.json() == first for each in answers)
        assert first["key"] == key
        assert str(answers[0].url.join(answers[0].headers["location"])).endswith(
            f"/api/tables/{first['table']}"
        )
        assert len(client.get("/api/tables").json()["tables"]) == 1
    with running(tmp_path / "tables") as client:  # the answer can be lost because the server stops
        assert lasting(client.post("/api/tables", json=body).json()["view"]) == lasting(first["view"])
        others = [
            client.post("/api/tables", json=body | change).json()
            for change in ({"key": "l" * 32}, {"key": None})
        ]
        assert len({first["table"], *(each["table"] for each in others)}) == 3
        short = client.post("/api/tables", json=body | {"key": "k" * 31})
        assert (short.status_code, short.json()["field"]) == (400, "key")


@pytest.mark.parametrize("invited", [False, True])
def test_repeated_request_takes_one_seat(client: httpx.Client, invited: bool) -> None:
    kind = INVITED if invited else OPEN
    host, content = make(client, HERE, kind, kind, rules={"players": 3})
    body = {"name": "Bob", "key": "b" * 32}
    if invited:
        body["invitation"] = content["invitations"][0]["invitation"]
    answers = at_once(client, f"{host.url}/join", body)
    assert [(each.status_code, each.json()["seat"], each.json()["key"]) for each in answers] == [
        (200, 1, "b" * 32)
    ] * 3
    assert host.view["waiting_for"] == [2]
    assert At(client, host.table, "b" * 32).view["mine"] == [1]


def test_repeated_request_has_one_effect(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, position=LINE, pace=5)
    for path, body in [
        ("/act", {"ply": 0, "action": "none", "game": 1}),
        ("/resign", {"game": 1, "seat": 0}),
        ("/next", {"game": 1}),
        ("/pace", {"pace": 3}),
        ("/seat", {"seat": 1, "agent": "greedy"}),
    ]:
        answers = at_once(client, at.url + path, body, at.headers)
        assert {each.status_code for each in answers} <= {200, 403, 409}
        assert 200 in {each.status_code for each in answers}
    view = at.view
    assert (view["game"], view["ply"], view["pace"], view["mine"]) == (2, 0, 3, [0])


def test_decision_of_an_earlier_game_is_refused(client: httpx.Client) -> None:
    at, _ = make(client, HERE, HERE, position=LINE)
    at.post("/resign", game=1, seat=0)
    at.post("/next", game=1)
    for body in ({"ply": 0, "action": 31}, {"ply": 0}):
        path = "/act" if "action" in body else "/step"
        refused = at.post(path, game=1, **body)
        assert (refused.status_code, refused.json()["field"]) == (409, "game")
    with at.socket() as socket:
        socket.send(json.dumps({"type": "act", "game": 1, "ply": 0, "action": 31}))
        assert told(socket)["field"] == "game"
    assert at.view["ply"] == 0
    assert at.post("/act", game=2, ply=0, action=31).json()["ply"] == 1


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


def test_open_tables_of_an_address_are_limited_in_the_list(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=client.base_url, transport=elsewhere, timeout=60) as stranger:
            theirs = make(stranger, HERE, OPEN)[0].table
        mine = [make(client, HERE, OPEN)[0].table for _ in range(60)]
        listed = [entry["table"] for entry in client.get("/api/tables").json()["tables"]]
        assert listed == [*mine[:-6:-1], theirs]
        for table, status in ((mine[0], 200), (make(client, HERE, HERE)[0].table, 409), ("none", 404)):
            looked = client.post(f"/api/tables/{table}/invitation", json={})
            assert looked.status_code == status
            assert status != 200 or (looked.json()["seat"], looked.json()["table"]["open"]) == (None, [1])


def test_only_its_player_or_the_host_gives_a_seat_to_an_agent(client: httpx.Client) -> None:
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
        assert host.post("/seat", seat=1, agent="greedy").status_code == 403  # Bob is connected
        gone = guest.post("/seat", seat=1, agent="greedy")
        assert (gone.status_code, gone.json()["mine"], gone.json()["host"]) == (200, [], False)
    assert (guest.view["mine"], guest.view["lent"]) == ([], [1])  # the key still shows the table
    assert host.view["seats"][1]["agent"] == "greedy"


def test_socket_sends_every_change(client: httpx.Client) -> None:
    host, content = make(client, HERE, HERE, position=LINE)
    watcher = At(client, host.table, content["watch"])
    assert (watcher.view["mine"], watcher.view["choices"]) == ([], [])
    assert watcher.post("/act", ply=0, action=31).status_code == 403
    with host.socket() as mine, watcher.socket() as theirs:
        seen, first = told(theirs, "view"), told(mine, "view")
        assert (first["ply"], first["log"]) == (0, [])
        mine.send(json.dumps({"type": "act", "ply": 0, "action": 31}))
        while not seen["log"]:
            seen = told(theirs, "view")
        assert (seen["ply"], seen["log_from"], seen["log"][0]["action"]) == (1, 0, 31)
        for wrong, status in [
            ({"type": "act", "ply": 0, "action": 31}, 409),
            ({"type": "act", "ply": 1, "action": 0}, 400),
            ({"type": "act", "ply": 1}, 400),
            ({"type": "next", "game": 1}, 409),
            ({"type": "hello", "key": host.key}, 400),
        ]:
            mine.send(json.dumps(wrong))
            assert told(mine)["status"] == status
    assert host.view["ply"] == 1


def test_reach_names_the_spaces_that_dice_of_one_element_lead_to(client: httpx.Client) -> None:
    board = "A.B....|...../.......|B..../.......|A..../.......|...../.......|....."
    body = {"position": f"{board} wf(meo) 9 A keep 2 wwfmd"}
    reach = client.post("/api/choices", json=body).json()["reach"]
    assert reach[0] == [2, None, 4, 5, 6]  # the opponent blocks space 3
    assert reach[1] == [1, 2, 3, 4, 5]  # enters the board
    assert reach[2] == [None] * 5  # a piece on a number stays
    moving = client.post("/api/choices", json={"position": body["position"].replace("keep 2", "move 0")})
    assert moving.json()["reach"] is None
