"""The client for event loops; also talks to an app in the same process."""

from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from backend.client.calls import Call
from backend.client.errors import away, error_of
from backend.client.synchronous import DEFAULT_URL, headers_of, is_elsewhere, read_answer

T = TypeVar("T")


class AsyncClient:
    """Sends `backend.client.calls`."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        app: Any = None,
        timeout: float = 30.0,
    ) -> None:
        """Connect to a server, or without any network to an app.

        Args:
            url: The server's address.
            token: Bearer token, where accounts are on.
            app: An ASGI app in this process to talk to instead.
            timeout: Seconds until a silent server counts as away.
        """
        transport = httpx.ASGITransport(app=app) if app is not None else None
        self._http = httpx.AsyncClient(
            base_url=url,
            # Within one process, packing and unpacking would only take time.
            headers=headers_of(token) | ({"Accept-Encoding": "identity"} if app else {}),
            timeout=timeout,
            transport=transport,
            trust_env=is_elsewhere(url),
            # One client serves many people: what one is told to remember is not another's.
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        )

    async def send(self, call: Call[T]) -> T:
        """Make a call and return its answer.

        Raises:
            ApiError: With the service's own sentence.
            ServerAway: If nobody answers.
        """
        try:
            response = await self._http.request(
                call.method,
                call.path,
                params=call.parameters,
                json=call.json,
                content=call.content,
                headers=call.headers,
            )
        except httpx.TransportError as cause:
            raise away(self._http.base_url, cause) from cause
        if not response.is_success and response.status_code not in call.accepted:
            raise error_of(response)
        return read_answer(response, call)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.aclose()
