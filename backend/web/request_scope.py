"""What surrounds every request: an id, a duration, numbers for Prometheus, and how it fails.

Every failure leaves in one shape: ``{"error": {"code", "message", "field", "hint"}}``.
"""

import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.db import PASSING_FAULTS, reason
from backend.errors import STATUSES, Conflict, TooManyAttempts, Unauthorized, Unavailable, status_of
from backend.schemas import ErrorDetail, ErrorRead
from backend.services.shards import Counts
from backend.settings import about
from ib_core.errors import IBError

CODES = {status: kind.code for kind, status in STATUSES.items()} | {
    405: "method_not_allowed",
    408: "too_slow",
    415: "unsupported_media_type",
    422: "invalid_input",
}
LONGEST_INPUT = 80
#: Fields whose value is never repeated: answers end up in logs.
UNSPEAKABLE = frozenset({"password", "current", "new"})


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
    # What it repeats may hold half a character, which JSON can say and no answer can.
    message = message.encode("utf-8", "replace").decode()
    field = field and field.encode("utf-8", "replace").decode()
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
            problem.status, problem.code, problem.message, field=problem.field, hint=problem.hint
        )

    @app.exception_handler(HTTPException)
    def _http(_: Request, error: HTTPException) -> JSONResponse:
        code = CODES.get(error.status_code, "error")
        return failure(error.status_code, code, str(error.detail), headers=error.headers)

    def _database(_: Request, __: Exception) -> JSONResponse:
        return refusal(Unavailable("The database does not answer.", hint="Try again shortly."))

    @app.exception_handler(IntegrityError)
    def _deleted_meanwhile(_: Request, error: IntegrityError) -> JSONResponse:
        if "foreign key" not in reason(error).lower():
            raise error
        return refusal(Conflict("What this is about, or whose it is, was deleted at this moment."))

    for fault in PASSING_FAULTS:
        app.add_exception_handler(fault, _database)


