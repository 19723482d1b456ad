"""Middleware that checks hosts, origins and request rates, and adds security headers; handlers for errors."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from wotd_env.web.limits import RETRY, Refused, ip_of
from wotd_env.web.server import address_of, server_of

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Security headers of every response."""


def error_body(refused: Refused) -> dict[str, Any]:
    """Return the JSON object that tells a client why its request is refused."""
    return {"error": refused.reason, "field": refused.field, "status": refused.status}


def refusal(refused: Refused) -> JSONResponse:
    """Return the HTTP response to a refused request."""
    headers = {"retry-after": str(refused.wait)} if refused.wait else None
    return JSONResponse(error_body(refused), refused.status, headers)


async def _answer(request: Request, error: Exception) -> Response:
    """Return the HTTP response to a request that has raised an exception."""
    if isinstance(error, Refused):
        return refusal(error)
    if isinstance(error, HTTPException):
        reasons = {404: "there is nothing at this address", 405: "this address takes another method"}
        return refusal(Refused(error.status_code, reasons.get(error.status_code, error.detail)))
    answer = refusal(Refused(500, "the server has made a mistake; your games are not affected"))
    answer.headers.update(HEADERS)  # this response does not pass through `Guard`, which adds headers
    return answer


ERROR_HANDLERS: Any = dict.fromkeys((Refused, HTTPException, Exception), _answer)
"""The exception handlers for Starlette."""


class Guard:
    """Refuses unknown host names, requests from pages of other servers, and too many requests; adds `HEADERS`.

    `names` are the allowed host names, in lower case. IP addresses and localhost are always allowed.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a socket."""
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
                await WebSocket(scope, receive, send_with_headers).send_denial_response(refusal(refused))
            else:
                await refusal(refused)(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            if scope["type"] == "websocket" or started:
                raise
            stopped = refusal(Refused(503, "the server is being stopped", wait=RETRY))
            await stopped(scope, receive, send_with_headers)


def _check_origin(headers: Headers, names: frozenset[str]) -> None:
    """Refuse unknown host names, against DNS rebinding, and requests from pages of other servers."""
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if name != "localhost" and name not in names and ip_of(name) is None:
        raise Refused(403, "this host name is not allowed; the operator can add it with --name", "host")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Refused(403, "requests from pages of other servers are not allowed", "origin")
