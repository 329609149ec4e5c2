"""Who gets in: nobody without a login where accounts are on, no other web site where they are not.

Every request is stopped unless its path is in `OPEN`, so that a route or a page that is added
later is closed until somebody opens it.
"""

import hmac
import ipaddress
import re
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.db import PASSING_FAULTS, get_engine, reading, transaction
from backend.deps import CALLER
from backend.errors import Forbidden, Unauthorized, Unavailable
from backend.schemas import CSRF_COOKIE, CSRF_HEADER
from backend.services import accounts
from backend.services.accounts import Caller
from backend.settings import Settings
from backend.web.pages import SESSION_COOKIE, login_address
from backend.web.request_scope import READING, refusal
from ib_core.errors import IBError

OPEN = frozenset({"/api/health", "/api/ready", "/api/auth/login", "/login", "/welcome"})
#: All that a token of the scope agent is good for.
CELLS = re.compile(r"/api/sweeps/[0-9]{1,19}/cells(/[0-9]{1,19})?")
#: Paths that programs ask for; a redirect to a login page would only confuse them.
NO_PAGES = ("/api", "/metrics", "/_", "/assets/", "/dashboard/")


class AccountGate:
    """Finds out who is asking, and sends strangers away."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on requests of people we know, with who they are in the scope."""
        if scope["type"] == "websocket":  # nothing of ours uses one
            return await send({"type": "websocket.close", "code": 1008, "reason": "Not here."})
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            if scope["path"] in OPEN:  # without waiting for a thread, as health must
                if scope["method"] not in READING:
                    refuse_other_sites(Headers(scope=scope))
            else:
                await to_thread.run_sync(self._admit, scope)
        except Unauthorized as error:
            return await _to_login(scope, error)(scope, receive, send)
        except IBError as error:
            return await refusal(error)(scope, receive, send)
        except PASSING_FAULTS:
            away = Unavailable("The database does not answer.", hint="Try again shortly.")
            return await refusal(away)(scope, receive, send)
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        writes = scope["method"] not in READING
        given = headers.get("authorization")
        if given is not None:  # who shows a token is judged by it alone
            scope[CALLER] = _by_token(given)
            _keep_to_cells(scope[CALLER], scope["method"], scope["path"])
            return
        key = HTTPConnection(scope).cookies.get(SESSION_COOKIE, "")
        scope[CALLER] = self._by_cookie(key)
        if writes:
            refuse_other_sites(headers)
            self._refuse_forged(headers, key)

    def _by_cookie(self, key: str) -> Caller:
        if not key:
            raise Unauthorized("Log in, or send a token.", hint="Authorization: Bearer <token>")
        with reading(get_engine()) as session:
            caller = accounts.login_caller(session, key=key, secret=self._settings.secret)
        if caller is None:
            raise Unauthorized("This login has ended; log in again.")
        return caller

    def _refuse_forged(self, headers: Headers, key: str) -> None:
        wanted = accounts.csrf_token(key, secret=self._settings.secret)
        if not hmac.compare_digest(wanted.encode(), headers.get(CSRF_HEADER, "").encode()):
            raise Forbidden(
                "This request does not prove that it comes from a page of ours.",
                hint=f"Send the cookie {CSRF_COOKIE} also as the header {CSRF_HEADER}, "
                "or use a token.",
            )


def _keep_to_cells(caller: Caller, method: str, path: str) -> None:
    """Refuse a token for agents everything but cells, whatever is added elsewhere later."""
    if caller.scope == "agent" and not (method == "POST" and CELLS.fullmatch(path)):
        raise Forbidden(
            "This token may report on its owner's cells, and nothing else.",
            hint="POST /api/sweeps/{sweep_id}/cells claims one.",
        )


def document_tokens(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI document that says which calls take a token: all but the open ones."""
    parts = document.setdefault("components", {})
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in OPEN & document["paths"].keys():
        for operation in document["paths"][path].values():
            operation["security"] = []
    return document


def _by_token(header: str) -> Caller:
    kind, _, text = header.partition(" ")
    if kind.lower() != "bearer":
        raise Unauthorized(
            "Only bearer tokens are taken here.", hint="Authorization: Bearer <token>"
        )
    with reading(get_engine()) as session:
        caller = accounts.token_caller(session, text=text.strip())
        unnoted = caller is not None and accounts.token_use_is_due(
            session, token_id=caller.token_id or 0
        )
    if caller is None:
        raise Unauthorized("This token is unknown, expired or revoked.")
    if unnoted:
        with suppress(*PASSING_FAULTS), transaction(get_engine()) as session:
            accounts.note_token_use(session, token_id=caller.token_id or 0)
    return caller


def refuse_other_sites(headers: Headers) -> None:
    """Refuse what a browser says was sent by a page of another site.

    Where the browser says nothing about it, the origin must be this host; a browser that is so
    old always names the origin, and what is not a browser has no cookies to abuse.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None:
        own = origin is None or same_host(origin, headers.get("host", ""))
    else:
        own = site in ("same-origin", "none")
    if not own:
        raise Forbidden(
            f"Writes from other web sites are refused; this one came from {origin or site!r}.",
            hint="Use Etascope's own pages, or a token.",
        )


def _to_login(scope: Scope, error: Unauthorized) -> Response:
    """Answer a stranger: a person gets the login page, a program the reason."""
    path, wanted = scope["path"], Headers(scope=scope).get("accept", "")
    if scope["method"] in READING and "text/html" in wanted and not path.startswith(NO_PAGES):
        query = scope.get("query_string", b"").decode("latin-1")
        return RedirectResponse(login_address(f"{path}?{query}" if query else path), 303)
    return refusal(error)


#: A name or an address and a port: what else an address may hold could hide another name.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


class LocalGuard:
    """Refuses foreign `Host` headers, and whatever pages of other sites ask of the API.

    A page of another site can make the browser send requests to a loopback address. It cannot
    read answers, but it could write, and keep us busy with reads that cost time; and by pointing
    its own name at 127.0.0.1 it could also read. The first shows in `Origin` and
    `Sec-Fetch-Site`, the second in `Host`. Pages may be linked to from everywhere;
    what only our own pages ask for may not.
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
    if reads and not scope["path"].startswith(NO_PAGES):
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