class ApiFallback:
    """Matches whatever no route took, so that the dashboard never answers for the API."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes = [
            route for router in routers for route in router.routes if isinstance(route, Route)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 405 with every method the path has, or 404."""
        allowed = self.allowed(scope)
        path, method = scope["path"], scope["method"]
        if allowed:
            names = ", ".join(allowed)
            answer = failure(
                405,
                "method_not_allowed",
                f"{path} does not take {method}; it takes {names}.",
                headers={"Allow": names},
            )
        else:
            answer = failure(
                404, "not_found", f"There is nothing at {path}.", hint="See /api/docs for what is."
            )
        await answer(scope, receive, send)

    def allowed(self, scope: Scope) -> list[str]:
        """Return the methods of all routes on this path: each route knows only its own."""
        methods: set[str] = set()
        for route in self._routes:
            if route.path_regex.match(scope["path"]):
                methods |= route.methods or set()
        return sorted(methods)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a request."""

    status: int
    code: str
    message: str
    field: str | None = None
    hint: str | None = None


def explain(error: RequestValidationError, route: Any = None) -> Problem:
    """Return the most telling of the findings.

    A value that fits no member of a union yields one finding per member; the one that got deepest
    into the value is about the member that was meant.
    """
    finding = max(error.errors(), key=lambda found: len(found["loc"]))
    kind, where = str(finding["type"]), tuple(finding["loc"])
    if kind == "json_invalid":
        reason = finding.get("ctx", {}).get("error", "")
        return Problem(
            400, "bad_request", f"The body is not JSON: {reason} at character {where[-1]}."
        )
    if where == ("body",):
        return _whole_body(kind, finding.get("input"))
    field = _path(where, error.body, named=kind in ("missing", "extra_forbidden"))
    if kind == "missing":
        return Problem(422, "invalid_input", f"{field} is needed.", field)
    if kind == "extra_forbidden":
        return _unknown_field(field, where, route)
    secret = str(where[-1]) in UNSPEAKABLE
    given = "" if secret else f"; got {_shown(finding.get('input'))}"
    message = f"{_sentence(field, str(finding['msg']))}{given}."
    return Problem(422, "invalid_input", message, field)


def _whole_body(kind: str, given: Any) -> Problem:
    if kind == "missing":
        return Problem(422, "invalid_input", "A JSON body is needed.", "body")
    hint = "Send it with the header Content-Type: application/json."
    return Problem(
        422,
        "invalid_input",
        f"The body must be a JSON object; got {_shown(given)}.",
        "body",
        hint if isinstance(given, bytes) else None,
    )


def _path(where: Sequence[Any], body: Any, *, named: bool) -> str:
    """Return the dotted path of a finding, without the union members pydantic puts into it."""
    source, *rest = where
    if source != "body":
        return ".".join(map(str, rest)) or str(source)
    parts: list[str] = []
    value = body
    for index, part in enumerate(rest):
        last = index == len(rest) - 1
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = value[part]
        elif not (named and last):
            continue
        parts.append(str(part))
    return ".".join(parts) or "body"


def _sentence(field: str, found: str) -> str:
    openings = {"Input should ": "should ", "String should ": "should ", "List should ": "should "}
    for opening, verb in (openings | {"Value error, ": "should be "}).items():
        if found.startswith(opening):
            return f"{field} {verb}{found.removeprefix(opening)}"
    return f"{field}: {found}"


def _unknown_field(field: str, where: Sequence[Any], route: Any) -> Problem:
    known = _known_fields(where, route)
    message = f"There is no field {field!r}."
    if known:
        message += f" Known: {', '.join(known)}."
    return Problem(422, "invalid_input", message, field)


def _known_fields(where: Sequence[Any], route: Any) -> list[str]:
    """Return what may stand at the top of the body or in the query."""
    if len(where) != 2 or not isinstance(route, APIRoute):
        return []
    fields = [route.body_field] if where[0] == "body" else route.dependant.query_params
    for field in fields:
        model = field.field_info.annotation if field else None
        if isinstance(model, type) and issubclass(model, BaseModel):
            return [info.alias or name for name, info in model.model_fields.items()]
    return []


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes that were not marked as JSON"
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    text = repr(value)
    return text if len(text) <= LONGEST_INPUT else f"{text[:LONGEST_INPUT]}..."


# --- Around a request: its id, its time, and the last net

log = logging.getLogger("etascope.web")

REQUEST_ID = "X-Request-ID"
#: Answers are what they say they are, in no other site's frame, and links tell where from to none.
SAFER = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: Requests that change nothing.
READING = ("GET", "HEAD", "OPTIONS")
#: Anybody can invent others, and every label is kept for ever.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)


class Monitor(Collector):
    """One app's numbers; apps in one process (tests) do not share them."""

    def __init__(self, count: Callable[[], Counts]) -> None:
        """Start empty.

        Args:
            count: Reads the database; called once for every scrape.
        """
        self._count = count
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "etascope_request_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Note a request, by its route: paths hold ids, and those are endless."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(method, route, str(status or "none")).observe(seconds)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Metric]:
        """Name nothing beforehand: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield what the database knows."""
        counts = self._count()
        yield _gauge("etascope_queue_depth", "Shards that wait.", "queue", counts.waiting)
        yield _gauge("etascope_shards", "Shards by state.", "state", counts.shards)
        yield _gauge("etascope_trials", "Trials by state.", "state", counts.trials)
        yield _gauge(
            "etascope_shard_seconds", "Mean time of recent shards.", "device", counts.shard_seconds
        )
        now = time.time()
        ages = {name: max(0.0, now - beat) for name, beat in counts.heartbeats.items()}
        yield _gauge(
            "etascope_worker_heartbeat_age_seconds", "Since a worker's last sign.", "worker", ages
        )
        yield _gauge("etascope_workers", "Workers by state.", "state", counts.workers)


def _gauge(name: str, text: str, label: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family


class RequestScope:
    """Outermost of our layers."""

    def __init__(self, app: ASGIApp, *, monitor: Monitor) -> None:
        self._app = app
        self._monitor = monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request, time it, and answer 500 without a traceback if it breaks."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        given = Headers(scope=scope).get(REQUEST_ID.lower(), "")
        request_id = given if _SANE_ID.fullmatch(given) else uuid4().hex
        started, status = time.perf_counter(), 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in SAFER.items():
                    headers[name] = value
            await send(message)

        with about(request_id=request_id):
            try:
                await self._answer(scope, receive, named, lambda: status, request_id)
            finally:
                seconds = time.perf_counter() - started
                self._monitor.observe(scope, status, seconds)
                level = logging.DEBUG if scope["method"] in READING else logging.INFO
                log.log(level, "%s %d %.0f ms", _asked(scope), status, seconds * 1000)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        status: Callable[[], int],
        request_id: str,
    ) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception:
            log.exception("request %s failed: %s", request_id, _asked(scope))
            if status():  # too late to say anything; the server must cut the connection
                raise
            answer = failure(
                500,
                "internal",
                "Something went wrong here; it is in the server's log.",
                hint=f"Look for request {request_id}.",
            )
            await answer(scope, receive, send)


def _asked(scope: Scope) -> str:
    """Return a request as it is logged.

    Without the query, which may hold what nobody but the asker should know, and with the path as
    it was sent: a decoded one could hold a line's end, and the line after it would be a lie.
    """
    path = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    return f"{scope['method']} {path.decode('ascii', 'backslashreplace')}"
