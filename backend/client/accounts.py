"""Requests about people, their tokens, notes and views, as values, and the methods for them."""

from typing import Any

from backend.client.answers import Call, Sender, sends
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


def reset_password(user_id: int) -> Call[PasswordRead]:
    """Give somebody a made-up password."""
    return Call("POST", f"/api/users/{user_id}/password", PasswordRead, json={})


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
