"""Keeps other web sites out of an installation that has no login."""

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.errors import Forbidden
from backend.web.failures import refusal

READING = ("GET", "HEAD", "OPTIONS")
#: A name or an address and a port: what else an address may hold could hide another name.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


class LocalGuard:
    """Refuses foreign `Host` headers, and whatever pages of other sites ask of the API.

    A page of another site can make the browser send requests to a loopback address. It cannot
    read answers, but it could write, and keep us busy with reads that cost time; and by pointing
    its own name at 127.0.0.1 it could also read. The first shows in `Origin` and
    `Sec-Fetch-Site`, the second in `Host`. Pages may be linked to from everywhere.
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
    reads = scope["type"] == "http" and scope["method"] in READING
    if reads and not scope["path"].startswith(("/api/", "/metrics")):
        return None
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site in ("cross-site", "same-site") or (origin is not None and not same_host(origin, host)):
        return Forbidden(
            f"Requests of other web sites are refused; this one came from {origin or site!r}.",
            hint="Use Etascope's own pages, or a client that is not a browser.",
        )
    return None


def is_loopback(host: str) -> bool:
    """Return whether a `Host` header names this machine's loopback interface."""
    if not _HOST.fullmatch(host):
        return False
    name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def same_host(origin: str, host: str) -> bool:
    """Return whether a page of this origin is one of ours."""
    return origin.lower().partition("://")[2] == host.lower()
