"""The Starlette application of `wotd serve`: routes, middleware and shared state (docs/reference/http.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from wotd_env.policy import Policy
from wotd_env.rendering.cases import CASES, draw_case
from wotd_env.rendering.svg import style, symbols
from wotd_env.web import handlers
from wotd_env.web.guard import ERROR_HANDLERS, Guard
from wotd_env.web.limits import Limits, Refused
from wotd_env.web.server import Server
from wotd_env.web.sockets import serve_socket
from wotd_env.web.store import Store

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
"""Folder with the static files of the page, such as scripts and styles."""


def make_app(
    store: Store,
    policies: dict[str, Policy] | None = None,
    limits: Limits | None = None,
    names: Iterable[str] = (),
) -> Starlette:
    """Return the application.

    `policies` are agents in addition to the standard ones. `names` are allowed host names; IP addresses and localhost
    are always allowed.
    """
    server = Server(store, policies or {}, limits or Limits())
    app = Starlette(
        routes=[
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            Route("/drawings.svg", _constant(symbols(), "image/svg+xml")),
            Route("/colors.css", _constant(style(), "text/css")),
            Route("/rules/{language}", _rules),
            Route("/rules/pictures/{name}.svg", _picture),
            *handlers.ROUTES,
            WebSocketRoute("/api/tables/{table}/socket", serve_socket),
            Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
        ],
        middleware=[Middleware(Guard, frozenset(map(str.lower, names)))],
        exception_handlers=ERROR_HANDLERS,
        lifespan=server.lifespan,
    )
    app.state.server = server
    return app


def _constant(content: str, kind: str) -> Callable[[Request], Response]:
    """Return a handler that always responds with the same content."""
    tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:16]}"'

    def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        return Response(content, media_type=kind, headers={"etag": tag})

    return answer


def _rules(request: Request) -> Response:
    language = request.path_params["language"]
    if language not in handlers.LANGUAGES:
        raise Refused(404, f"the rules are available in {', '.join(handlers.LANGUAGES)}", "language")
    return FileResponse(_HERE / "rules" / f"{language}.html", media_type="text/html")


def _picture(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in CASES:
        raise Refused(404, f"the pictures of the rules are {', '.join(CASES)}", "name")
    return Response(draw_case(name), media_type="image/svg+xml", headers={"cache-control": "max-age=86400"})
