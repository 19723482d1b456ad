"""Limits for clients: maximum numbers, sizes, rates and times."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass

from wotd_env.web.refused import Refused

_CLIENTS = 10_000  # maximum number of clients that a `Rate` remembers


@dataclass(frozen=True)
class Limits:
    """Limits that a server sets for its clients."""

    tables: int = 1000
    tables_per_address: int = 100
    sockets: int = 1000
    sockets_per_address: int = 24
    message: int = 2048  # maximum size in bytes of a message or request
    text: int = 65536  # maximum size in bytes of a request with a recorded game

    # Maximum rates: requests per second from one address.
    requests: float = 20
    new_tables: float = 0.5
    games: float = 0.5  # requests that upload a game or need a new review
    wrong_keys: float = 0.1  # requests with a wrong key or a wrong invitation
    messages: float = 10  # messages per second from one socket

    # Maximum times in seconds.
    patience: float = 10  # for a body and for a socket's first message; twice that for a whole request
    unread: float = 30  # for a client to read a message of a socket
    thinking: float = 10  # for an agent to decide
    reviewing: float = 60

    reviews: int = 20  # maximum number of running and waiting reviews
    days: float = 30  # a table without open sockets may be deleted this many days after its last change


class Rate:
    """A token bucket of size `at_once` for each client."""

    def __init__(self, per_second: float, what: str, at_once: float = 10) -> None:
        self._per_second, self._what, self._most = per_second, what, at_once
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> tokens, time

    def count(self, client: str = "") -> None:
        """Take a token from the bucket of a client; raise Refused if the bucket is empty."""
        now = time.monotonic()
        tokens, then = self._tokens.get(client, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._per_second)
        if tokens < 1:
            wait = int((1 - tokens) / self._per_second) + 1
            raise Refused(429, "too_many", wait=wait, what=self._what)
        self._tokens[client] = tokens - 1, now
        self._tokens.move_to_end(client)
        if len(self._tokens) > _CLIENTS:
            self._tokens.popitem(last=False)


def client_of(address: str) -> str:
    """Return the name of the client at an address: the address itself for IPv4, or its /64 network for IPv6."""
    ip = ip_of(address)
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))
    return address


def ip_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address; return None if the text is not an IP address."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
