"""The application: what is served at which address, and what every request and answer must be like (docs/serve.md)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from wotd_env.core.rules import ELEMENTS, MAX_PLAYERS, MAX_SPACES, PATHS, POWER_MODES, POWERS, Rules
from wotd_env.notation import RecordedGame, parse_game, parse_position, record_game
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, ask
from wotd_env.rendering.svg import style, symbols
from wotd_env.web import requests, views
from wotd_env.web.agents import Agents, game_of, in_thread
from wotd_env.web.limits import Limits, Rate, Refused, client_of
from wotd_env.web.review import replay
from wotd_env.web.store import Store
from wotd_env.web.table import Table, Viewer
from wotd_env.web.tables import Tables

__all__ = ["make_app"]

LANGUAGES = ("en", "es", "de", "hi")

_HERE = Path(__file__).parent
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_SLOW = 30  # seconds in which a client must take what it is sent
_REVIEW = 60  # seconds that a review may take
_AT_ONCE = 2  # reviews: each thread more that works keeps all others waiting a little longer
_KEPT = 50  # reviews of games of tables, some hundred kB each
_WARMING_UP = 5  # seconds after which to ask again

# Why a socket is closed, beside the codes that everybody knows.
_TOO_FAST, _TRY_AGAIN, _NOT_YOURS, _GONE, _IDLE = 1008, 1013, 4403, 4404, 4408

_log = logging.getLogger("wotd_env.web")


class Json(Response):
    """An answer in JSON; in ASCII, so that nothing that came in can keep it from being written."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of an answer."""
        return _dumps(content).encode()


