"""A request as a value, and what comes back: its answer, a refusal, silence, or events."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import httpx
from pydantic import TypeAdapter

T = TypeVar("T")
P = ParamSpec("P")
Query = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request.

    Attributes:
        method: GET, POST, ...
        path: Below the server's address.
        answer: The type of the answer; None for no body.
        query: Parameters; those that are None are left out.
        json: The body.
        content: A raw body instead.
        headers: Further headers.
        accepted: Statuses besides 2xx whose body is the answer all the same.
    """

    method: str
    path: str
    answer: type[T]
    query: Query = field(default_factory=dict)
    json: Any = None
    content: bytes | Iterable[bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    accepted: tuple[int, ...] = ()

    @property
    def parameters(self) -> Query:
        """The query without what was left out."""
        return {name: value for name, value in self.query.items() if value is not None}


class Sender(Protocol):
    """Whoever makes a call and returns its answer."""

    def send(self, call: Call[T]) -> T:
        """Make a call."""
        ...


def sends(make: Callable[P, Call[T]]) -> Callable[Concatenate[Sender, P], T]:
    """Return the method that makes a call and returns its answer, with the call's own types."""

    @wraps(make)
    def method(self: Sender, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(make(*args, **kwargs))

    return method


class ApiError(Exception):
    """The service refused a request.

    Attributes:
        status: The HTTP status.
        code: Stable machine-readable name.
        message: One sentence.
        field: The input it is about.
        hint: What to do next.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint


class ServerAway(Exception):
    """Nobody answers at the address."""


def error_of(response: httpx.Response) -> ApiError:
    """Return the error an answer carries; anything but our shape came from something between."""
    try:
        detail = response.json()["error"]
        return ApiError(
            response.status_code,
            detail["code"],
            detail["message"],
            field=detail.get("field"),
            hint=detail.get("hint"),
        )
    except (ValueError, KeyError, TypeError):
        return ApiError(
            response.status_code,
            "unreadable",
            f"{response.request.url.host} answered {response.status_code} in a form that is not "
            "Etascope's.",
            hint="Is the address right, and is there a proxy in between?",
        )


def away(url: httpx.URL | str, cause: httpx.TransportError) -> ServerAway:
    """Return what to say when a request got no answer at all."""
    reason = str(cause) or type(cause).__name__
    return ServerAway(f"No answer from {url}: {reason}. Is `etascope up` running there?")


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    name: str
    data: str
    id: str = ""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a stream; comments (keep-alives) and incomplete ones are left out."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield Event(
                    name=(fields.get("event") or ["message"])[-1],
                    data="\n".join(fields["data"]),
                    id=(fields.get("id") or [""])[-1],
                )
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))


def is_elsewhere(url: str) -> bool:
    """Return whether a server is on another machine; a proxy would not find our loopback."""
    return httpx.URL(url).host not in ("127.0.0.1", "localhost", "::1")


def headers_of(token: str | None) -> dict[str, str]:
    """Return what every request carries."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def read_answer(response: httpx.Response, call: Call[T]) -> T:
    """Return a body as the type its call promises."""
    if not response.content:
        return TypeAdapter(call.answer).validate_python(None)
    return TypeAdapter(call.answer).validate_json(response.content)


def download(http: httpx.Client, address: str, query: dict[str, Any], path: Path) -> None:
    """Write an answer to a file as it comes, without holding it in memory."""
    try:
        with http.stream("GET", address, params=query) as response:
            if not response.is_success:
                response.read()
                raise error_of(response)
            with path.open("wb") as file:
                file.writelines(response.iter_bytes())
    except httpx.TransportError as cause:
        raise away(http.base_url, cause) from cause
