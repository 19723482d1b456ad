"""Configuration of uvicorn for the application: settings, log, and a deadline for requests."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from wotd_env.web.limits import Limits

_CAUSED_BY_CLIENTS = (
    "Invalid HTTP request received.",
    "Invalid UTF-8 sequence received from client.",
    "Unsupported upgrade request.",
    "Exceeded concurrency limit.",
    "ASGI callable returned without completing handshake.",  # uvicorn logs this for a refused socket
)


def config_of(app: ASGIApp, limits: Limits, **settings: Any) -> uvicorn.Config:
    """Return uvicorn's settings for an application. `settings` override the defaults of this function."""
    usual: dict[str, Any] = {
        "http": type("Connection", (_Connection,), {"limits": limits}),
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "ws": "websockets-sansio",
        "ws_max_size": limits.message,
        "ws_max_queue": 8,
        "ws_per_message_deflate": False,
        "h11_max_incomplete_event_size": 16384,
        "limit_concurrency": 2 * limits.sockets + 100,
        "timeout_graceful_shutdown": 3,
    }
    return uvicorn.Config(app, **(usual | settings))


def set_up_log() -> None:
    """Write warnings and errors to standard error, except those caused by clients or Ctrl-C."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(concerns)


def concerns(record: logging.LogRecord) -> bool:
    """Return whether a message of uvicorn concerns the operator."""
    message = record.getMessage()
    second_interrupt = message.rstrip().endswith("CancelledError")  # uvicorn logs this after a second Ctrl-C
    return message not in _CAUSED_BY_CLIENTS and not second_interrupt


class _Connection(H11Protocol):
    """An HTTP connection. It is dropped if a request is not complete in time; uvicorn would wait forever."""

    limits = Limits()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        """Set a deadline when the wait for a request starts; cancel it when the request is complete."""
        upgraded = self.transport.get_protocol() is not self  # a WebSocket has its own deadlines
        waits = not upgraded and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if waits and self._deadline is None:  # further bytes of a request do not extend its deadline
            # The application refuses a slow body itself, after `patience`.
            self._deadline = self.loop.call_later(2 * self.limits.patience, self.transport.abort)
        elif not waits and self._deadline:
            self._deadline.cancel()
            self._deadline = None
