"""The exception for refused requests, and the reasons for refusals."""

from __future__ import annotations

from typing import Any

RETRY = 5
"""Seconds until a client may repeat a request that the server could not serve."""

REASONS = {
    # the request
    "host": "this host name is not allowed; the operator can add it with --name",
    "origin": "requests from pages of other servers are not allowed",
    "address": "there is nothing at this address",
    "method": "this address takes another method",
    "type": "the request must have the header Content-Type: application/json",
    "size": "the request must have at most {most} bytes",
    "slow": "the request did not arrive within {seconds} s",
    "syntax": "the request must be a JSON object in UTF-8",
    "invalid": "{reason}",
    "name": "name must not contain {name}",
    "too_many": "too many {what}; try again in {wait} s",
    # the server
    "starting": "the server is warming up; try again in a few seconds",
    "stopping": "the server is being stopped",
    "mistake": "the server has made a mistake; your games are not affected",
    "disk": "the server cannot store this at present; nothing has changed",
    "tables": "this server has {most} tables, the maximum",
    "own_tables": "you have set up {most} tables, the maximum",
    "sockets": "{most} sockets are open, the maximum",
    "own_sockets": "you have {most} sockets open, the maximum",
    # tables and keys
    "no_table": "this table does not exist or was deleted",
    "no_key": "the request must have the header Authorization: Bearer KEY",
    "key": "this key opens nothing at this table",
    "invitation": "this invitation is invalid or has already been used",
    "full": "this table has no open seat any more",
    "taken": "this seat is taken, or not open to everybody",
    "seat": "this seat is not yours; the host can reassign a seat after its player has left or run out of time",
    "host_only": "only the host, who has set up the table, can {what}",
    "spectator": "spectators cannot start a game",
    # games
    "over": "there is no decision to take: the game is over",
    "not_begun": "there is no decision to take: the game has not begun",
    "turn": "it is {name}'s turn",
    "ply": "ply must be {ply}, the next decision, got {got}",
    "game": "game must be {game}, the present game, got {got}",
    "not_over": "game {game} is not over, or not the last one",
    "not_playing": "game {game} is not being played",
    "no_game": "this table has no game {game}",
    "damaged": "game {game} of this table is damaged on disk",
    "resign": "only one of two players can resign; with more players, give your seat to an agent",
    "position_over": "position must be of a running game; this game is over",
    # agents and values
    "agent": "{agent} is not made for {rules}",
    "software": "{agent} needs software that this server does not have",
    "no_help": "there is no help at this table, or its game has not begun",
    "no_value": "the position could not be evaluated in time",
    "review_early": "a game is reviewed when it is over",
    "reviews": "too many games wait for their review; try again soon",
    "review_late": "the review takes too long",
}
"""The reasons in English, by their codes. The page has translations of those that a person can meet in normal use."""

_LENGTH = 400  # maximum number of characters of a reason and of each of its values


class Refused(Exception):
    """Raised to refuse a request. `status` is the HTTP status; `code` and `values` are a reason of `REASONS`.

    `field` is the name of the wrong field, if any. `wait` is the number of seconds until another attempt can succeed;
    None if waiting does not help.
    """

    def __init__(
        self, status: int, code: str, field: str | None = None, wait: int | None = None, **values: object
    ) -> None:
        self.status, self.code, self.field, self.wait = status, code, field, wait
        given = values if wait is None else values | {"wait": wait}
        self.values = {name: str(value)[:_LENGTH] for name, value in given.items()}
        self.reason = REASONS[code].format(**self.values)[:_LENGTH]
        super().__init__(self.reason)

    def content(self) -> dict[str, Any]:
        """Return the JSON object that tells a client why its request is refused."""
        reason = {"error": self.reason, "code": self.code, "values": self.values}
        return reason | {"field": self.field, "status": self.status}
