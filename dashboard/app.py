"""Puts the dashboard onto a FastAPI app: `create_dash_app(server)`; Dash's own routes inside ours.

Of those only callbacks that exist are left, and scripts are packed once. Dash adds its layer
outermost, where it would read any body whole, before anybody has asked who sends it and how much;
and it answers what it cannot read with a 500.
"""

import asyncio
import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dash.backends._fastapi import DashMiddleware
from dash.exceptions import PreventUpdate
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.client import ApiError, ServerAway, calls
from backend.schemas import CSRF_COOKIE, CSRF_HEADER, ErrorDetail, ErrorRead
from dashboard import pages, router
from dashboard.api_client import Cache, Sender, connect, in_process_client
from dashboard.components import goes_on
from dashboard.dash_blocks import Dash, register_all, report
from dashboard.figures import light_twins

HERE = Path(__file__).parent
#: The page's frame, and in it what a picture on paper has for every colour of the dark scheme.
INDEX = (HERE / "index.html").read_text("utf-8").replace("TWINS", json.dumps(light_twins()))
#: A page asks about the studies its visitor saw running; more than these are not remembered.
MOST_STUDIES = 10
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def create_dash_app(server: FastAPI, client: Sender | None = None) -> Any:
    """Serve the dashboard's pages from `server`.

    Call it after the API's own routes are there, its `/api` fallback included: Dash answers every
    path that is left.

    Args:
        server: The app to add pages to.
        client: What the pages ask for numbers; None: the API that `server` itself serves.
    """
    connect(server, client or in_process_client(server))
    add_pulse(server, client or server.state.dashboard_client)
    app = Dash(
        "dashboard",
        server=server,
        assets_folder=str(HERE / "assets"),
        assets_path_ignore=["pdf"],  # fetched with the first PDF that somebody wants
        title="Etascope",
        update_title="",
        index_string=INDEX,
        suppress_callback_exceptions=True,  # pages come and go
        on_error=report,
        add_log_handler=False,
        csrf_token_name=CSRF_COOKIE,
        csrf_header_name=CSRF_HEADER,
    )
    _without_websockets(app, server)
    app.layout = router.page_shell(pages.PAGES)
    router.route(app, pages.PAGES)
    register_all(app)
    # Dash would do this on the first request to "/", and serve a deep link before without assets.
    app._setup_server()
    app.index_string = _only_these_scripts(app)
    keep_scripts_packed(server)
    put_inside(server, app)
    return app


def _only_these_scripts(app: Any) -> str:
    """Return the page's frame with the hashes of its inline scripts instead of leave for any.

    Styles stay free: Dash and Mantine write them as they draw, and a style runs nothing.
    """
    own = INLINE_SCRIPT.findall(INDEX)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
    allowed = " ".join([*app.csp_hashes(), *(f"'sha256-{one}'" for one in hashes)])
    return INDEX.replace("script-src 'self' 'unsafe-inline'", f"script-src 'self' {allowed}")


def _without_websockets(app: Any, server: FastAPI) -> None:
    """Close Dash's second way in: no callback of ours needs it, and each browser would hold one."""
    app.backend.websocket_capability = False
    path = f"{app.config.routes_pathname_prefix}_dash-ws-callback"
    server.router.routes[:] = [
        route for route in server.router.routes if getattr(route, "path", None) != path
    ]


def add_pulse(server: FastAPI, client: Sender) -> None:
    """Add what every open page asks now and then: does the API answer, and have studies ended?"""

    @server.get("/dashboard/pulse", include_in_schema=False)
    async def pulse(request: Request, studies: str = "") -> Response:
        """Answer which of the studies have ended; 503 if the API does not answer."""
        wanted = [int(one) for one in studies.split(",") if one.isdecimal() and len(one) < 19]
        try:
            await client.send(calls.health())
            found = [await _ended(client, request, one) for one in wanted[:MOST_STUDIES]]
        except ServerAway:
            return Response(status_code=503)
        return JSONResponse({"ended": [one for one in found if one]})


async def _ended(client: Sender, request: Request, study_id: int) -> dict[str, Any] | None:
    """Return a study's name and state if it has ended, None while it runs.

    One that its visitor may not see (any more) has ended for them, without a word about it.
    """
    cookies = {"Cookie": request.headers["cookie"]} if "cookie" in request.headers else {}
    call = calls.study(study_id)
    try:
        study = await client.send(replace(call, headers={**call.headers, **cookies}))
    except ApiError:
        return {"id": study_id, "name": None, "state": None}
    if goes_on(study):
        return None
    return {"id": study.id, "name": study.name, "state": str(study.state)}


# --- Dash's own routes, put inside ours: only callbacks that exist, and scripts packed once


CALLBACKS = "/_dash-update-component"
SCRIPTS = "/_dash-component-suites/"
#: Components in components, as a callback's state may hold them.
MOST_DEPTH = 200
#: What the body's limits answer with, by the API's names.
CODES = {408: "too_slow", 413: "too_large", 503: "unavailable"}
#: Below this many bytes packing gains nothing.
SMALLEST = 1000
LEVEL = 6
#: There are some fifty scripts; any text may stand for their version, so their names have no end.
MOST_SCRIPTS = 200

Packed = tuple[list[tuple[bytes, bytes]], bytes]


