"""Requests about people: accounts, tokens, who did what, notes, saved views."""

from typing import Any

from backend.client.calls import Call
from backend.schemas import (
    AuditRead,
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
