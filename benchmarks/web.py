"""Measure the waiting times at `wotd serve` with many games against agents (`python -m benchmarks.web`).

The server has its own process. The simulated people, in this process, think, send a decision, and wait until the server
has stored it and answered. The waiting times go to docs/results/speed.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from tools import pages

PAGE = Path(__file__).parents[1] / "docs" / "results" / "speed.md"
AGENTS = ("greedy", "planner", "td")
THINKING = (1.0, 0.0)  # seconds, on average


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__)
    parser.add_argument("--games", type=int, default=200, help="games at once (default 200)")
    parser.add_argument("--seconds", type=float, default=40, help="length of a measurement (default 40)")
    parser.add_argument("--keep", action="store_true", help="change no file")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        _serve(Path(arguments.serve))
        return
    rows = []
    for thinking in THINKING:
        with tempfile.TemporaryDirectory() as folder, _server(Path(folder, "tables")) as url:
            waits = asyncio.run(_measure(url, arguments.games, arguments.seconds, thinking))
        median, high, most = np.percentile(waits, [50, 95, 100]) * 1000
        what = f"about {thinking:g} s" if thinking else "not at all"
        rate = len(waits) / arguments.seconds
        rows.append([what, f"{rate:,.0f}", f"{median:.0f} ms", f"{high:.0f} ms", f"{most:.0f} ms"])
        print(*rows[-1], sep=" | ", flush=True)
    if not arguments.keep:
        PAGE.write_text(pages.renew(PAGE.read_text(), {"load": _table(rows, arguments.games)}))


def _table(rows: list[list[str]], games: int) -> str:
    head = ["people think", "decisions of people a second", "median wait", "95th percentile", "longest"]
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    where = (
        f"{games} games at once, people and server on one machine: {machine}, {datetime.now(UTC):%Y-%m-%d}."
    )
    return f"{pages.table(head, rows, range(1, len(head)))}\n\n{where}"


def _serve(file: Path) -> None:
    """Run the server, without limits for this machine."""
    import uvicorn

    from wotd_env.web.app import make_app
    from wotd_env.web.connections import config_of
    from wotd_env.web.limits import Limits
    from wotd_env.web.store import Store

    counts = {"tables_per_address": 10**6, "sockets_per_address": 10**6}
    limits = Limits(**counts, requests=1e6, new_tables=1e6, messages=1e6)
    app = make_app(Store(file), limits=limits)
    uvicorn.Server(config_of(app, limits, port=0, log_config=uvicorn.config.LOGGING_CONFIG)).run()


@contextlib.contextmanager
def _server(file: Path) -> Iterator[str]:
    """Run the server in a process of its own; yield its address."""
    command = [sys.executable, "-m", "benchmarks.web", "--serve", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = next(line.split()[4] for line in process.stderr if "running on" in line)
            while not httpx.get(f"{url}/api/setup").json()["ready"]:
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.stderr.read()


async def _measure(url: str, games: int, seconds: float, thinking: float) -> list[float]:
    """Simulate people for some time; return the waiting time of each decision, in seconds."""
    waits: list[float] = []
    async with httpx.AsyncClient(base_url=url) as client:
        made = [await _table_against(client, AGENTS[game % len(AGENTS)]) for game in range(games)]
    end = time.monotonic() + seconds
    await asyncio.gather(*(_play(url, table, end, thinking, waits) for table in made))
    return waits


async def _table_against(client: httpx.AsyncClient, agent: str) -> Any:
    seats = [{"kind": "here", "name": "somebody"}, {"kind": "agent", "agent": agent}]
    answer = await client.post("/api/tables", json={"seats": seats, "pace": 0, "help": False})
    return answer.raise_for_status().json()


async def _play(url: str, table: Any, end: float, thinking: float, waits: list[float]) -> None:
    """Play games at a table until the time `end`."""
    address = f"{url.replace('http', 'ws', 1)}/api/tables/{table['table']}/socket"
    rng = random.Random(table["table"])
    async with connect(address, compression=None) as socket:
        await socket.send(json.dumps({"type": "hello", "key": table["key"]}))
        view = await _view(socket)
        while time.monotonic() < end:
            if view["status"] == "over":
                await socket.send(json.dumps({"type": "next", "game": view["game"]}))
            elif view["choices"]:
                await asyncio.sleep(rng.uniform(0.5, 1.5) * thinking)
                began = time.perf_counter()
                action = rng.choice(view["choices"])["action"]
                await socket.send(json.dumps({"type": "act", "ply": view["ply"], "action": action}))
                view = await _view(socket)
                waits.append(time.perf_counter() - began)
                continue
            view = await _view(socket)


async def _view(socket: ClientConnection) -> Any:
    async for message in socket:
        content = json.loads(message)
        assert content["type"] == "view", content
        return content


if __name__ == "__main__":
    main()
