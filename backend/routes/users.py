"""Accounts, for admins."""

from fastapi import APIRouter, Depends, Response

from backend.db import reading, transaction
from backend.deps import AdminDep, EngineDep, ReadDep, require_accounts
from backend.routes.documented import ShortPage, UserId, errors
from backend.schemas import (
    Page,
    PasswordRead,
    PasswordReset,
    UserCreate,
    UserCreated,
    UserRead,
    UserUpdate,
)
from backend.services import audit
from backend.services.accounts import passwords, users
from backend.services.cursors import cut

router = APIRouter(prefix="/api/users", tags=["accounts"], dependencies=[Depends(require_accounts)])


@router.get("", responses=errors(409))
def list_users(session: ReadDep, _: AdminDep, page: ShortPage) -> Page[UserRead]:
    """Return every account."""
    found = users.list_all(session)
    return cut(found, key=lambda user: (user.username,), limit=page.limit, cursor=page.cursor)


@router.post("", status_code=201, responses=errors(400, 409, 413))
def create_user(
    payload: UserCreate, engine: EngineDep, caller: AdminDep, response: Response
) -> UserCreated:
    """Create an account; a made-up password is in this answer and nowhere else."""
    chosen = passwords.choose(payload.username, payload.password)
    with transaction(engine) as session:
        user = users.create(
            session, name=payload.username, role=payload.role, password_digest=chosen.digest
        )
        audit.record(session, by=caller, action="user.create", user_id=user.id, name=user.username)
    response.headers["Location"] = f"/api/users/{user.id}"
    shown = chosen.text if payload.password is None else None
    return UserCreated(**user.model_dump(), password=shown)


@router.get("/{user_id}", responses=errors(404, 409))
def get_user(user_id: UserId, session: ReadDep, _: AdminDep) -> UserRead:
    """Return an account."""
    return users.get(session, user_id=user_id)


@router.patch("/{user_id}", responses=errors(400, 404, 409, 413))
def update_user(
    user_id: UserId, payload: UserUpdate, engine: EngineDep, caller: AdminDep
) -> UserRead:
    """Give another role, lock out, or let in again; takes effect at once."""
    with transaction(engine) as session:
        user = users.change(session, user_id=user_id, role=payload.role, disabled=payload.disabled)
        changes = payload.model_dump(exclude_none=True)
        audit.record(
            session, by=caller, action="user.change", user_id=user_id, name=user.username, **changes
        )
    return user


@router.delete("/{user_id}", status_code=204, responses=errors(404, 409))
def delete_user(user_id: UserId, engine: EngineDep, caller: AdminDep) -> None:
    """Delete an account with its tokens and logins; its studies stay, as nobody's."""
    with transaction(engine) as session:
        name = users.get(session, user_id=user_id).username
        audit.record(session, by=caller, action="user.delete", user_id=user_id, name=name)
        session.flush()  # before the author may be gone
        users.delete(session, user_id=user_id)


@router.post("/{user_id}/password", responses=errors(400, 404, 409, 413))
def reset_password(
    user_id: UserId, payload: PasswordReset, engine: EngineDep, caller: AdminDep
) -> PasswordRead:
    """Give somebody a new password, and end all of their logins, and tokens unless kept."""
    with reading(engine) as session:
        name = users.get(session, user_id=user_id).username
    chosen = passwords.choose(name, payload.password)
    with transaction(engine) as session:
        revoked = users.set_password(
            session,
            user_id=user_id,
            password_digest=chosen.digest,
            keep_tokens=payload.keep_tokens,
        )
        audit.record(
            session,
            by=caller,
            action="user.password",
            user_id=user_id,
            name=name,
            tokens_revoked=revoked,
        )
    shown = chosen.text if payload.password is None else None
    return PasswordRead(password=shown, tokens_revoked=revoked)