def _dumps(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


class _Server:
    """What the answers to all requests share."""

    def __init__(self, store: Store, policies: dict[str, Policy], limits: Limits) -> None:
        self.limits, self._store, self._policies = limits, store, policies
        self.sockets: Counter[str] = Counter()
        self.reviewed: dict[tuple[str, int, tuple[str, ...]], bytes] = {}  # by table, number and names
        self._reviews = 0
        self._reviewing = asyncio.Semaphore(_AT_ONCE)
        self.requests = Rate(limits.requests, "requests", limits.requests * 10)
        self.new_tables = Rate(limits.new_tables, "new tables", 20)
        self.games = Rate(limits.games, "games")
        self.wrong_keys = Rate(limits.wrong_keys, "wrong keys", 5)
        self.agents: list[dict[str, Any]] = []
        self._tables: Tables | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Listen at once, and open the tables as soon as everything is compiled."""
        opening = asyncio.create_task(self._open())
        opening.add_done_callback(_say_if_failed)
        try:
            yield
        finally:
            opening.cancel()
            if self._tables:
                await self._tables.close()

    async def _open(self) -> None:
        agents = await in_thread(lambda: Agents(self._policies, self.limits.thinking))
        self.agents = await in_thread(lambda: _able(agents))
        await in_thread(_compile)
        tables = Tables(self._store, agents, self.limits)
        tables.resume()
        self._tables = tables
        _log.info("ready")

    @property
    def ready(self) -> bool:
        """Whether there are tables already."""
        return self._tables is not None

    @property
    def tables(self) -> Tables:
        """All tables.

        Raises:
            Refused: while they are not there yet.
        """
        if self._tables is None:
            raise Refused(503, "the server is warming up; try again in a few seconds", wait=_WARMING_UP)
        return self._tables

    async def review(self, work: Callable[[], bytes]) -> bytes:
        """Return what a review comes to, worked out beside what else goes on.

        Raises:
            Refused: if too many wait already, or it takes too long.
            ValueError: as `work` does.
        """
        if self._reviews >= self.limits.reviews:
            raise Refused(503, "too many games wait for their review; try again soon", wait=_WARMING_UP)

        async def in_turn() -> bytes:
            async with self._reviewing:
                content: bytes = await in_thread(work)
                return content

        def over(task: asyncio.Task[bytes]) -> None:
            self._reviews -= 1  # not before its thread has ended
            if not task.cancelled():
                task.exception()  # whoever asked may be gone, and then nobody looks at it

        self._reviews += 1
        reviewing = asyncio.create_task(in_turn())
        reviewing.add_done_callback(over)
        try:
            async with asyncio.timeout(_REVIEW):
                return await asyncio.shield(reviewing)
        except TimeoutError:
            raise Refused(503, "the review takes too long", wait=_REVIEW) from None

    def viewer(self, connection: HTTPConnection, table: Table, key: str) -> Viewer:
        """Return whose key it is; whoever tries many that are none has to wait.

        Raises:
            Refused: if it is none.
        """
        with self.guesses(connection):
            return self.tables.viewer(table, key)

    @contextlib.contextmanager
    def guesses(self, connection: HTTPConnection) -> Iterator[None]:
        """Count what turns out to be a wrong key."""
        client = _client(connection)
        self.wrong_keys.check(client)
        try:
            yield
        except Refused as refused:
            if refused.field in ("key", "invitation"):
                self.wrong_keys.count(client)
            raise


def make_app(
    store: Store,
    policies: dict[str, Policy] | None = None,
    limits: Limits | None = None,
    names: Iterable[str] = (),
) -> ASGIApp:
    """Return the application.

    Args:
        store: where tables are kept.
        policies: agents beside those that everybody may have at a table.
        limits: of what clients may ask.
        names: of hosts that the server is reached by, beside numbers and localhost.
    """
    server = _Server(store, policies or {}, limits or Limits())
    route = _routes_of(server)
    routes = [
        Route("/", lambda request: FileResponse(_HERE / "static" / "index.html")),
        Route("/drawings.svg", _fixed(symbols(), "image/svg+xml")),
        Route("/colors.css", _fixed(style(), "text/css")),
        Route("/rules/{language}", _rules),
        route("GET", "/api/setup", _setup),
        route("GET", "/api/tables", _open_tables),
        route("POST", "/api/tables", _create),
        route("GET", "/api/tables/{table}", _look),
        route("POST", "/api/tables/{table}/join", _join),
        route("POST", "/api/tables/{table}/invitation", _invitation),
        route("POST", "/api/tables/{table}/seat", _hand_over),
        route("POST", "/api/tables/{table}/act", _act),
        route("POST", "/api/tables/{table}/next", _next),
        route("GET", "/api/tables/{table}/help", _help),
        route("GET", "/api/tables/{table}/text", _text),
        route("GET", "/api/tables/{table}/review", _review),
        route("POST", "/api/games", _games),
        WebSocketRoute("/api/tables/{table}/socket", _socket_of(server)),
        Mount("/static", StaticFiles(directory=_HERE / "static", check_dir=False)),
    ]
    handlers: Any = {Refused: _refused, HTTPException: _http_error, Exception: _mistake}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=server.lifespan)
    return _Guard(app, server, frozenset(map(str.lower, names)))  # around all of it, mistakes too


# ---------------------------------------------------------------------------------------------- every request


class _Guard:
    """Lets through what comes from pages of this server, or from no page, and not too often; adds headers."""

    def __init__(self, app: ASGIApp, server: _Server, names: frozenset[str]) -> None:
        self._app, self._server, self._names = app, server, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault(
                    "cache-control", "no-store" if scope["path"].startswith("/api/") else "no-cache"
                )
            await send(message)

        try:
            _check_origin(Headers(scope=scope), self._names)
            self._server.requests.count(_client(HTTPConnection(scope)))
        except Refused as refused:
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send_with_headers).send_denial_response(_answer(refused))
            else:
                await _answer(refused)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


def _check_origin(headers: Headers, names: frozenset[str]) -> None:
    """Refuse names that lead here but are none of this server's (DNS rebinding), and pages of other servers.

    Raises:
        Refused: if one of both is the case.
    """
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if name != "localhost" and name not in names and not _is_number(name):
        raise Refused(403, "this server is not reached by this name; see --name", "host")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Refused(403, "requests from pages of other servers are not answered", "origin")


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _client(connection: HTTPConnection) -> str:
    return client_of(connection.client.host if connection.client else "")


def _answer(refused: Refused) -> Json:
    headers = {"retry-after": str(refused.wait)} if refused.wait else None
    return Json(_as_json(refused), refused.status, headers)


def _as_json(refused: Refused) -> dict[str, Any]:
    return {"error": refused.reason, "field": refused.field, "status": refused.status}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reasons = {404: "there is nothing at this address", 405: "this address takes another method"}
    return _answer(Refused(error.status_code, reasons.get(error.status_code, error.detail)))


async def _mistake(request: Request, error: Exception) -> Response:
    return _answer(Refused(500, "the server has made a mistake; nothing of yours is lost"))


async def _body(request: Request, most: int, *names: str, patience: float) -> dict[str, Any]:
    """Return the JSON object that a request brings.

    Raises:
        Refused: if it is none, too long, or does not come.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the request must have the header Content-Type: application/json")
    content = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for part in request.stream():
                content += part
                if len(content) > most:
                    raise Refused(413, f"the request must have at most {most} bytes")
    except TimeoutError:
        raise Refused(408, f"the request did not come in within {patience:g} s") from None
    return requests.read(bytes(content), *names)


# ---------------------------------------------------------------------------------------------- what is always the same


def _fixed(content: str, kind: str) -> Callable[[Request], Response]:
    """Return what answers with something that never changes while the server runs."""
    tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:16]}"'

    def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        return Response(content, media_type=kind, headers={"etag": tag})

    return answer