def put_inside(server: FastAPI, app: Any) -> None:
    """Let Dash's layer be the innermost, behind a guard that knows the app's callbacks."""
    layers = server.user_middleware
    own = [layer for layer in layers if layer.cls is DashMiddleware]
    inner = [Middleware(_Inner, *layer.args, **layer.kwargs) for layer in own]
    others = [layer for layer in layers if layer.cls is not DashMiddleware]
    layers[:] = [*others, Middleware(CallbackGuard, dash_app=app), *inner]


class _Inner(DashMiddleware):  # type: ignore[misc]
    """Dash's layer, but for faults: they are for whoever logs them and answers in one shape."""

    async def _handle_error(self, error: Exception, *given: Any) -> None:
        if not isinstance(error, PreventUpdate):
            raise error
        await super()._handle_error(error, *given)


class CallbackGuard:
    """Refuses what no page of ours sends."""

    def __init__(self, app: ASGIApp, *, dash_app: Any) -> None:
        self._app = app
        self._dash = dash_app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on callbacks that exist and scripts that do."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path.startswith(SCRIPTS):
            await self._script(scope, receive, send)
        elif scope["type"] == "http" and path == CALLBACKS and scope["method"] == "POST":
            await self._callback(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _script(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:  # Dash raises for whatever is no file of a package it serves
            if begun:
                raise
            await _failure(404, "not_found", "There is no such script.")(scope, receive, send)

    async def _callback(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: Response | None = None
        body = b""
        try:
            body = await Request(scope, receive).body()
        except HTTPException as error:  # too large, or too slow
            code = CODES.get(error.status_code, "error")
            answer = _failure(error.status_code, code, str(error.detail), error.headers)
        else:
            reason = self._objection(body)
            if reason is not None:
                answer = _failure(400, "bad_request", f"This is no callback of ours: {reason}.")
        if answer is not None:
            return await answer(scope, receive, send)
        read = False

        async def again() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    def _objection(self, body: bytes) -> str | None:
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return "the body is not JSON"
        if not isinstance(asked, dict) or _too_deep(asked):
            return "the body is no object, or nested too deep"
        output = asked.get("output")
        known = self._dash.callback_map.get(output) if isinstance(output, str) else None
        if known is None:
            return "there is none with this output"
        if not isinstance(asked.get("outputs"), dict | list):
            return "outputs is missing"
        changed = asked.get("changedPropIds", [])
        if not isinstance(changed, list) or not all(isinstance(one, str) for one in changed):
            return "changedPropIds is a list of names"
        for name in ("inputs", "state"):
            if not _fits(asked.get(name, []), known[name]):
                return f"{name} is not what this one takes"
        return None


def _failure(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error in the API's shape."""
    detail = ErrorDetail(code=code, message=message, field=None, hint=None)
    return JSONResponse(ErrorRead(error=detail).model_dump(), status, headers)


def _fits(given: Any, declared: list[dict[str, Any]]) -> bool:
    """Return whether arguments are those that a callback declares, in order."""
    return (
        isinstance(given, list)
        and len(given) == len(declared)
        and all(_is(one, wanted) for one, wanted in zip(given, declared, strict=True))
    )


def _is(one: Any, wanted: dict[str, Any]) -> bool:
    if str(wanted["id"]).startswith("{"):  # as many as there are, or the one that matches
        members = one if isinstance(one, list) else [one]
        return all(isinstance(m, dict) and isinstance(m.get("id"), dict) for m in members)
    if not isinstance(one, dict):
        return False
    return (one.get("id"), one.get("property")) == (wanted["id"], wanted["property"])


def _too_deep(value: Any) -> bool:
    layer = [value]
    for _ in range(MOST_DEPTH):
        layer = [
            inner
            for one in layer
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return False
    return True


def keep_scripts_packed(server: FastAPI) -> None:
    """Let an app answer for its scripts from memory; packing plotly alone takes 0.2 s.

    Only the route itself is wrapped: whatever guards the app still does.
    """
    for route in server.router.routes:
        if str(getattr(route, "path", "")).startswith(SCRIPTS):
            route.app = PackedOnce(route.app)  # type: ignore[attr-defined]


class _NotToPack(Exception):
    """An answer to send as it is: none, or a short one."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__()
        self.messages = messages


class PackedOnce:
    """Keeps an app's whole answers, packed, by path: what changes has another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._packed: Cache[Packed] = Cache(MOST_SCRIPTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory what was answered before."""
        asked = Headers(scope=scope)
        if "gzip" not in asked.get("accept-encoding", "") or "if-none-match" in asked:
            return await self._app(scope, receive, send)
        try:
            headers, content = await self._packed.get(
                scope["path"], None, lambda: self._pack(scope, receive)
            )
        except _NotToPack as answer:
            for message in answer.messages:
                await send(message)
            return None
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _pack(self, scope: Scope, receive: Receive) -> Packed:
        messages = await self._answer(scope, receive)
        body = b"".join(message.get("body", b"") for message in messages[1:])
        if messages[0]["status"] != 200 or len(body) < SMALLEST:
            raise _NotToPack(messages)
        return await _packed(messages[0], body)

    async def _answer(self, scope: Scope, receive: Receive) -> list[Message]:
        messages: list[Message] = []

        async def note(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive, note)
        return messages


async def _packed(start: Message, body: bytes) -> Packed:
    content: Any = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(content))
    headers.add_vary_header("Accept-Encoding")
    return headers.raw, content
