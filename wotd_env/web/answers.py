"""Responses: JSON, errors, and protective headers."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wotd_env.web.limits import Refused

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Headers of every response."""


def error_body(refused: Refused) -> dict[str, Any]:
    """Return the JSON of a refusal."""
    return {"error": refused.reason, "field": refused.field, "status": refused.status}


def refusal(refused: Refused) -> JSONResponse:
    """Return the response for a refusal."""
    headers = {"retry-after": str(refused.wait)} if refused.wait else None
    return JSONResponse(error_body(refused), refused.status, headers)


async def _answer(request: Request, error: Exception) -> Response:
    """Return the response for an exception."""
    if isinstance(error, Refused):
        return refusal(error)
    if isinstance(error, HTTPException):
        reasons = {404: "there is nothing at this address", 405: "this address takes another method"}
        return refusal(Refused(error.status_code, reasons.get(error.status_code, error.detail)))
    answer = refusal(Refused(500, "the server has made a mistake; your games are not affected"))
    answer.headers.update(HEADERS)  # an unexpected exception bypasses the middleware
    return answer


HANDLERS: Any = dict.fromkeys((Refused, HTTPException, Exception), _answer)
"""Starlette's exception handlers."""
