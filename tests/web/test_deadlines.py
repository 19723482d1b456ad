"""Deadlines and unexpected errors: slow connections, stuck workers, and the log."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from websockets.exceptions import ConnectionClosed

from tests.helpers.server import GREEDY, HERE, fewer, make, running, told, until_closed
from wotd_env import Game
from wotd_env.core.state import States
from wotd_env.web.refused import Refused
from wotd_env.web.review import Reviews, advise
from wotd_env.web.table import GameTable
from wotd_env.web.tables import Tables


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: loc",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: loc",
        b"GET /api/setup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    ],
    ids=["nothing", "head", "second head", "body"],
)
def test_half_sent_request_is_dropped(tmp_path: Path, start: bytes) -> None:
    with running(tmp_path / "tables", fewer(patience=0.2)) as client:
        until_dropped(client, start)


def test_deadline_of_the_head_ends_with_the_request(tmp_path: Path) -> None:
    with running(tmp_path / "tables", fewer(patience=0.2)) as client:
        at, _ = make(client, HERE, HERE)
        with at.socket() as opened:
            # the longest deadline has passed
            until_dropped(client, b"GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
            opened.send(json.dumps({"type": "act", "ply": 0, "action": 31}))
            while told(opened, "view")["ply"] != 1:
                pass


def until_dropped(client: httpx.Client, start: bytes) -> None:
    """Send the start of a request, then single bytes, until the server drops the connection."""
    address = client.base_url.host, client.base_url.port or 80
    with socket.create_connection(address, timeout=0.05) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(start)
        for _ in range(400):  # 20 seconds
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                connection.sendall(b"x" if start else b"")  # does not extend the deadline
        pytest.fail("the connection is open")


def test_hung_reviews_free_their_slots(caplog: pytest.LogCaptureFixture) -> None:
    never = Event()

    def hang() -> dict[str, Any]:
        never.wait()
        return {}

    async def review_beside_hung_ones() -> bytes:
        reviews = Reviews(20, patience=0.01)
        for _ in range(4):  # more than run at once
            with pytest.raises(Refused, match="takes too long"):
                await reviews(hang)
        reviews.patience = 60
        return await reviews(lambda: {"seats": 2})

    try:
        assert asyncio.run(review_beside_hung_ones()) == b'{"seats":2}'
    finally:
        never.set()
    assert messages_of(caplog, "a review has not finished in 0.01 s")


def messages_of(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [message for record in caplog.records if words in (message := record.getMessage())]


def broken(*_: Any, **__: Any) -> Any:
    raise KeyError("broken")


@pytest.mark.parametrize("method", [(GameTable, "view"), (Tables, "act")])
def test_unexpected_error_on_a_socket_is_logged(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    method: tuple[type, str],
) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, HERE)
        monkeypatch.setattr(*method, broken)
        with pytest.raises(ConnectionClosed, match="1011"), at.socket() as opened:
            until_closed(opened, '{"type": "act", "ply": 0, "action": 31}')
    assert len(messages_of(caplog, "a socket is closed by an unexpected error")) == 1


def test_unexpected_error_of_help_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wotd_env.web.review.advise", broken)
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, GREEDY)
        assert at.get("/help").status_code == 503
    assert messages_of(caplog, "the advisor failed")


def test_advisor_works_again_after_a_call_that_never_returns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    never, calls = Event(), []

    def stuck_once(game: Game, states: States) -> Sequence[Any]:
        calls.append(game)
        if len(calls) == 1:
            never.wait()
        return advise(game, states)

    with running(tmp_path / "first") as client:  # compiles the advisor
        make(client, HERE, HERE, help=True)[0].get("/help").raise_for_status()
    monkeypatch.setattr("wotd_env.web.review.advise", stuck_once)
    with running(tmp_path / "tables", fewer(thinking=1)) as client:
        at, _ = make(client, HERE, HERE, help=True)
        late = at.get("/help")
        assert (late.status_code, late.headers["Retry-After"]) == (503, "5")
        assert 200 in (at.get("/help").status_code for _ in range(600))  # the first call is still stuck
    never.set()
    told, *_ = messages_of(caplog, "a new worker replaces the stuck one")
    assert told.startswith("the advisor has not answered in 1 s")
