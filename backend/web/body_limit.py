"""Caps request bodies by counting what really arrives."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import TooLarge
from backend.web.failures import refusal


class BodyLimit:
    """Answers 413 as soon as a body is, or says it is, larger than its path allows."""

    def __init__(self, app: ASGIApp, *, most: int, exceptions: dict[str, int]) -> None:
        """Wrap an app.

        Args:
            app: What to protect.
            most: Bytes any body may have.
            exceptions: Other limits, by exact path.
        """
        self._app = app
        self._most = most
        self._exceptions = exceptions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count while the body streams through; `Content-Length` may be absent or a lie."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        most = self._exceptions.get(scope["path"], self._most)
        sentence = f"The body is larger than the {most:,} bytes this call takes."
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most:
            return await refusal(TooLarge(sentence, field="body"))(scope, receive, send)
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                # Not a TooLarge: FastAPI passes on only HTTP exceptions while reading a body.
                raise HTTPException(413, sentence)
            return message

        await self._app(scope, counted, send)
