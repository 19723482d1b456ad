"""What the server writes to its log: what concerns whoever runs it, and nothing that clients could make it grow by."""

from __future__ import annotations

import logging

__all__ = ["concerns", "set_up"]

_OF_CLIENTS = (
    "Invalid HTTP request received.",
    "Invalid UTF-8 sequence received from client.",
    "Unsupported upgrade request.",
    "Exceeded concurrency limit.",
    "ASGI callable returned without completing handshake.",  # uvicorn's words for a socket that is refused
)
"""What uvicorn says of what clients do, some of it with a traceback."""


_FORCED = "CancelledError"
"""How the traceback ends that Starlette has uvicorn write where Ctrl-C comes again before all is closed."""


def set_up() -> None:
    """Write warnings and errors to the standard error stream, but for those that clients or Ctrl-C cause."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(concerns)


def concerns(record: logging.LogRecord) -> bool:
    """Return whether what uvicorn says concerns whoever runs the server."""
    message = record.getMessage()
    return message not in _OF_CLIENTS and not message.rstrip().endswith(_FORCED)
