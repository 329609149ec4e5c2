"""Keeps other web sites out of an installation that has no login."""

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.errors import Forbidden
from backend.web.failures import refusal

READING = ("GET", "HEAD", "OPTIONS")


class LocalGuard:
    """Refuses foreign `Host` headers and cross-origin writes.

    A page of another site can make the browser send requests to a loopback address. It cannot
    read answers, but it could write; and by pointing its own name at 127.0.0.1 it could also
    read. The first shows in `Origin` and `Sec-Fetch-Site`, the second in `Host`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is not foreign."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        reason = objection(scope)
        if reason is None:
            return await self._app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008, "reason": reason.message})
        await refusal(reason)(scope, receive, send)


def objection(scope: Scope) -> Forbidden | None:
    """Return why a request is foreign, or None."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if not is_loopback(host):
        return Forbidden(
            f"This installation has no login and answers on this machine only; got Host {host!r}.",
            hint="Use http://127.0.0.1, or turn accounts on with ETASCOPE_AUTH=on.",
        )
    if scope["type"] == "http" and scope["method"] in READING:
        return None
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site in ("cross-site", "same-site") or (origin is not None and not _same(origin, host)):
        return Forbidden(
            f"Writes from other web sites are refused; this one came from {origin or site!r}.",
            hint="Use Etascope's own pages, or a client that is not a browser.",
        )
    return None


def is_loopback(host: str) -> bool:
    """Return whether a `Host` header names this machine's loopback interface."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _same(origin: str, host: str) -> bool:
    return urlsplit(origin).netloc.lower() == host.lower()
