"""Handlers of the HTTP requests, one function for each route (docs/reference/http.md)."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wotd_env.core.rules import Rules, valid_values
from wotd_env.web import requests, views
from wotd_env.web.calls import in_thread
from wotd_env.web.games import game_of
from wotd_env.web.refused import Refused
from wotd_env.web.review import replay
from wotd_env.web.server import Server, address_of, server_of
from wotd_env.web.table import GameTable, Viewer
from wotd_env.web.tables import Tables, derived_key

_KEPT_BYTES = 20_000_000  # maximum size in bytes of the cache of reviews


async def _read(request: Request, schema: type[requests.Schema], most: int = 0) -> requests.Schema:
    """Return the message in the body of a request; refuse more than `most` bytes, by default `Limits.message`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "type")
    limits, content = server_of(request).limits, bytearray()
    most = most or limits.message
    try:
        async with asyncio.timeout(limits.patience):
            async for part in request.stream():
                content += part
                if len(content) > most:
                    raise Refused(413, "size", most=most)
    except TimeoutError:
        raise Refused(408, "slow", seconds=f"{limits.patience:g}") from None
    return requests.read(bytes(content), schema)


def _table(request: Request) -> tuple[Server, GameTable]:
    server = server_of(request)
    return server, server.tables.find(request.path_params["table"])


def _viewed(request: Request) -> tuple[Server, GameTable, Viewer]:
    server, table = _table(request)
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise Refused(401, "no_key", "key")
    with server.guesses(request):
        return server, table, server.tables.viewer(table, key)


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise requests.invalid(name, f"{name} must be an integer from 0 to 999999999")
    return int(text)


async def _setup(request: Request) -> JSONResponse:
    server, rules = server_of(request), valid_values()
    rules["max_turns"]["most"] = requests.MAX_TURNS
    return JSONResponse(
        {
            "ready": bool(server.agents),
            "agents": server.agents,
            "rules": rules,
            "most_dead_pieces": _most_dead_pieces(),
            "name_length": requests.NAME_LENGTH,
            "pace": requests.PACE,
        }
    )


@functools.cache
def _most_dead_pieces() -> list[list[int]]:
    """Return the largest valid number of dead pieces for each number of players and, in each row, of plain spaces."""
    counts = {
        name: range(known["least"], known["most"] + 1)
        for name, known in valid_values().items()
        if "most" in known
    }

    def is_valid(players: int, spaces: int, dead_pieces: int) -> bool:
        try:
            Rules(players=players, spaces=spaces, dead_pieces=dead_pieces)
        except ValueError:
            return False
        return True

    return [
        [
            max(dead for dead in counts["dead_pieces"] if is_valid(players, spaces, dead))
            for spaces in counts["spaces"]
        ]
        for players in counts["players"]
    ]


async def _agents(request: Request) -> JSONResponse:
    tables = server_of(request).tables
    rules, _ = requests.rules_and_position(await _read(request, requests.RulesOrPosition))
    agents = await in_thread(lambda: tables.agents.listed(rules))
    return JSONResponse({"agents": agents, "players": rules.players})


async def _choices(request: Request) -> JSONResponse:
    server = server_of(request)
    tables = server.tables
    wanted = await _read(request, requests.StudiedPosition)
    rules, state = requests.rules_and_position(wanted)
    if state is None:
        raise requests.invalid("position", "position is missing")
    game = game_of(rules)
    choices = views.choices(game, state)
    for agent in wanted.agents:
        tables.agents.check(agent, rules, "agents")
    asked = wanted.agents if choices else []
    return JSONResponse(
        {
            "rules": dataclasses.asdict(rules),
            **views.show(game, state),
            "choices": choices,
            "reach": views.reach(game, state),
            "agents": {agent: (await tables.agents.choose(agent, rules, state))[0] for agent in asked},
            **(await server.help.values(game, state) if wanted.values else {}),
        }
    )


async def _open_tables(request: Request) -> JSONResponse:
    return JSONResponse({"tables": server_of(request).tables.open()})


async def _create(request: Request) -> JSONResponse:
    server, address = server_of(request), address_of(request)
    tables = server.tables
    wanted = await _read(request, requests.NewTable)
    rules, position = requests.rules_and_position(wanted)
    if len(wanted.seats) != rules.players:
        reason = f"seats must have one entry for each of the {rules.players} players, got {len(wanted.seats)}"
        raise requests.invalid("seats", reason)
    requests.check_pace(wanted.pace, all(seat.agent for seat in wanted.seats))
    server.new_tables.count(address)
    table, key = tables.create(wanted, rules, position, address)
    content = {
        "table": table.id,
        "key": key,
        "watch": derived_key(key, "watch"),
        "address": server.address,
        "invitations": [
            {"seat": number, "invitation": derived_key(key, f"seat {number}")}
            for number, seat in enumerate(table.seats)
            if seat.kind == "invited"
        ],
        "view": table.view(tables.viewer(table, key)),
    }
    return JSONResponse(content, 201, {"location": f"tables/{table.id}"})


