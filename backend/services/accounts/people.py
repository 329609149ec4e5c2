"""People: who they are, what they may do, and the memory of what they did.

There is always an admin left, once there is one; the first comes through a link that works once.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, lock_table
from backend.errors import Conflict, Forbidden, InvalidInput, NotFound
from backend.models import AuditRow, SessionRow, StudyRow, UserRow
from backend.schemas import AuditRead, Page, Role, Scope, StudyRead, Username, UserRead
from backend.services import read_cursor, write_cursor

#: What a token of a scope makes of its owner's role: it can only take rights away.
ROLE_BY_SCOPE: dict[Scope, dict[Role, Role]] = {
    "read": {"viewer": "viewer", "member": "viewer", "admin": "viewer"},
    "write": {"viewer": "viewer", "member": "member", "admin": "member"},
    "admin": {"viewer": "viewer", "member": "member", "admin": "admin"},
    "agent": {"viewer": "viewer", "member": "member", "admin": "member"},
}
STUDY, ACCOUNT = "study", "account"
_USERNAME: TypeAdapter[str] = TypeAdapter(Username)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. Without accounts there is one owner, whose things have no owner's id.

    Attributes:
        name: Of the account.
        role: What they may do in this request; a token may allow less than its owner's role.
        user_id: The account; None for the one owner of an installation without accounts.
        scope: Of the token; a login may do all that its role allows.
        session_id: The login the request came with.
        token_id: The token it came with instead.
    """

    name: str
    role: Role
    user_id: int | None = None
    scope: Scope = "admin"
    session_id: int | None = None
    token_id: int | None = None

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return self.role == "admin"

    def may_change(self, owner_id: int | None) -> bool:
        """Return whether something that belongs to an account is theirs to change."""
        return self.is_admin or (self.user_id is not None and self.user_id == owner_id)

    def check_writer(self) -> None:
        """Refuse who may read only."""
        if self.scope == "read":
            raise Forbidden("This token may read only.", hint="Make one with the scope write.")
        if self.scope == "agent":
            raise Forbidden(
                "This token may report on its owner's cells, and nothing else.",
                hint="Make one with the scope write.",
            )
        self.check_reporter()

    def check_reporter(self) -> None:
        """Refuse who may not even report on cells; a token for agents may."""
        if self.scope == "read":
            raise Forbidden("This token may read only.", hint="Make one with the scope agent.")
        if self.role == "viewer":
            raise Forbidden("Viewers may read only; ask an admin for the role member.")

    def check_admin(self) -> None:
        """Refuse who does not run this installation."""
        if not self.is_admin:
            raise Forbidden("Only admins may do this.")

    def check_owner(self, owner_id: int | None, *, of: str = "study") -> None:
        """Refuse changes to what belongs to somebody else."""
        if not self.may_change(owner_id):
            raise Forbidden(
                f"Only its owner or an admin may change this {of}.",
                hint="Read it, or repeat it in a study of your own.",
            )


LOCAL_OWNER = Caller("local", "admin")


def audit(
    session: Session,
    *,
    by: Caller,
    action: str,
    study_id: int | None = None,
    user_id: int | None = None,
    **detail: Any,
) -> None:
    """Remember an action, in the transaction that does it.

    Args:
        session: The transaction.
        by: Who did it.
        action: What, as `study.archive`.
        study_id: The study it was done to.
        user_id: Or the account.
        detail: What else to know; never a password or a token.
    """
    session.add(
        AuditRow(
            at=clock(),
            user_id=by.user_id,
            user_name=by.name if by.user_id is not None else "",
            action=action,
            target_kind=STUDY if study_id is not None else ACCOUNT,
            target_id=study_id if study_id is not None else user_id,
            detail=detail or None,
        )
    )


def audit_changes(session: Session, *, by: Caller, before: StudyRead, after: StudyRead) -> None:
    """Remember what a change of a study really changed."""
    if after.name != before.name:
        audit(
            session,
            by=by,
            action="study.rename",
            study_id=after.id,
            before=before.name,
            after=after.name,
        )
    if after.notes != before.notes:
        audit(session, by=by, action="study.notes", study_id=after.id)
    if after.tags != before.tags:
        audit(session, by=by, action="study.tags", study_id=after.id, tags=after.tags)
    if after.archived != before.archived:
        action = "study.archive" if after.archived else "study.restore"
        audit(session, by=by, action=action, study_id=after.id)


