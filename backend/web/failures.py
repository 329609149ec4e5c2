"""Every failure leaves in one shape: ``{"error": {"code", "message", "field", "hint"}}``."""

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from backend.db import PASSING_FAULTS
from backend.errors import STATUSES, TooManyAttempts, Unauthorized, Unavailable, status_of
from backend.schemas import ErrorDetail, ErrorRead
from backend.web.validation import explain
from ib_core.errors import IBError

CODES = {status: kind.code for kind, status in STATUSES.items()} | {
    405: "method_not_allowed",
    408: "too_slow",
    415: "unsupported_media_type",
    422: "invalid_input",
}


def failure(
    status: int,
    code: str,
    message: str,
    *,
    field: str | None = None,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error answer."""
    detail = ErrorDetail(code=code, message=message, field=field, hint=hint)
    return JSONResponse(ErrorRead(error=detail).model_dump(), status, headers)


def refusal(error: IBError) -> JSONResponse:
    """Return the answer to a domain error."""
    return failure(
        status_of(error),
        error.code,
        error.message,
        field=error.field,
        hint=error.hint,
        headers=_headers(error),
    )


def _headers(error: IBError) -> dict[str, str] | None:
    if isinstance(error, Unavailable):
        return {"Retry-After": "5"}
    if isinstance(error, TooManyAttempts):
        return {"Retry-After": str(error.seconds)}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None


def add_failure_handlers(app: FastAPI) -> None:
    """Teach the app the one shape; faults nobody foresaw are `RequestScope`'s."""

    @app.exception_handler(IBError)
    def _domain(_: Request, error: IBError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
        problem = explain(error, request.scope.get("route"))
        return failure(
            problem.status,
            problem.code,
            problem.message,
            field=problem.field,
            hint=problem.hint,
        )

    @app.exception_handler(HTTPException)
    def _http(_: Request, error: HTTPException) -> JSONResponse:
        code = CODES.get(error.status_code, "error")
        return failure(error.status_code, code, str(error.detail), headers=error.headers)

    def _database(_: Request, __: Exception) -> JSONResponse:
        return refusal(Unavailable("The database does not answer.", hint="Try again shortly."))

    for fault in PASSING_FAULTS:
        app.add_exception_handler(fault, _database)
