"""The Starlette application of `wotd serve`: routes, middleware and shared state (docs/reference/http.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from wotd_env.policy import Policy
from wotd_env.rendering.cases import CASES, draw_case
from wotd_env.rendering.svg import style, symbols
from wotd_env.web import handlers
from wotd_env.web.guard import ERROR_HANDLERS, Guard
from wotd_env.web.limits import Limits
from wotd_env.web.server import Server
from wotd_env.web.sockets import serve_socket
from wotd_env.web.store import Store

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
"""Folder with the static files of the page, such as scripts and styles."""

_RULES = sorted((_HERE / "rules").glob("*.html"))  # one file for each language
_PICTURE = "image/svg+xml", "max-age=86400"


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
            _constant("/drawings.svg", symbols(), "image/svg+xml"),
            _constant("/colors.css", style(), "text/css"),
            *(_constant(f"/rules/{file.stem}", file.read_text("utf-8"), "text/html") for file in _RULES),
            *(_constant(f"/rules/pictures/{name}.svg", draw_case(name), *_PICTURE) for name in CASES),
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


def _constant(path: str, content: str, kind: str, cache: str = "no-cache") -> Route:
    """Return the route of a path with constant content."""
    return Route(path, lambda request: Response(content, media_type=kind, headers={"cache-control": cache}))
