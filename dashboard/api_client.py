"""The dashboard's only way to numbers: calls of the API, as the person at the browser."""

from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

import dash
import httpx
from fastapi import FastAPI

from backend.client import ApiError, AsyncClient, ServerAway
from backend.client.calls import Call
from backend.schemas import (
    CSRF_HEADER,
    DifferenceKind,
    DifferencesRead,
    Metric,
    Reducer,
)
from dashboard.markup import get_app

T = TypeVar("T")

#: What asking can end in besides an answer; each is a sentence for a person.
Trouble = (ApiError, ServerAway)

#: Besides cookies, what of a browser's request tells the API whose it is.
HANDED_ON = ("Authorization", CSRF_HEADER)


class Sender(Protocol):
    """Whatever sends calls: a client, or a test's stand-in."""

    async def send(self, call: Call[T]) -> T:
        """Make a call and return its answer."""
        ...


def connect(server: FastAPI, client: Sender) -> None:
    """Give an app the client its pages ask."""
    server.state.dashboard_client = client


def in_process_client(api: Any) -> AsyncClient:
    """Return a client that talks to an API in this process, without any network."""
    return AsyncClient(app=api)


def api_address() -> str:
    """Return where a browser reaches the API: on this very server unless the app says otherwise."""
    return str(getattr(get_app().server.state, "api_address", ""))


async def ask(call: Call[T]) -> T:
    """Make a call as whoever sits at the browser.

    Raises:
        ApiError: With the API's own sentence.
        ServerAway: If nobody answers.
    """
    client = cast(Sender, get_app().server.state.dashboard_client)
    return await client.send(_as_visitor(call))


def _as_visitor(call: Call[T]) -> Call[T]:
    """Hand the browser's session on, so that the API decides what this person may see and do."""
    try:
        cookies, headers = dict(dash.ctx.cookies or {}), dict(dash.ctx.headers or {})
    except (dash.exceptions.MissingCallbackContextException, LookupError):
        return call
    own = {name: headers[name.lower()] for name in HANDED_ON if name.lower() in headers}
    if cookies:
        own["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return replace(call, headers={**call.headers, **own}) if own else call


def sentence(trouble: Exception) -> str:
    """Return what to tell the person when asking failed."""
    if isinstance(trouble, ApiError):
        hint = trouble.hint or ""
        # Some messages already end in what their hint begins with.
        return trouble.message if hint[:20] in trouble.message else f"{trouble.message} {hint}"
    if isinstance(trouble, ServerAway | httpx.HTTPError):
        return "The API does not answer. This page tries again by itself."
    return "Something went wrong while drawing this page."


def differences(
    study_id: int, *, kind: DifferenceKind, metric: Metric, reducer: Reducer = "final"
) -> Call[DifferencesRead]:
    """Return the call for paired differences: methods minus EB, or clipped minus unclipped."""
    query = {"kind": kind, "metric": metric, "reducer": reducer}
    return Call("GET", f"/api/studies/{study_id}/differences", DifferencesRead, query=query)
