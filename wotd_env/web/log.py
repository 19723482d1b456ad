"""The log of `wotd serve`: messages for the operator, without those that clients can cause."""

from __future__ import annotations

import logging

__all__ = ["concerns", "set_up"]

_CAUSED_BY_CLIENTS = (
    "Invalid HTTP request received.",
    "Invalid UTF-8 sequence received from client.",
    "Unsupported upgrade request.",
    "Exceeded concurrency limit.",
    "ASGI callable returned without completing handshake.",  # uvicorn's message for a refused socket
)
"""uvicorn's messages about clients. Some come with a traceback."""

_SECOND_INTERRUPT = "CancelledError"
"""End of the traceback that uvicorn logs after a second Ctrl-C."""


def set_up() -> None:
    """Write warnings and errors to standard error, except those caused by clients or Ctrl-C."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(concerns)


def concerns(record: logging.LogRecord) -> bool:
    """Return whether a message of uvicorn concerns the operator."""
    message = record.getMessage()
    return message not in _CAUSED_BY_CLIENTS and not message.rstrip().endswith(_SECOND_INTERRUPT)
