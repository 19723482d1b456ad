"""A test server for tables, in a thread on a free local port."""

import contextlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from wotd_env.policy import Policy
from wotd_env.web.app import make_app
from wotd_env.web.connections import config_of
from wotd_env.web.limits import Limits
from wotd_env.web.store import Store

PATIENT = Limits(requests=1e6, new_tables=1e6, games=1e6, wrong_keys=1e6, messages=1e6)
"""Limits that no test reaches by sending requests fast."""


@contextlib.contextmanager
def running(
    file: Path,
    limits: Limits = PATIENT,
    policies: dict[str, Policy] | None = None,
    port: int = 0,
    address: str | None = None,
) -> Iterator[httpx.Client]:
    """Run a server for the tables of a file; yield a client when the server is ready."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restarted server may use its old port
    listening.bind(("127.0.0.1", port))
    listening.listen()
    store = Store(file)
    config = config_of(
        make_app(store, policies, limits, address=address), limits, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=60) as client:
            wait_until_ready(client)
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        store.close()


def wait_until_ready(client: httpx.Client) -> None:
    """Wait until the server is ready; its first start on a machine compiles for half a minute."""
    never = threading.Event()
    for _ in range(6000):
        if client.get("/api/setup").raise_for_status().json()["ready"]:
            return
        never.wait(0.1)
    raise TimeoutError("the server did not become ready within ten minutes")


def dice_of(test: str) -> Callable[[], int]:
    """Return a replacement for `Tables.random` that is seeded with the name of the test."""
    rng = np.random.default_rng(zlib.crc32(test.encode()))
    return lambda: int(rng.integers(1 << 64, dtype=np.uint64))


def fewer(**limits: Any) -> Limits:
    """Return patient limits with some replaced."""
    return replace(PATIENT, **limits)


HERE, GREEDY = {"kind": "here", "name": "Ann"}, {"kind": "agent", "agent": "greedy"}
OPEN, INVITED = {"kind": "open"}, {"kind": "invited"}

VARIANTS: list[dict[str, Any]] = [
    {"players": 2, "spaces": 3},
    {"players": 2, "spaces": 2, "powers": "any", "immunity": True, "start": "loser"},
    {"players": 3, "spaces": 3, "powers": "own", "dead_pieces": 4, "colors": "random"},
    {"players": 5, "spaces": 1, "powers": "any"},
]

BOARD = "..A....|B..../#B.....|A..../.......|...../.......|...../.......|....."
LINE = f"{BOARD} wf(meo) 12 A keep 2 wwfmd used=B powers=own"


class At:
    """A table accessed with a key."""

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
        """Wait for a view on the socket that satisfies the condition; return it as the API returns it."""
        with self.socket() as socket:
            while True:
                view = json.loads(socket.recv(timeout=60))
                if view["type"] == "view" and true(view):
                    return self.view

    @property
    def address(self) -> str:
        return f"ws://{self.client.base_url.netloc.decode()}{self.url}/socket"

    @contextlib.contextmanager
    def socket(self, hello: str | None = None, **how: Any) -> Iterator[ClientConnection]:
        with connect(self.address, compression=None, **how) as socket:
            socket.send(json.dumps({"type": "hello", "key": self.key}) if hello is None else hello)
            yield socket

    def act(self, view: Any, choice: int = 0) -> Any:
        """Take a choice of a view; return the next view with a choice, or the view of the finished game."""
        answer = self.post("/act", ply=view["ply"], action=view["choices"][choice]["action"])
        assert answer.status_code == 200, answer.text
        return self.on(answer.json())

    def on(self, view: Any) -> Any:
        if view["choices"] or view["status"] == "over":
            return view
        return self.until(lambda view: bool(view["choices"]) or view["status"] == "over")


def make(client: httpx.Client, *seats: Any, **table: Any) -> tuple[At, Any]:
    """Set up a table; return it and the response."""
    answer = client.post("/api/tables", json={"seats": seats, "pace": 0, **table})
    assert answer.status_code == 201, answer.text
    content = answer.json()
    return At(client, content["table"], content["key"]), content


def lasting(view: Any) -> Any:
    """Return a view without connection states, which the server updates some time after a socket closes."""
    seats = [seat | {"connected": None} for seat in view["seats"]]
    return view | {"seats": seats, "spectators": None}


def told(socket: ClientConnection, kind: str = "error") -> Any:
    """Return the next message of a kind; skip the others."""
    while (message := json.loads(socket.recv(timeout=60)))["type"] != kind:
        pass
    return message


def touched(file: Path, at: At, age: float) -> None:
    """Date the last change of a table `age` seconds back. No server may have opened the file."""
    with contextlib.closing(Store(file)) as store, pytest.MonkeyPatch.context() as patch:
        now = time.time()
        patch.setattr(time, "time", lambda: now - age)
        store.put_table(at.table, store.settings(at.table))


def until_closed(socket: ClientConnection, message: str | None = None) -> None:
    """Repeatedly send a message and receive one, until the connection closes."""
    while True:
        if message is not None:
            socket.send(message)
        socket.recv(timeout=60)


def closed(at: At) -> tuple[int, str]:
    """Open a socket that the server refuses; return the code of its closing and of the reason."""
    with connect(at.address) as socket:
        refused = json.loads(socket.recv(timeout=60))
        with pytest.raises(ConnectionClosed) as told:
            until_closed(socket)
    assert refused["type"] == "refused"
    assert told.value.rcvd is not None
    return told.value.rcvd.code, refused["code"]


def play(at: At, limit: int = 10_000) -> Any:
    """Play my seats until the game is over or `limit` decisions are taken; return the last view."""
    view = at.on(at.view)
    for number in range(limit):
        if view["status"] == "over":
            break
        view = at.act(view, number % len(view["choices"]))
    return view
