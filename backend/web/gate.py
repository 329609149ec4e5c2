"""Where accounts are on: nobody gets past here without a login or a token.

Every request is stopped unless its path is in `OPEN`, so that a route or a page that is added
later is closed until somebody opens it.
"""

import hmac
import re
from contextlib import suppress
from typing import Any

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
from backend.web.entrance import SESSION_COOKIE, login_address
from backend.web.failures import refusal
from backend.web.guard import READING, same_host
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
        if scope["path"] in OPEN:
            if writes:
                refuse_other_sites(headers)
            return
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
