"""What the server writes to its log: what concerns whoever runs it, and nothing that clients could make it grow by."""

from __future__ import annotations

import logging

__all__ = ["set_up"]

_OF_CLIENTS = (
    "Invalid HTTP request received.",
    "Invalid UTF-8 sequence received from client.",
    "Unsupported upgrade request.",
    "Exceeded concurrency limit.",
    "ASGI callable returned without completing handshake.",  # uvicorn's words for a socket that is refused
)
"""What uvicorn says of what clients do, some of it with a traceback."""


def set_up() -> None:
    """Write warnings and errors to the standard error stream, but for those that clients cause."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.getMessage() not in _OF_CLIENTS)
