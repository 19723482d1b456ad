"""Limits for clients: numbers, rates, and the exception for refused requests."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

RETRY = 5
"""Seconds until a client may repeat a request that the server could not serve."""

_CLIENTS = 10_000  # clients that a rate remembers


class Refused(Exception):
    """Raised for a refused request, with an HTTP status, a sentence for the client, and the wrong field, if any.

    `wait` is the number of seconds until another attempt can succeed; None if waiting does not help.
    """

    def __init__(self, status: int, reason: str, field: str | None = None, wait: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.field, self.wait = status, reason[:400], field, wait


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    tables: int = 1000
    tables_per_address: int = 100
    sockets: int = 1000  # open at the same time
    sockets_per_address: int = 24
    message: int = 2048  # bytes of a message or request
    text: int = 65536  # bytes of a request with a recorded game

    # Rates per second and address.
    requests: float = 20
    new_tables: float = 0.5
    games: float = 0.5  # uploaded games, and first reviews of games of tables
    wrong_keys: float = 0.1  # wrong keys and wrong invitations
    messages: float = 10  # from one socket

    # Seconds.
    patience: float = 10  # for a request's head, its body, and a socket's first message
    unread: float = 30  # until a client has read a response
    thinking: float = 10  # for a decision of an agent
    reviewing: float = 60  # for a review

    reviews: int = 20  # running or waiting
    days: float = 30  # until a table without decisions is deleted


class Rate:
    """A token bucket of size `at_once` for each client. `what` names the limited thing in the refusal."""

    def __init__(
        self, per_second: float, what: str, at_once: float = 10, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._what, self._most, self._clock = per_second, what, at_once, clock
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> tokens, time

    def count(self, client: str = "") -> None:
        """Take a token of a client; raise Refused if there is none."""
        now = self._clock()
        tokens, then = self._tokens.get(client, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._per_second)
        if tokens < 1:
            wait = int((1 - tokens) / self._per_second) + 1
            raise Refused(429, f"too many {self._what}; try again in {wait} s", wait=wait)
        self._tokens[client] = tokens - 1, now
        self._tokens.move_to_end(client)
        if len(self._tokens) > _CLIENTS:
            self._tokens.popitem(last=False)


def client_of(address: str) -> str:
    """Return the client of an address: the IPv4 address, or the /64 network of an IPv6 address."""
    ip = ip_of(address)
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))
    return address


def ip_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address from its text; None for other text."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
