"""The Starlette application of `wotd serve`: routes, error responses, and the middleware (docs/reference/http.md).

The middleware checks hosts, origins and request rates, and adds security headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Match, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from wotd_env.policy import Policy
from wotd_env.rendering.cases import CASES, draw_case
from wotd_env.rendering.svg import style, symbols
from wotd_env.web import handlers
from wotd_env.web.limits import Limits, ip_of
from wotd_env.web.refused import RETRY, Refused
from wotd_env.web.server import Server, address_of, server_of
from wotd_env.web.sockets import serve_socket
from wotd_env.web.store import Store

_HERE = Path(__file__).parent
STATIC = _HERE / "static"

_RULES = sorted((_HERE / "rules").glob("*.html"))  # the rules of the game, one file for each language
_PICTURE = "image/svg+xml", "max-age=86400"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def make_app(
    store: Store,
    policies: dict[str, Policy] | None = None,
    limits: Limits | None = None,
    names: Iterable[str] = (),
    address: str | None = None,
) -> Starlette:
    """Return the application.

    `policies` are agents in addition to the standard ones. `names` are allowed host names; IP addresses and localhost
    are always allowed. `address` is the URL of the page for people on other machines, if it is known.
    """
    server = Server(store, policies or {}, limits or Limits(), address)
    app = Starlette(
        routes=[
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            _constant("/drawings.svg", symbols(), "image/svg+xml"),
            _constant("/colors.css", style(), "text/css"),
            *(_constant(f"/rules/{file.stem}", file.read_text("utf-8"), "text/html") for file in _RULES),
            *(_constant(f"/rules/pictures/{name}.svg", draw_case(name), *_PICTURE) for name in CASES),
            *handlers.ROUTES,
            WebSocketRoute("/api/tables/{table}/socket", serve_socket),
            Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
        ],
        middleware=[Middleware(_Guard, frozenset(map(str.lower, names)))],
        exception_handlers=dict.fromkeys((Refused, HTTPException, Exception), _answer),
        lifespan=server.lifespan,
    )
    app.state.server = server
    return app


def _constant(path: str, content: str, kind: str, cache: str = "no-cache") -> Route:
    return Route(path, lambda request: Response(content, media_type=kind, headers={"cache-control": cache}))


def _refusal(refused: Refused) -> JSONResponse:
    headers = {"retry-after": str(refused.wait)} if refused.wait else {}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(refused.content(), refused.status, headers)


def _methods(request: Request) -> str:
    """Return the methods that the path of a request allows; several routes can have the same path."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    here = [route for route in routes if route.matches(request.scope)[0] != Match.NONE]
    found = {method for route in here for method in route.methods or ()}
    return ", ".join(sorted(found or {"GET", "HEAD"}))  # a static file has no route of its own


async def _answer(request: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        return _refusal(error)
    if isinstance(error, HTTPException):
        code = {404: "address", 405: "method"}.get(error.status_code, "invalid")
        refusal = _refusal(Refused(error.status_code, code, reason=error.detail))
        if error.status_code == 405:
            refusal.headers["allow"] = _methods(request)
        return refusal
    answer = _refusal(Refused(500, "mistake"))
    answer.headers.update(HEADERS)  # this response does not pass through `_Guard`, which adds headers
    return answer


class _Guard:
    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                started = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                is_api = scope["path"].startswith("/api/")
                headers.setdefault("cache-control", "no-store" if is_api else "no-cache")
            await send(message)

        connection = HTTPConnection(scope)
        try:
            _check_origin(connection.headers, self._names)
            server_of(connection).requests.count(address_of(connection))
        except Refused as refused:
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send_with_headers).send_denial_response(_refusal(refused))
            else:
                await _refusal(refused)(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            if scope["type"] == "websocket" or started:
                raise
            stopped = _refusal(Refused(503, "stopping", wait=RETRY))
            await stopped(scope, receive, send_with_headers)


def _check_origin(headers: Headers, names: frozenset[str]) -> None:
    """Refuse requests to unknown host names (to prevent DNS rebinding) and requests from pages of other servers."""
    origin = headers.get("origin")
    scheme = "https" if origin and origin.startswith("https:") else "http"
    name, port = _host_of(f"{scheme}://{headers.get('host', '')}")
    if name != "localhost" and name not in names and ip_of(name) is None:
        raise Refused(403, "host", "host")
    page, page_port = _host_of(origin) if origin is not None else (name, port)
    # A proxy can omit or change the port in Host, so the port counts only without a proxy.
    if page != name or (page_port != port and name not in names):
        raise Refused(403, "origin", "origin")


def _host_of(url: str) -> tuple[str, int]:
    """Return the host name and the port of a URL; an empty name if the URL is malformed."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "", 0
