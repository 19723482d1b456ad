"""`wotd serve` as a command, and the script of its documentation."""

import contextlib
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from typer.testing import CliRunner

from tests.helpers import ROOT
from tests.helpers.server import GREEDY, HERE, VARIANTS, At, fewer, make, play, running, wait_until_ready
from wotd_env.cli import app
from wotd_env.web.connections import concerns
from wotd_env.web.limits import Limits

Serve = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start the command with a database file. Processes that still run at the end are killed."""
    started = []

    def start(file: Path, *options: str) -> subprocess.Popen[str]:
        serve = [sys.executable, "-m", "wotd_env.cli", "serve"]
        command = [*serve, "--port", "0", "--file", str(file), *options]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=file.parent))
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
    """Send malformed HTTP requests, WebSocket upgrades and text."""
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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_command_serves_and_stops(serve: Serve, tmp_path: Path, stop: signal.Signals) -> None:
    process = serve(tmp_path / "tables", "--policy", "mine=first")
    with contextlib.closing(client_for(process)) as client:
        agents = [agent["name"] for agent in client.get("/api/setup").json()["agents"]]
        assert "mine" in agents
        at, _ = make(client, HERE, {"kind": "agent", "agent": "mine"})
        play(at, 3)
        send_nonsense(at)
        process.send_signal(stop)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")  # messages caused by clients are not logged
    assert "Stopped" in output
    assert [*tmp_path.iterdir()] == [tmp_path / "tables"]  # the log of SQLite is merged into the file


@pytest.mark.parametrize(("host", "printed"), [("0.0.0.0", True), ("::", True), ("127.0.0.1", False)])
def test_command_prints_the_addresses_for_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, printed: bool
) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: None)
    monkeypatch.setattr(socket.socket, "getsockname", lambda self: ("192.0.2.7", 81))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *how: [(0, 0, 0, "", ("127.0.1.1", 81))])
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: sockets[0].close())
    monkeypatch.setattr("wotd_env.web.connections.set_up_log", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *how: None)
    command = ["serve", "--host", host, "--port", "0", "--file", str(tmp_path / "tables")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert ("Others reach it at http://192.0.2.7:81/." in result.output) == printed
    assert "127.0.1.1" not in result.output


UNREADY = """
from threading import Event

class Policy:
    def check_rules(self, rules):
        Event().wait()

    def act(self, game, state, rng):
        raise NotImplementedError
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_command_stops_during_the_warm_up(serve: Serve, tmp_path: Path, stop: signal.Signals) -> None:
    (tmp_path / "unready.py").write_text(UNREADY)
    process = serve(tmp_path / "tables", "--policy", "slow=unready:Policy")
    assert process.stdout is not None
    (address,) = re.findall(r"http://\S+/", process.stdout.readline())
    assert not httpx.get(f"{address}api/setup", timeout=60).json()["ready"]
    process.send_signal(stop)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "Stopped" in output


def test_log_leaves_out_messages_caused_by_clients() -> None:
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
def test_command_reports_wrong_options(serve: Serve, tmp_path: Path, options: list[str], reason: str) -> None:
    process = serve(tmp_path / "tables", *options)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert reason in errors


@pytest.mark.parametrize(
    "name",
    ["https://play.example.org", "play.example.org:80", "play.example.org/", "*.org", "müller.org", ""],
)
def test_command_refuses_names_that_are_not_hosts(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tables"
    result = CliRunner().invoke(
        app, ["serve", "--name", "play.example.org", "--name", name, "--file", str(file)]
    )
    assert result.exit_code == 2
    assert (
        f"must be a host name without scheme and port, such as play.example.org, got {name!r}"
        in result.stderr
    )
    assert not file.exists()


def run_documented_script(client: httpx.Client) -> dict[str, Any]:
    """Run the script of docs/reference/http.md against a server, and return its variables."""
    page = ROOT / "docs" / "reference" / "http.md"
    (script,) = re.findall(r"^```py\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    try:
        exec(script.replace("http://127.0.0.1:8000", str(client.base_url)), names)
    finally:
        names["server"].close()
    return names


def test_documented_script_plays_within_the_limits(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[float | str] = []
    get, pause, script = httpx.Client.get, time.sleep, threading.get_ident()

    def noted_pause(seconds: float) -> None:
        if threading.get_ident() == script:
            done.append(seconds)
        else:  # the server sleeps in this process, too
            pause(seconds)

    def noted(self: httpx.Client, url: str, **how: Any) -> httpx.Response:
        done.append(url)
        return get(self, url, **how)

    monkeypatch.setattr(httpx.Client, "get", noted)
    monkeypatch.setattr("time.sleep", noted_pause)
    names = run_documented_script(client)
    assert names["view"]["status"] == "over"
    *waiting, text = done
    assert text == f"{names['table']}/text"
    assert waiting
    assert waiting[1::2] == [names["table"]] * (len(waiting) // 2)
    assert all(isinstance(pause, float) and pause >= 1 / Limits().requests for pause in waiting[::2])


def test_documented_script_raises_on_a_refusal(tmp_path: Path) -> None:
    with (
        running(tmp_path / "tables", fewer(tables_per_address=0)) as client,
        pytest.raises(httpx.HTTPStatusError, match="429"),
    ):
        run_documented_script(client)


@pytest.mark.slow
def test_answered_decisions_survive_a_kill(serve: Serve, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables: list[At] = []
    answered: dict[str, list[Any]] = {}  # decisions that the server has confirmed
    for round_ in range(6):
        process = serve(tmp_path / "tables")
        with contextlib.closing(client_for(process)) as client:
            tables = [At(client, at.table, at.key) for at in tables]
            for at in tables:
                log = at.view["log"]
                assert log[: len(answered[at.table])] == answered[at.table]
                # One more decision may be stored, if the kill came before its answer.
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