async def _look(request: Request) -> JSONResponse:
    _, table, viewer = _viewed(request)
    return JSONResponse(table.view(viewer, _number(request, "log_from", 0)))


async def _join(request: Request) -> JSONResponse:
    server, table = _table(request)
    body = await _read(request, requests.Join)
    with server.guesses(request):
        seat, key = server.tables.join(table, body)
    return JSONResponse({"key": key, "seat": seat, "view": table.view(server.tables.viewer(table, key))})


async def _invitation(request: Request) -> JSONResponse:
    server, table = _table(request)
    body = await _read(request, requests.Invitation)
    if body.invitation is None and not table.open:
        raise Refused(409, "full", "table")
    with server.guesses(request):
        seat = None if body.invitation is None else server.tables.invited(table, body.invitation)
    return JSONResponse({"seat": seat, "table": table.entry()})


def _order(
    schema: type[requests.Message], execute: Callable[..., Viewer | None]
) -> Callable[[Request], Awaitable[JSONResponse]]:
    """Return a handler that reads a message and passes its fields to `execute`, a method of `Tables`.

    If `execute` changes the viewer's seats, it returns the new viewer, else None.
    """

    async def answer(request: Request) -> JSONResponse:
        server, table, viewer = _viewed(request)
        fields = asdict(await _read(request, schema))
        changed = execute(server.tables, table, viewer, **fields)
        return JSONResponse(table.view(changed or viewer, fields.get("ply", 0)))

    return answer


async def _delete(request: Request) -> JSONResponse:
    server, table, viewer = _viewed(request)
    server.tables.delete(table, viewer)
    return JSONResponse({"table": table.id})


async def _help(request: Request) -> JSONResponse:
    server, table, viewer = _viewed(request)
    return JSONResponse(await server.help(table, viewer))


async def _text(request: Request) -> JSONResponse:
    server, table, _ = _viewed(request)
    return JSONResponse({"text": str(server.tables.played(table, _number(request, "game", table.number)))})


async def _review(request: Request) -> Response:
    server, table, _ = _viewed(request)
    number = _number(request, "game", table.number)
    if number == table.number and table.status != "over":
        raise Refused(409, "review_early", "game")
    which = table.id, number, tuple(table.names)
    loser = table.loser if number == table.number else None
    content = server.reviewed.get(which)
    if content is None:
        server.games.count(address_of(request))
        recorded = server.tables.played(table, number)
        content = await server.reviews(lambda: replay(recorded, True, loser))
        server.reviewed[which] = content
        while sum(map(len, server.reviewed.values())) > _KEPT_BYTES:
            del server.reviewed[next(iter(server.reviewed))]  # the oldest review
    return Response(content, media_type="application/json")


async def _games(request: Request) -> Response:
    server = server_of(request)
    _ = server.tables  # raises `Refused` while the server warms up
    body = await _read(request, requests.Recorded, server.limits.text)
    server.games.count(address_of(request))
    content = await server.reviews(lambda: replay(requests.parse_recorded(body.text), body.review))
    return Response(content, media_type="application/json")


ROUTES = [
    Route("/api/setup", _setup),
    Route("/api/agents", _agents, methods=["POST"]),
    Route("/api/choices", _choices, methods=["POST"]),
    Route("/api/tables", _open_tables),
    Route("/api/tables", _create, methods=["POST"]),
    Route("/api/tables/{table}", _look),
    Route("/api/tables/{table}", _delete, methods=["DELETE"]),
    Route("/api/tables/{table}/join", _join, methods=["POST"]),
    Route("/api/tables/{table}/invitation", _invitation, methods=["POST"]),
    Route("/api/tables/{table}/seat", _order(requests.HandOver, Tables.hand_over), methods=["POST"]),
    Route("/api/tables/{table}/act", _order(requests.Act, Tables.act), methods=["POST"]),
    Route("/api/tables/{table}/next", _order(requests.Next, Tables.next_game), methods=["POST"]),
    Route("/api/tables/{table}/pace", _order(requests.SetPace, Tables.set_pace), methods=["POST"]),
    Route("/api/tables/{table}/step", _order(requests.Step, Tables.step), methods=["POST"]),
    Route("/api/tables/{table}/resign", _order(requests.Resign, Tables.resign), methods=["POST"]),
    Route("/api/tables/{table}/help", _help),
    Route("/api/tables/{table}/text", _text),
    Route("/api/tables/{table}/review", _review),
    Route("/api/games", _games, methods=["POST"]),
]
"""All routes of the API except the socket."""
