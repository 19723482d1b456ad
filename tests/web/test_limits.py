"""Checks and limits of requests."""

import contextlib
import json
import re
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.helpers.server import (
    GREEDY,
    HERE,
    INVITED,
    LINE,
    At,
    closed,
    fewer,
    lasting,
    make,
    running,
    told,
    touched,
    until_closed,
)
from wotd_env.web.handlers import ROUTES
from wotd_env.web.limits import Rate, client_of
from wotd_env.web.refused import REASONS, Refused
from wotd_env.web.requests import NewTable, read

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
    ({"seats": SEATS, "clock": 0}, "clock"),
    ({"seats": [HERE, {"kind": "agent", "agent": "oracle:/etc/passwd"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": "agent", "agent": "os:system"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": "agent", "agent": ["greedy"]}]}, "seats[1].agent"),
    ({"seats": [HERE, {"kind": "agent"}]}, "seats[1]"),
    ({"seats": [HERE, {"kind": []}]}, "seats[1].kind"),
    ({"seats": [HERE, 3]}, "seats[1]"),
    ({"seats": [HERE, HERE | {"agent": "greedy"}]}, "seats[1]"),
    ({"seats": [HERE, HERE | {"name": "x" * 25}]}, "seats[1].name"),
    ({"seats": [HERE, HERE | {"name": "\ud800"}]}, None),
    ({"seats": [HERE, HERE | {"name": "a\u202eb"}]}, "seats[1].name"),
    ({"seats": [HERE, HERE | {"name": 7}]}, "seats[1].name"),
    (
        {"seats": [HERE] * 4 + [{"kind": "agent", "agent": "td"}], "rules": {"players": 5, "spaces": 6}},
        "seats[4]",
    ),
]


@pytest.mark.parametrize(("body", "field"), WRONG_TABLES, ids=range(len(WRONG_TABLES)))
def test_wrong_table_is_refused_with_field_and_reason(
    client: httpx.Client, body: Any, field: str | None
) -> None:
    answer = client.post(
        "/api/tables", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert 10 < len(answer.json()["error"]) <= 400
    assert "Rules(" not in answer.json()["error"]  # messages contain no Python objects


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[]", "the request must be an object, got []"),
        ('{"seats": {}}', "seats must be a list, got {}"),
        ('{"seats": [], "rules": 5}', "rules must be an object or null, got 5"),
    ],
)
def test_wrong_types_are_named_in_words(body: str, words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)):
        read(body, NewTable)


def test_a_refusal_has_a_code_with_values_and_a_sentence(client: httpx.Client) -> None:
    at, made = make(client, {**HERE, "name": "{name}"}, INVITED)
    invitation = made["invitations"][0]["invitation"]
    client.post(f"{at.url}/join", json={"invitation": invitation, "name": "Bob"}).raise_for_status()
    other = client.post(f"{at.url}/join", json={"invitation": invitation}).json()
    assert (other["code"], other["values"]) == ("invitation", {})
    at = At(client, at.table, made["watch"])
    refused = at.post("/act", ply=0, action=31)
    name = at.view["seats"][at.view["player"]]["name"]
    assert (refused.status_code, refused.json()["code"]) == (403, "turn")
    assert refused.json()["values"] == {"name": name}
    assert refused.json()["error"] == f"it is {name}'s turn"


@pytest.mark.parametrize("code", REASONS)
def test_reasons_are_filled_with_short_values(code: str) -> None:
    names = re.findall(r"\{(\w+)\}", REASONS[code])
    refused = Refused(400, code, **{name: "x" * 1000 for name in names if name != "wait"}, wait=1)
    assert "{" not in refused.reason
    assert len(refused.reason) <= 400
    assert max(map(len, refused.values.values())) <= 400


def test_an_unprintable_name_is_refused_by_its_code(client: httpx.Client) -> None:
    seats = [HERE, {"kind": "here", "name": "a\tb\u202ec\t"}]
    answer = client.post("/api/tables", json={"seats": seats}).json()
    assert (answer["code"], answer["field"]) == ("name", "seats[1].name")
    assert answer["values"]["name"] == "control character (U+0009), RIGHT-TO-LEFT OVERRIDE (U+202E)"


@pytest.mark.parametrize("name", ["क्\u200dष", "क्\u200cष", "👨\u200d👩\u200d👧", " \u200d "])
def test_names_may_contain_joiners_beside_other_characters(client: httpx.Client, name: str) -> None:
    shown = "Player A" if name == " \u200d " else name
    at, made = make(client, {"kind": "here", "name": name}, GREEDY)
    assert made["view"]["seats"][0]["name"] == shown
    at.post("/resign", game=1, seat=0)
    assert at.get("/review").json()["players"][0] == shown