def _rules(request: Request) -> Response:
    language = request.path_params["language"]
    if language not in LANGUAGES:
        raise Refused(404, f"the rules are there in {', '.join(LANGUAGES)}", "language")
    return FileResponse(_HERE / "rules" / f"{language}.html", media_type="text/html")


async def _setup(server: _Server, request: Request) -> Any:
    default = Rules()
    pace = dict(zip(("least", "most", "default"), requests.PACE, strict=True))
    return {
        "ready": server.ready,
        "name": "Way of the Dragon",
        "agents": server.agents,
        "rules": {
            "players": {"least": 2, "most": MAX_PLAYERS, "default": default.players},
            "spaces": {"least": 0, "most": MAX_SPACES, "default": default.spaces},
            "powers": {"values": POWER_MODES, "default": default.powers},
            "immunity": {"values": [False, True], "default": default.immunity},
            "dead_pieces": {"least": 0, "most": PATHS * (MAX_PLAYERS - 2), "default": default.dead_pieces},
            "colors": {"values": [None, "random"], "default": default.colors},
            "start": {"values": ["dragons", "loser"], "default": default.start},
        },
        "elements": ELEMENTS,
        "animals": views.ANIMALS,
        "powers": POWERS,
        "languages": LANGUAGES,
        "name_length": requests.NAME,
        "seat_kinds": requests.KINDS,
        "pace": pace,
    }


def _able(agents: Agents) -> list[dict[str, Any]]:
    """Return who can be had as an agent, what each does, and for how many players."""
    found = [
        {"name": name, "words": words, "players": agents.players(name)}
        for name, words in agents.words.items()
    ]
    return [agent for agent in found if agent["players"]]


def _compile() -> None:
    """Use everything once that is compiled when it is first used."""
    game, actions = game_of(Rules(spaces=0)), list[int]()
    state = game.new(1, seed=0)
    policies = [make_policy("greedy"), make_policy("planner")]
    while not game.is_over(state)[0]:
        action = ask(policies[len(actions) % 2], game, state, np.random.default_rng(0))
        actions += action.tolist()
        game.step(state, action)
    replay(parse_game(str(record_game(game.rules, actions, seed=0))), graded=True)


def _say_if_failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("the tables cannot be opened", exc_info=error)


# ---------------------------------------------------------------------------------------------- tables


_Answer = Callable[[_Server, Request], Awaitable[Any]]


