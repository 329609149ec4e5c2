"""People: create, list, change, delete. There is always an admin left."""

import sqlalchemy as sa
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for
from backend.errors import Conflict, NotFound
from backend.models import SessionRow, StudyRow, UserRow
from backend.schemas import Role, UserRead
from backend.services.accounts import tokens


def create(session: Session, *, name: str, role: Role, password_digest: str) -> UserRead:
    """Store a new account.

    Raises:
        Conflict: The name is taken.
    """
    insert = insert_for(session, UserRow).values(
        name=name, role=role, password_hash=password_digest, created_at=clock()
    )
    found = session.scalars(
        insert.on_conflict_do_nothing(index_elements=["name"]).returning(UserRow.id)
    ).one_or_none()
    if found is None:
        raise Conflict(f"There is already an account called {name}.", field="username")
    return get(session, user_id=found)


def get(session: Session, *, user_id: int) -> UserRead:
    """Return an account."""
    row = session.get(UserRow, user_id, populate_existing=True)
    if row is None:
        raise NotFound("account", user_id)
    return _to_read(row, _studies(session).get(user_id, 0))


def find(session: Session, *, name: str) -> UserRead:
    """Return the account of that name."""
    found = session.scalar(select(UserRow.id).where(UserRow.name == name))
    if found is None:
        raise NotFound("account called", name)
    return get(session, user_id=found)


def list_all(session: Session) -> list[UserRead]:
    """Return every account, by name."""
    counts = _studies(session)
    rows = session.scalars(select(UserRow).order_by(UserRow.name))
    return [_to_read(row, counts.get(row.id, 0)) for row in rows]


def names(session: Session) -> list[str]:
    """Return everybody's name."""
    return list(session.scalars(select(UserRow.name).order_by(UserRow.name)))


def any_admin(session: Session) -> bool:
    """Return whether there is anybody who can manage accounts."""
    return session.scalar(select(UserRow.id).where(UserRow.role == "admin").limit(1)) is not None


def change(
    session: Session, *, user_id: int, role: Role | None = None, disabled: bool | None = None
) -> UserRead:
    """Give another role, lock out or let in again; who is locked out loses every login at once."""
    before = get(session, user_id=user_id)
    if (role or before.role) != "admin" or disabled:
        _keep_an_admin(session, user_id)
    values: dict[str, object] = {} if role is None else {"role": role}
    if disabled is not None and disabled != before.disabled:
        values["disabled_at"] = clock() if disabled else None
    if values:
        session.execute(update(UserRow).where(UserRow.id == user_id).values(**values))
    if disabled:
        session.execute(sa.delete(SessionRow).where(SessionRow.user_id == user_id))
    return get(session, user_id=user_id)


def set_password(
    session: Session,
    *,
    user_id: int,
    password_digest: str,
    keep_session: int | None = None,
    keep_tokens: bool = False,
) -> int:
    """Store a new password, and end every other login and token of the account.

    Who changes a password because somebody else knows it would be surprised by less.

    Args:
        session: A session that may write.
        user_id: Whose password it is.
        password_digest: The new one's.
        keep_session: A login that goes on.
        keep_tokens: Whether programs keep what they have.

    Returns:
        How many tokens were revoked.
    """
    changed = update(UserRow).where(UserRow.id == user_id).values(password_hash=password_digest)
    session.execute(changed)
    others = sa.delete(SessionRow).where(SessionRow.user_id == user_id)
    session.execute(others.where(SessionRow.id != (keep_session or 0)))
    return 0 if keep_tokens else tokens.revoke_all(session, user_id=user_id)


def delete(session: Session, *, user_id: int) -> None:
    """Delete an account with its tokens and logins; its studies stay, as nobody's."""
    get(session, user_id=user_id)
    _keep_an_admin(session, user_id)
    session.execute(sa.delete(UserRow).where(UserRow.id == user_id))


def _keep_an_admin(session: Session, user_id: int) -> None:
    """Refuse to take the last admin away; locked, so that two cannot take each other away."""
    admins = session.scalars(
        select(UserRow.id)
        .where(UserRow.role == "admin", UserRow.disabled_at.is_(None))
        .order_by(UserRow.id)
        .with_for_update()
    ).all()
    if list(admins) == [user_id]:
        raise Conflict(
            "This is the only admin left; nobody could manage accounts any more.",
            hint="Make somebody else an admin first.",
        )


def _studies(session: Session) -> dict[int, int]:
    query = select(StudyRow.owner_id, func.count()).group_by(StudyRow.owner_id)
    return {owner: number for owner, number in session.execute(query) if owner is not None}


def _to_read(row: UserRow, studies: int) -> UserRead:
    return UserRead(
        id=row.id,
        username=row.name,
        role=row.role,
        disabled=row.disabled_at is not None,
        created_at=row.created_at,
        last_login_at=row.last_login_at,
        studies=studies,
    )
