"""A server of tables for tests: on a free port of this machine, in a thread."""

from __future__ import annotations

import contextlib
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from wotd_env.policy import Policy
from wotd_env.web.app import make_app
from wotd_env.web.limits import Limits
from wotd_env.web.store import Store

PATIENT = Limits(requests=1e6, new_tables=1e6, games=1e6, wrong_keys=1e6, messages=1e6)
"""Limits that no test reaches by being fast."""


@contextlib.contextmanager
def running(
    file: Path, limits: Limits = PATIENT, policies: dict[str, Policy] | None = None, port: int = 0
) -> Iterator[httpx.Client]:
    """Run a server for the tables of a file; gives a client for it once it is ready."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server may come back at its port
    listening.bind(("127.0.0.1", port))
    listening.listen()
    store = Store(file)
    config = uvicorn.Config(
        make_app(store, policies, limits),
        log_config=None,
        ws="websockets-sansio",
        ws_max_size=limits.message,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
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
    """Return when the server plays; at the first start on a machine it compiles for half a minute."""
    asked = threading.Event()
    for _ in range(6000):
        if client.get("/api/setup").raise_for_status().json()["ready"]:
            return
        asked.wait(0.1)
    raise TimeoutError("the server did not become ready within ten minutes")


def dice_of(test: str) -> Callable[[], int]:
    """Return what a test puts in the place of `Tables.random`, so that its dice follow from its name."""
    rng = np.random.default_rng(zlib.crc32(test.encode()))
    return lambda: int(rng.integers(1 << 64, dtype=np.uint64))


def fewer(**limits: Any) -> Limits:
    """Return patient limits but for some."""
    return replace(PATIENT, **limits)
