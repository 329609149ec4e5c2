"""A request as a value, and what comes back: an answer, a refusal, silence, events; about people.

The requests here are about people, their tokens, notes and views; the others are in `calls`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import httpx
from pydantic import TypeAdapter

from backend.schemas import (
    AuditRead,
    LoginCreate,
    MeRead,
    NoteCreate,
    NoteRead,
    Page,
    PasswordChange,
    PasswordRead,
    PersonRead,
    TokenCreate,
    TokenCreated,
    TokenRead,
    UserCreate,
    UserCreated,
    UserRead,
    UserUpdate,
    ViewCreate,
    ViewRead,
)

#: What `calls` hands on: the requests themselves.
__all__ = [
    "add_note",
    "audit",
    "change_password",
    "create_token",
    "create_user",
    "delete_note",
    "delete_user",
    "delete_view",
    "log_in",
    "log_out",
    "me",
    "notes",
    "people",
    "reset_password",
    "revoke_token",
    "save_view",
    "tokens",
    "update_user",
    "user",
    "users",
    "views",
]

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


# --- Requests about people, their tokens, notes and views, and the methods for them


def me() -> Call[MeRead]:
    """Who is asking."""
    return Call("GET", "/api/me", MeRead)


def log_in(body: LoginCreate) -> Call[MeRead]:
    """Begin a login by cookie; programs do better with a token."""
    return Call("POST", "/api/auth/login", MeRead, json=body.model_dump())


def log_out() -> Call[None]:
    """End the login."""
    return Call("POST", "/api/auth/logout", type(None))


def change_password(body: PasswordChange) -> Call[None]:
    """Change one's own password."""
    return Call("POST", "/api/auth/password", type(None), json=body.model_dump())


def people() -> Call[Page[PersonRead]]:
    """Everybody's name."""
    return Call("GET", "/api/people", Page[PersonRead])


def tokens() -> Call[Page[TokenRead]]:
    """One's own tokens."""
    return Call("GET", "/api/tokens", Page[TokenRead])


def create_token(body: TokenCreate) -> Call[TokenCreated]:
    """Make a token; the answer is the only place its text is in."""
    return Call("POST", "/api/tokens", TokenCreated, json=body.model_dump())


def revoke_token(token_id: int) -> Call[None]:
    """End a token."""
    return Call("DELETE", f"/api/tokens/{token_id}", type(None))


def users() -> Call[Page[UserRead]]:
    """Every account."""
    return Call("GET", "/api/users", Page[UserRead])


def user(user_id: int) -> Call[UserRead]:
    """One account."""
    return Call("GET", f"/api/users/{user_id}", UserRead)


def create_user(body: UserCreate) -> Call[UserCreated]:
    """Create an account."""
    return Call("POST", "/api/users", UserCreated, json=body.model_dump())


def update_user(user_id: int, body: UserUpdate) -> Call[UserRead]:
    """Change a role, lock out or let in again."""
    changes = body.model_dump(exclude_unset=True)
    return Call("PATCH", f"/api/users/{user_id}", UserRead, json=changes)


def delete_user(user_id: int) -> Call[None]:
    """Delete an account."""
    return Call("DELETE", f"/api/users/{user_id}", type(None))


def reset_password(user_id: int, *, keep_tokens: bool = False) -> Call[PasswordRead]:
    """Give somebody a made-up password; their tokens end unless they are kept."""
    body = {"keep_tokens": keep_tokens}
    return Call("POST", f"/api/users/{user_id}/password", PasswordRead, json=body)


def audit(**query: Any) -> Call[Page[AuditRead]]:
    """Who did what, to one study (`study_id`) or at all."""
    return Call("GET", "/api/audit", Page[AuditRead], query=query)


def notes(study_id: int, **paging: Any) -> Call[Page[NoteRead]]:
    """What people remarked about a study."""
    return Call("GET", f"/api/studies/{study_id}/notes", Page[NoteRead], query=paging)


def add_note(study_id: int, body: NoteCreate) -> Call[NoteRead]:
    """Remark something about a study."""
    return Call("POST", f"/api/studies/{study_id}/notes", NoteRead, json=body.model_dump())


def delete_note(note_id: int) -> Call[None]:
    """Delete a note of one's own."""
    return Call("DELETE", f"/api/notes/{note_id}", type(None))


def views() -> Call[Page[ViewRead]]:
    """One's own views of the history."""
    return Call("GET", "/api/views", Page[ViewRead])


def save_view(body: ViewCreate) -> Call[ViewRead]:
    """Keep filters of the history under a name."""
    return Call("POST", "/api/views", ViewRead, json=body.model_dump(exclude_none=True))


def delete_view(view_id: int) -> Call[None]:
    """Delete a view."""
    return Call("DELETE", f"/api/views/{view_id}", type(None))


class AccountCalls(Sender):
    """What needs no more than to be sent."""

    me = sends(me)
    log_in = sends(log_in)
    log_out = sends(log_out)
    change_password = sends(change_password)
    people = sends(people)
    tokens = sends(tokens)
    create_token = sends(create_token)
    revoke_token = sends(revoke_token)
    users = sends(users)
    user = sends(user)
    create_user = sends(create_user)
    update_user = sends(update_user)
    delete_user = sends(delete_user)
    reset_password = sends(reset_password)
    audit = sends(audit)
    notes = sends(notes)
    add_note = sends(add_note)
    delete_note = sends(delete_note)
    views = sends(views)
    save_view = sends(save_view)
    delete_view = sends(delete_view)
