"""What surrounds every request: an id, a duration, and a last net for faults nobody foresaw."""

import logging
import re
import time
from collections.abc import Callable
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.logs import about
from backend.web.failures import failure
from backend.web.guard import READING
from backend.web.monitoring import Monitor

log = logging.getLogger("etascope.web")

REQUEST_ID = "X-Request-ID"
#: Answers are what they say they are, in no other site's frame, and links tell where from to none.
SAFER = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


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
