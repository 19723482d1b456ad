"""What one client, and all together, may ask of the server; what goes beyond is refused with a reason."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Limits", "Rate", "Refused", "client_of"]

_CLIENTS = 10_000  # addresses that a rate remembers


class Refused(Exception):
    """What a client has asked for is not done, and why.

    Attributes:
        status: of the HTTP answer.
        reason: one sentence for whoever asked.
        field: what is wrong in the request, if it is one thing.
        wait: seconds after which it may be tried again, if that helps.
    """

    def __init__(self, status: int, reason: str, field: str | None = None, wait: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.field, self.wait = status, reason[:400], field, wait


@dataclass(frozen=True)
class Limits:
    """The limits of a server; rates are in a second, for one address unless they are said to be for a socket.

    Attributes:
        tables: that are kept, in all.
        tables_per_address: that one address has set up and that are kept.
        sockets: open at once, in all.
        sockets_per_address: open at once.
        message: bytes of a message or request.
        text: bytes of a recorded game that is handed in.
        requests: HTTP requests.
        new_tables: tables set up.
        games: games handed in, and games of tables that are reviewed for the first time.
        wrong_keys: keys and invitations that are none.
        messages: messages of one socket.
        patience: seconds in which a request must have come in whole, and a socket's first message.
        thinking: seconds that an agent has for a decision.
        reviews: games that wait for their review, or are under review.
        days: that a table is kept after its last decision.
    """

    tables: int = 1000
    tables_per_address: int = 100
    sockets: int = 1000
    sockets_per_address: int = 24
    message: int = 2048
    text: int = 65536
    requests: float = 20
    new_tables: float = 0.5
    games: float = 0.5
    wrong_keys: float = 0.1
    messages: float = 10
    patience: float = 10
    thinking: float = 10
    reviews: int = 20
    days: float = 30


class Rate:
    """How often each client may do something: a bucket that fills at a rate and holds some ten seconds of it.

    Args:
        per_second: how often in the long run.
        what: is done too often, in the words of the refusal.
        at_once: how often without a pause.
        clock: seconds, as of `time.monotonic`.
    """

    def __init__(
        self, per_second: float, what: str, at_once: float = 10, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._what, self._most, self._clock = per_second, what, at_once, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> how often still, when

    def check(self, client: str = "") -> None:
        """Make sure that a client may do it now; nothing is counted.

        Raises:
            Refused: if it has done it too often.
        """
        if (left := self._now(client)) < 1:
            wait = int((1 - left) / self._per_second) + 1
            raise Refused(429, f"too many {self._what}; try again in {wait} s", wait=wait)

    def count(self, client: str = "") -> None:
        """Note that a client has done it.

        Raises:
            Refused: if it may not do it now; then nothing is noted.
        """
        self.check(client)
        self._left[client] = self._now(client) - 1, self._clock()
        self._left.move_to_end(client)
        if len(self._left) > _CLIENTS:
            self._left.popitem(last=False)

    def _now(self, client: str) -> float:
        left, then = self._left.get(client, (self._most, 0.0))
        return min(self._most, left + (self._clock() - then) * self._per_second)


def client_of(address: str) -> str:
    """Return what counts as one client: an address or, as whoever has one IPv6 address has many, its network."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))
    return address
