"""The scripts of pages, packed once: they are large, and the same for everybody."""

import asyncio
import gzip
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/_dash-component-suites/"
#: Below this many bytes packing gains nothing.
SMALLEST = 1000
LEVEL = 6


def keep_scripts_packed(server: FastAPI) -> None:
    """Let an app answer for its scripts from memory; packing plotly alone takes 0.2 s.

    Only the route itself is wrapped: whatever guards the app still does.
    """
    for route in server.router.routes:
        if str(getattr(route, "path", "")).startswith(PATH):
            route.app = PackedOnce(route.app)  # type: ignore[attr-defined]


class PackedOnce:
    """Keeps an app's whole answers, packed, by path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[str, tuple[list[tuple[bytes, bytes]], bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory what was answered before."""
        asked = Headers(scope=scope)
        if "gzip" not in asked.get("accept-encoding", "") or "if-none-match" in asked:
            return await self._app(scope, receive, send)
        path = scope["path"]
        if path not in self._kept:
            messages = await self._answer(scope, receive)
            body = b"".join(message.get("body", b"") for message in messages[1:])
            if messages[0]["status"] != 200 or len(body) < SMALLEST:
                for message in messages:
                    await send(message)
                return None
            self._kept[path] = await _packed(messages[0], body)
        headers, content = self._kept[path]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, scope: Scope, receive: Receive) -> list[Message]:
        messages: list[Message] = []

        async def note(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive, note)
        return messages


async def _packed(start: Message, body: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    content: Any = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(content))
    headers.add_vary_header("Accept-Encoding")
    return headers.raw, content
