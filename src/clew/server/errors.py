"""Error responses: one shape for all errors, each with a fitting status."""

import logging
import math
from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from clew.diagnostics import ClewError, EngineBug, Nature, TransientFailure, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.captures import CAPTURE_ACCESS_DENIED, CAPTURE_EXPIRED, CAPTURE_NOT_READY
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from clew.diagnostics.codes.engine import STORAGE_UNAVAILABLE
from clew.diagnostics.codes.questions import CALLER_GONE, TOO_MANY_QUESTIONS
from clew.diagnostics.codes.runs import (
    CAPTURES_WAITING,
    OUT_OF_DATE,
    OVERLOADED,
    PERIOD_BUSY,
    PROJECT_NOT_ACTIVE,
    REQUEST_ID_TAKEN,
    RUN_DELETED,
    RUN_HELD,
    RUN_NEEDED,
    RUN_NOT_DELETABLE,
)
from clew.diagnostics.codes.server import (
    FORBIDDEN,
    FORGED_REQUEST,
    ID_TOKEN_REFUSED,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NO_GROUP_WITH_ROLE,
    NO_SUCH_ADDRESS,
    NOT_SIGNED_IN,
    PROJECT_CHANGED,
    TOO_LARGE,
    TOO_MANY_ATTEMPTS,
    TOO_MANY_STREAMS,
    TOO_SLOW,
    UNKNOWN_HOST,
)
from clew.diagnostics.codes.trace import COLUMN_NOT_VISIBLE, RUN_NOT_FINISHED
from clew.diagnostics.codes.tracelink import NODE_ID_TAKEN, NODE_LEASE_LOST
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.server.settings import ServerSettings

_log = logging.getLogger(__name__)

_STATUS_OF_CODE: Mapping[str, int] = {
    code.name: status
    for code, status in (
        (NOT_SIGNED_IN, 401),
        (ID_TOKEN_REFUSED, 401),
        (FORBIDDEN, 403),
        (NO_GROUP_WITH_ROLE, 403),
        (COLUMN_NOT_VISIBLE, 403),
        (FORGED_REQUEST, 403),
        (CAPTURE_ACCESS_DENIED, 403),
        (METHOD_NOT_ALLOWED, 405),
        (TOO_SLOW, 408),
        (OUT_OF_DATE, 409),
        (PERIOD_BUSY, 409),
        (REQUEST_ID_TAKEN, 409),
        (PROJECT_NOT_ACTIVE, 409),
        (PROJECT_CHANGED, 409),
        (RUN_HELD, 409),
        (CAPTURES_WAITING, 409),
        (RUN_NEEDED, 409),
        (RUN_NOT_DELETABLE, 409),
        (RUN_NOT_FINISHED, 409),
        (CAPTURE_NOT_READY, 409),
        (NODE_ID_TAKEN, 409),
        (NODE_LEASE_LOST, 409),
        (RUN_DELETED, 410),
        (CAPTURE_EXPIRED, 410),
        (TOO_LARGE, 413),
        (UNKNOWN_HOST, 421),
        (INVALID_REQUEST, 422),
        (OVERLOADED, 429),
        (TOO_MANY_ATTEMPTS, 429),
        (TOO_MANY_QUESTIONS, 429),
        (TOO_MANY_STREAMS, 429),
        (CALLER_GONE, 499),
        (STORAGE_UNAVAILABLE, 503),
    )
}
_STATUS_OF_NATURE = {Nature.WRONG: 422, Nature.USAGE: 400, Nature.NOT_FOUND: 404}
_COME_BACK_S = 5
"""When a caller may retry after a transient failure."""


def status_of(error: ClewError) -> int:
    """The status of the response to an error."""
    if error.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[error.code]
    match error:
        case EngineBug():
            return 500
        case TransientFailure():
            return 503
        case _:
            return _STATUS_OF_NATURE[CATALOGUE[error.code].nature]


def headers_of(error: ClewError) -> dict[str, str]:
    """The headers of the response: when to retry, how to sign in."""
    status = status_of(error)
    if status in {429, 503}:
        seconds = error.diagnostic.params.get("retry_after_s", _COME_BACK_S)
        return {"Retry-After": str(max(1, math.ceil(float(str(seconds)))))}
    if status in {408, 413}:
        # The rest of the body is not read, so the connection cannot be reused.
        return {"Connection": "close"}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def json_answer(error: ClewError) -> JSONResponse:
    """An error as every route of the API reports it."""
    return JSONResponse(error.to_json(), status_of(error), headers_of(error))


def as_clew_error(error: Exception, request: Request) -> ClewError:
    """Any exception, as an error of Clew."""
    settings: ServerSettings = request.app.state.settings
    match error:
        case ClewError():
            return error
        case OutOfReach():
            return unavailable(error)
        case RequestValidationError():
            return UserError(*(INVALID_REQUEST.anywhere(problem=_in_words(each)) for each in error.errors()))
        case HTTPException(status_code=404):
            return UserError(NO_SUCH_ADDRESS.anywhere(path=request.url.path))
        case HTTPException(status_code=405):
            return UserError(METHOD_NOT_ALLOWED.anywhere(path=request.url.path, method=request.method))
        case HTTPException(status_code=408):
            return UserError(TOO_SLOW.anywhere(seconds=int(settings.slowest_body_s)))
        case HTTPException(status_code=413):
            return UserError(TOO_LARGE.anywhere(limit=settings.largest_body))
        case HTTPException():
            return UserError(INVALID_REQUEST.anywhere(problem=str(error.detail)))
        case _:
            return EngineBug(INTERNAL_ERROR.anywhere(problem=type(error).__name__))


def _in_words(problem: Mapping[str, object]) -> str:
    place = problem.get("loc")
    where = ".".join(str(part) for part in place) if isinstance(place, tuple) else ""
    message = str(problem.get("msg", "is wrong"))
    return f"{where}: {message[:1].lower()}{message[1:]}"


def is_for_programs(request: Request) -> bool:
    """Whether to answer with JSON: for the API, for `.json`, and for clients that do not accept HTML."""
    path = request.url.path
    return path.startswith("/api/") or path.endswith(".json") or "text/html" not in request.headers.get("accept", "")


async def answer_to(request: Request, error: Exception) -> Response:
    """The response to an error: a document for programs, a page for people."""
    known = as_clew_error(error, request)
    if status_of(known) >= 500:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    answer: Response = json_answer(known) if is_for_programs(request) else request.app.state.error_page(request, known)
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})
    return answer


def handle_errors(app: FastAPI) -> None:
    """Turn errors of routes into error responses. Unexpected ones are left to `LastResort`."""
    for kind in (ClewError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_to)
