"""Keys, dice, hosts, headers, and hostile messages."""

import asyncio
import contextlib
import json
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.helpers.server import GREEDY, HERE, INVITED, At, closed, fewer, lasting, make, running, told
from wotd_env.web.app import make_app
from wotd_env.web.store import Store
from wotd_env.web.tables import Tables


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
            assert told(socket)["status"] == 403
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=60)
    assert client.get("/api/tables/none", headers=at.headers).status_code == 404
    assert closed(At(client, "none", at.key)) == (4404, "no_table")
    assert at.view["ply"] == 0


def test_wrong_keys_are_rate_limited_and_right_keys_are_not(tmp_path: Path) -> None:
    with running(tmp_path / "tables", fewer(wrong_keys=1e-6)) as client:
        at, content = make(client, HERE, INVITED)
        wrong = At(client, at.table, "x")
        assert [wrong.get().status_code for _ in range(4)] == [403] * 4
        assert client.post(f"{at.url}/join", json={"invitation": "x"}).status_code == 403
        answer = wrong.get()
        assert (answer.status_code, answer.json()["error"].split(";")[0]) == (429, "too many wrong keys")
        assert int(answer.headers["retry-after"]) > 0
        assert at.get().status_code == 200  # a valid key from the same address
        body = {"name": "Bob", "invitation": content["invitations"][0]["invitation"]}
        assert client.post(f"{at.url}/join", json=body).status_code == 200


def test_no_message_contains_random_bits(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert len(drawn) >= view["ply"] + 2  # one for each decision, and more for the start
    assert len(set(drawn)) == len(drawn)
    for bits in drawn:
        assert str(bits) not in sent
        assert f"{bits:x}" not in sent
    assert at.key not in sent[len(json.dumps(content)) :]


def test_foreign_hosts_and_origins_are_refused(client: httpx.Client) -> None:
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
        told(socket, "view")


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("play.example.org", None, 200),
        ("PLAY.example.org:8000", None, 200),
        ("example.org", None, 403),
        ("play.example.org", "https://play.example.org", 200),
        ("play.example.org:443", "https://play.example.org", 200),
        ("play.example.org:80", "http://play.example.org", 200),
        ("play.example.org", "https://play.example.org:8443", 200),  # the proxy omits the port
        ("play.example.org:8000", "https://play.example.org", 200),  # the proxy names the port of the server
        ("play.example.org", "https://example.org", 403),
        ("play.example.org", "https://play.example.org.example", 403),
        ("play.example.org", "null", 403),
        ("play.example.org", "https://play.example.org:x", 403),
        ("localhost:80", "http://localhost", 200),
        ("localhost:443", "https://localhost", 200),
        ("localhost:8000", "http://localhost:8001", 403),
        ("127.0.0.1:8000", "http://localhost:8000", 403),
        ("[::1]:8000", "http://[::1]:8000", 200),
    ],
)
def test_case_of_a_host_and_port_of_a_proxy_do_not_matter(
    tmp_path: Path, host: str, origin: str | None, status: int
) -> None:
    async def ask() -> int:
        with contextlib.closing(Store(tmp_path / "tables")) as store:
            made: Any = make_app(store, names=["Play.Example.org"])
            async with httpx.AsyncClient(transport=httpx.ASGITransport(made)) as client:
                headers = {"Host": host} | ({"Origin": origin} if origin else {})
                return (await client.get("http://localhost/api/setup", headers=headers)).status_code

    assert asyncio.run(ask()) == status


def test_every_response_has_protective_headers(client: httpx.Client) -> None:
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
        "/rules/pictures/none.svg",
    ):
        assert client.get(path).status_code == 404


def test_rules_pages_have_the_same_structure_in_all_languages(client: httpx.Client) -> None:
    shapes = set()
    for language in ("en", "es", "de", "hi"):
        answer = client.get(f"/rules/{language}")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        shapes.add(tuple(re.findall(r"</?(\w+)", answer.text)))
        for picture in re.findall(r'src="([^"]+)"', answer.text):
            assert client.get(f"/{picture}").headers["content-type"] == "image/svg+xml"
    assert len(shapes) == 1
    assert set(next(iter(shapes))) == {"h2", "h3", "p", "strong", "table", "tr", "th", "td", "img"}


def test_drawings_are_served(client: httpx.Client) -> None:
    assert "piece-0" in client.get("/drawings.svg").text


def malformed(rng: np.random.Generator, key: str) -> bytes:
    """Return a random malformed message."""
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
    texts = ["", "x" * 50, "\ud800", "wwwww", key]
    values: list[Any] = [None, True, -1, 10**30, 1.5, 99, [], {}, [[[]]], *texts]
    names = ["type", "ply", "action", "game", "key", "", "seat", "__class__"]
    body = {
        names[rng.integers(len(names))]: values[rng.integers(len(values))] for _ in range(rng.integers(5))
    }
    return json.dumps(body | {"type": ["act", "next", "hello", 1][rng.integers(4)], "ply": 10**6}).encode()


@pytest.mark.slow
def test_malformed_messages_change_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
                        told(socket)
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