MALFORMED = [
    *(b"", b"{", b"\xff\xfe", b"[" * 2000, b"0" * 2048, b'{"ply": NaN}', b'{"ply": 1e999, "action": 1}'),
    *(b'{"ply": "0", "action": 1}', b'{"ply": 0, "action": true}', b'{"ply": 0, "action": -1}'),
    *(b'{"ply": 0, "action": 1000}', b'{"ply": 0, "action": null}', b'{"ply": 0, "action": "\\ud800"}'),
    *(b'{"ply": 0, "action": 1.5}', b'{"ply": false, "action": 31}'),
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_decision_changes_nothing(client: httpx.Client, content: bytes) -> None:
    at, _ = make(client, HERE, HERE)
    before = at.view
    answer = client.post(
        f"{at.url}/act", content=content, headers=at.headers | {"Content-Type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    with at.socket() as socket:
        socket.recv(timeout=60)
        socket.send(content)
        assert told(socket)["status"] == 400
    assert lasting(at.view) == lasting(before)


def test_requests_must_be_json_and_short(client: httpx.Client) -> None:
    assert client.post("/api/tables", content=b"{}").status_code == 415
    assert client.post("/api/tables", data={"seats": "x"}).status_code == 415
    assert client.post("/api/tables", json={"seats": "x" * 3000}).status_code == 413
    assert client.put("/api/tables", json={}).status_code == 405
    assert client.get("/api/none").json()["status"] == 404


def test_refusals_name_the_allowed_methods_and_the_scheme_of_the_key(client: httpx.Client) -> None:
    allowed: dict[str, set[str]] = {}
    for route in ROUTES:
        allowed.setdefault(route.path, set()).update(route.methods or ())
    for path, methods in {**allowed, "/": {"GET", "HEAD"}, "/static/main.js": {"GET", "HEAD"}}.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - methods:
            answer = client.request(method, path.replace("{table}", "none"))
            assert (answer.status_code, answer.headers["allow"]) == (405, ", ".join(sorted(methods)))
    at, _ = make(client, HERE, HERE)
    for method, path in (("GET", ""), ("POST", "/act"), ("DELETE", ""), ("GET", "/text")):
        answer = client.request(method, at.url + path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_tables_sockets_and_messages_are_limited(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file, fewer(tables=2, sockets_per_address=1, messages=0.001, requests=1e6)) as client:
        at, _ = make(client, HERE, HERE)
        make(client, HERE, HERE)
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 503
        with at.socket() as socket:
            socket.recv(timeout=60)
            assert closed(at) == (1013, "own_sockets")
            with pytest.raises(ConnectionClosed):
                until_closed(socket, "x")
        assert at.view["ply"] == 0
    with running(tmp_path / "other", fewer(sockets=0)) as client:
        assert closed(make(client, HERE, HERE)[0]) == (1013, "sockets")
    with running(tmp_path / "more", fewer(tables_per_address=1, new_tables=1e-6, patience=0.3)) as client:
        at, _ = make(client, HERE, HERE)
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 429
        with at.socket("") as socket:
            assert told(socket)["status"] == 400
        with (
            connect(f"ws://{client.base_url.netloc.decode()}{at.url}/socket") as idle,
            pytest.raises(ConnectionClosed),
        ):
            idle.recv(timeout=60)


def test_idle_tables_make_room(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file) as client:
        old, _ = make(client, HERE, HERE)
        older, _ = make(client, HERE, HERE)
    touched(file, older, 10_000_000)
    touched(file, old, 100_000)
    with running(file, fewer(tables=1)) as client:
        assert client.get(older.url).status_code == 404  # after 30 days
        assert client.get(old.url).status_code == 401
        make(client, HERE, HERE)
        assert client.get(old.url).status_code == 404  # after a day, if the server is full
        assert client.post("/api/tables", json={"seats": [HERE, HERE]}).status_code == 503
    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM tables").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM games").fetchone() == (1,)


def test_rate_refills(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr("wotd_env.web.limits.time", clock)
    rate = Rate(2, "things", at_once=3)
    for _ in range(3):
        rate.count("a")
    with pytest.raises(Refused, match="too many things; try again in 1 s") as refused:
        rate.count("a")
    assert (refused.value.status, refused.value.wait) == (429, 1)
    rate.count("b")
    clock.monotonic = lambda: 0.5
    rate.count("a")
    with pytest.raises(Refused):
        rate.count("a")


def test_ipv6_network_is_one_client() -> None:
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff") != client_of("2001:db8:1::1")
    assert client_of("::ffff:10.0.0.1") == client_of("10.0.0.1") != client_of("10.0.0.2")