def _routes_of(server: _Server) -> Callable[[str, str, _Answer], Route]:
    def route(method: str, path: str, answer: _Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                content = await answer(server, request)
            except asyncio.CancelledError:
                raise Refused(503, "the server is being stopped", wait=_WARMING_UP) from None
            return content if isinstance(content, Response) else Json(content)

        return Route(path, endpoint, methods=[method], name=answer.__name__)

    return route


async def _read(server: _Server, request: Request, *names: str) -> dict[str, Any]:
    return await _body(request, server.limits.message, *names, patience=server.limits.patience)


def _at_table(server: _Server, request: Request) -> tuple[Table, Viewer]:
    """Return the table that a request is about, and who asks.

    Raises:
        Refused: if there is none, or it brings no key of it.
    """
    table = server.tables.find(request.path_params["table"])
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise Refused(401, "the request must have the header Authorization: Bearer KEY", "key")
    return table, server.viewer(request, table, key)


async def _open_tables(server: _Server, request: Request) -> Any:
    if "table" not in request.query_params:
        return {"tables": server.tables.open()}
    table = server.tables.find(request.query_params["table"])
    return {"tables": [table.entry()] if table.open else []}


async def _create(server: _Server, request: Request) -> Any:
    tables, client = server.tables, _client(request)
    body = await _read(server, request, "rules", "position", "seats", "help", "pace")
    wanted = requests.new_table(body, [agent["name"] for agent in server.agents])
    server.new_tables.count(client)
    table, keys = tables.create(wanted, client)
    invitations = [{"seat": seat, "invitation": code} for seat, code in keys.invitations.items()]
    view = table.view(tables.viewer(table, keys.host))
    content = {
        "table": table.id,
        "key": keys.host,
        "watch": keys.watch,
        "invitations": invitations,
        "view": view,
    }
    return Json(content, 201)


async def _look(server: _Server, request: Request) -> Any:
    table, viewer = _at_table(server, request)
    return table.view(viewer, _since(request))


def _since(request: Request) -> int:
    return requests.whole({"log_from": _number(request, "log_from", 0)}, "log_from")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise Refused(400, f"{name} must be a whole number", name)
    return int(text)


async def _join(server: _Server, request: Request) -> Any:
    tables = server.tables
    table = tables.find(request.path_params["table"])
    body = await _read(server, request, "name", "invitation", "seat")
    name = requests.read_name(body)
    invitation = requests.word(body, "invitation") if "invitation" in body else None
    wanted = requests.whole(body, "seat", 0, table.rules.players - 1) if "seat" in body else None
    with server.guesses(request):
        seat, key = tables.join(table, name, invitation, wanted)
    return {"key": key, "seat": seat, "view": table.view(tables.viewer(table, key))}


async def _invitation(server: _Server, request: Request) -> Any:
    table = server.tables.find(request.path_params["table"])
    body = await _read(server, request, "invitation")
    with server.guesses(request):
        seat = server.tables.invited(table, requests.word(body, "invitation"))
    return {"seat": seat, "table": table.entry()}


async def _hand_over(server: _Server, request: Request) -> Any:
    table, viewer = _at_table(server, request)
    body = await _read(server, request, "seat", "agent")
    return table.view(
        server.tables.hand_over(table, viewer, requests.whole(body, "seat"), requests.word(body, "agent"))
    )


async def _act(server: _Server, request: Request) -> Any:
    table, viewer = _at_table(server, request)
    body = await _read(server, request, "ply", "action")
    ply = _take(server.tables, table, viewer, body)
    return table.view(viewer, ply)


def _take(tables: Tables, table: Table, viewer: Viewer, body: dict[str, Any]) -> int:
    """Take the decision that a message brings; return its number."""
    ply = requests.whole(body, "ply")
    action = body.get("action")
    chosen = requests.word(body, "action") if isinstance(action, str) else requests.whole(body, "action")
    tables.act(table, viewer, ply, chosen)
    return ply


async def _next(server: _Server, request: Request) -> Any:
    table, viewer = _at_table(server, request)
    body = await _read(server, request, "game")
    server.tables.next_game(table, viewer, requests.whole(body, "game"))
    return table.view(viewer)


async def _help(server: _Server, request: Request) -> Any:
    table, viewer = _at_table(server, request)
    return await server.tables.help(table, viewer)


# ---------------------------------------------------------------------------------------------- games as they went


async def _text(server: _Server, request: Request) -> Any:
    table, _ = _at_table(server, request)
    return {"text": str(server.tables.played(table, _number(request, "game", table.number)))}


async def _review(server: _Server, request: Request) -> Any:
    table, _ = _at_table(server, request)
    number = _number(request, "game", table.number)
    if number == table.number and table.status != "over":
        raise Refused(409, "a game is reviewed when it is over", "game")
    which = table.id, number, tuple(table.names)
    content = server.reviewed.get(which)
    if content is None:
        server.games.count(_client(request))
        recorded = server.tables.played(table, number)
        content = await server.review(lambda: _dumps(replay(recorded, graded=True)).encode())
        server.reviewed[which] = content
        if len(server.reviewed) > _KEPT:
            del server.reviewed[next(iter(server.reviewed))]
    return Response(content, media_type="application/json")


async def _games(server: _Server, request: Request) -> Any:
    _ = server.tables
    limits = server.limits
    body = await _body(request, limits.text, "text", "review", patience=limits.patience)
    text = requests.word(body, "text", limits.text)
    graded = body.get("review", False)
    if not isinstance(graded, bool):
        raise Refused(400, "review must be true or false", "review")
    server.games.count(_client(request))
    try:
        content = await server.review(lambda: _dumps(replay(_parse(text), graded)).encode())
    except ValueError as error:
        raise Refused(400, str(error), "text") from None
    return Response(content, media_type="application/json")


def _parse(text: str) -> RecordedGame:
    """Return a game from its text, or from a single position."""
    if text.lstrip().startswith("["):
        return parse_game(text)
    rules, state = parse_position(text)
    return RecordedGame(rules, state, np.zeros(0, np.int64), ("?",) * rules.players)


# ---------------------------------------------------------------------------------------------- sockets


def _socket_of(server: _Server) -> Callable[[WebSocket], Awaitable[None]]:
    async def endpoint(socket: WebSocket) -> None:
        try:
            await socket.accept()  # a page is not told why a handshake fails, but why a socket is closed
            with _counted(server, _client(socket)):
                await _serve(server, socket, server.tables.find(socket.path_params["table"]))
        except Refused as refused:
            await socket.close(_GONE if refused.status == 404 else _TRY_AGAIN, refused.reason)
        except (WebSocketDisconnect, TimeoutError, OSError):
            pass  # it is gone, which is its right
        except asyncio.CancelledError:
            pass  # the server is being stopped
        except RuntimeError as error:  # Starlette's for what is sent after the end
            _log.debug("a socket: %s", error)

    return endpoint


@contextlib.contextmanager
def _counted(server: _Server, client: str) -> Iterator[None]:
    """Count a socket as long as it is open.

    Raises:
        Refused: if there are too many.
    """
    limits = server.limits
    if server.sockets.total() >= limits.sockets:
        raise Refused(503, f"{limits.sockets} sockets are open, which is the most")
    if server.sockets[client] >= limits.sockets_per_address:
        raise Refused(429, f"you have {limits.sockets_per_address} sockets open, which is the most")
    server.sockets[client] += 1
    try:
        yield
    finally:
        server.sockets[client] -= 1
        server.sockets += Counter()  # forgets those without any


async def _serve(server: _Server, socket: WebSocket, table: Table) -> None:
    """Keep somebody up to date with a table, and do what it asks."""
    try:
        async with asyncio.timeout(server.limits.patience):
            hello = requests.read(await _receive(socket), "type", "key")
        if hello.get("type") != "hello":
            raise Refused(400, 'the first message must be of type "hello", with the key', "type")
        key = requests.word(hello, "key")
        viewer = server.viewer(socket, table, key)
    except TimeoutError:
        await socket.close(_IDLE, "no hello came")
        return
    except Refused as refused:
        await _send(socket, {"type": "error", **_as_json(refused)})
        await socket.close(_NOT_YOURS if refused.status == 403 else _TOO_FAST)
        return
    changed = asyncio.Event()
    table.listeners.add(changed)
    table.connected[viewer.key] += 1
    table.changed()
    both = {
        asyncio.create_task(_push(server, socket, table, key, changed)),
        asyncio.create_task(_obey(server, socket, table, key, changed)),
    }
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)  # whatever ends one of them ends the socket
        table.listeners.discard(changed)
        table.connected[viewer.key] -= 1
        table.changed()