def audit_page(
    session: Session, *, study_id: int | None = None, limit: int = 50, cursor: str | None = None
) -> Page[AuditRead]:
    """Return what happened, to one study or at all, the newest first."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit + 1)
    if study_id is not None:
        query = query.where(AuditRow.target_kind == STUDY, AuditRow.target_id == study_id)
    if cursor is not None:
        (last,) = read_cursor(cursor, int)
        query = query.where(AuditRow.id < last)
    rows = session.scalars(query).all()
    return Page(
        items=[_entry_to_read(row) for row in rows[:limit]],
        next_cursor=write_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def _entry_to_read(row: AuditRow) -> AuditRead:
    return AuditRead(
        id=row.id,
        at=row.at,
        username=row.user_name or None,
        action=row.action,
        study_id=row.target_id if row.target_kind == STUDY else None,
        user_id=row.target_id if row.target_kind == ACCOUNT else None,
        detail=row.detail or {},
    )


def create_user(session: Session, *, name: str, role: Role, password_digest: str) -> UserRead:
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
    return get_user(session, user_id=found)


def get_user(session: Session, *, user_id: int) -> UserRead:
    """Return an account."""
    row = session.get(UserRow, user_id, populate_existing=True)
    if row is None:
        raise NotFound("account", user_id)
    return _user_to_read(row, _study_counts(session).get(user_id, 0))


def find_user(session: Session, *, name: str) -> UserRead:
    """Return the account of that name."""
    found = session.scalar(select(UserRow.id).where(UserRow.name == name))
    if found is None:
        raise NotFound("account called", name)
    return get_user(session, user_id=found)


def list_users(session: Session) -> list[UserRead]:
    """Return every account, by name."""
    counts = _study_counts(session)
    rows = session.scalars(select(UserRow).order_by(UserRow.name))
    return [_user_to_read(row, counts.get(row.id, 0)) for row in rows]


def user_names(session: Session) -> list[str]:
    """Return everybody's name."""
    return list(session.scalars(select(UserRow.name).order_by(UserRow.name)))


def any_admin(session: Session) -> bool:
    """Return whether there is anybody who can manage accounts."""
    return session.scalar(select(UserRow.id).where(UserRow.role == "admin").limit(1)) is not None


def change_user(
    session: Session, *, user_id: int, role: Role | None = None, disabled: bool | None = None
) -> UserRead:
    """Give another role, lock out or let in again; who is locked out loses every login at once."""
    before = get_user(session, user_id=user_id)
    if (role or before.role) != "admin" or disabled:
        _keep_an_admin(session, user_id)
    values: dict[str, object] = {} if role is None else {"role": role}
    if disabled is not None and disabled != before.disabled:
        values["disabled_at"] = clock() if disabled else None
    if values:
        session.execute(update(UserRow).where(UserRow.id == user_id).values(**values))
    if disabled:
        session.execute(sa.delete(SessionRow).where(SessionRow.user_id == user_id))
    return get_user(session, user_id=user_id)


def delete_user(session: Session, *, user_id: int) -> None:
    """Delete an account with its tokens and logins; its studies stay, as nobody's."""
    # First: who submits locks studies and then their account, and each would wait for the other.
    lock_table(session, StudyRow)
    get_user(session, user_id=user_id)
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


def _study_counts(session: Session) -> dict[int, int]:
    query = select(StudyRow.owner_id, func.count()).group_by(StudyRow.owner_id)
    return {owner: number for owner, number in session.execute(query) if owner is not None}


def _user_to_read(row: UserRow, studies: int) -> UserRead:
    return UserRead(
        id=row.id,
        username=row.name,
        role=row.role,
        disabled=row.disabled_at is not None,
        created_at=row.created_at,
        last_login_at=row.last_login_at,
        studies=studies,
    )


def check_name(name: str) -> None:
    """Refuse a name that is not one.

    Raises:
        InvalidInput: It says what a name is made of.
    """
    try:
        _USERNAME.validate_python(name)
    except ValidationError:
        raise InvalidInput(
            f"A name has up to 100 lower-case letters, digits and ._@+- and begins with a letter "
            f"or digit; got {name[:50]!r}.",
            field="username",
        ) from None


def invitation(session: Session, *, secret: str) -> str | None:
    """Return the key of the link while there is no admin, None as soon as there is one.

    Made from the installation's secret, so that several web processes print the same link and
    nothing has to be stored.
    """
    return None if any_admin(session) else _invitation_key(secret)


def accept_invitation(
    session: Session, *, secret: str, key: str, name: str, password_digest: str
) -> UserRead:
    """Create the first admin for whoever brings the key.

    Raises:
        Forbidden: The key is wrong, or somebody was first.
    """
    lock_table(session, UserRow)
    check_invitation(session, secret=secret, key=key)
    user = create_user(session, name=name, role="admin", password_digest=password_digest)
    themselves = Caller(name, "admin", user_id=user.id)
    audit(session, by=themselves, action="user.create", user_id=user.id, name=name)
    return user


def check_invitation(session: Session, *, secret: str, key: str) -> None:
    """Refuse a key that is wrong, or that nobody needs any more.

    Raises:
        Forbidden: It says what else works.
    """
    wanted = invitation(session, secret=secret)
    if wanted is None or not hmac.compare_digest(wanted.encode(), key.encode()):
        raise Forbidden(
            "This link does not work, or not any more.",
            hint="`etascope user create NAME --role admin` on the server makes an admin, too.",
        )


def _invitation_key(secret: str) -> str:
    return hmac.new(secret.encode(), b"first admin", hashlib.sha256).hexdigest()[:40]