async def _receive(socket: WebSocket) -> str:
    """Return the next message; one in bytes is as good as a text that is none."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message.get("text") or ""


async def _send(socket: WebSocket, content: dict[str, Any]) -> None:
    """Send a message; a client that takes nothing is dropped."""
    async with asyncio.timeout(_SLOW):
        await socket.send_text(_dumps(content))


async def _obey(server: _Server, socket: WebSocket, table: Table, key: str, changed: asyncio.Event) -> None:
    """Do what comes in over a socket, until it is closed."""
    rate = Rate(server.limits.messages, "messages", server.limits.messages * 3)
    tables = server.tables
    while True:
        content = await _receive(socket)
        try:
            rate.count()
            body = requests.read(content, "type", "ply", "action", "game")
            viewer = tables.viewer(table, key)
            if body.get("type") == "act":
                _take(tables, table, viewer, body)
            elif body.get("type") == "next":
                tables.next_game(table, viewer, requests.whole(body, "game"))
            else:
                raise Refused(400, "type must be act or next", "type")
        except Refused as refused:
            await _send(socket, {"type": "error", **_as_json(refused)})
            if refused.status == 429:
                await socket.close(_TOO_FAST, "too many messages")
                return
            if refused.status == 409:
                changed.set()  # it has missed something


async def _push(server: _Server, socket: WebSocket, table: Table, key: str, changed: asyncio.Event) -> None:
    """Send a view whenever something has changed and, where there is help, what it is worth."""
    game = ply = 0
    while True:
        changed.clear()
        try:
            viewer = server.tables.viewer(table, key)
        except Refused:
            await socket.close(_NOT_YOURS)  # its seat was given away
            return
        view = table.view(viewer, ply if table.number == game else 0)
        game, ply = table.number, table.ply
        await _send(socket, {"type": "view", **view})
        if table.help and table.number:
            await _push_help(server, socket, table, viewer, changed)
        await changed.wait()


async def _push_help(
    server: _Server, socket: WebSocket, table: Table, viewer: Viewer, changed: asyncio.Event
) -> None:
    """Send what the position is worth, unless something changes before that is known."""
    helping = asyncio.create_task(server.tables.help(table, viewer))
    waiting = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait({helping, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if helping.done() and not helping.exception():
            await _send(socket, {"type": "help", **helping.result()})
    finally:
        helping.cancel()
        waiting.cancel()
