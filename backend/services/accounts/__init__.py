"""Accounts: people, their passwords, logins and tokens, what each may do and what each did.

| module | for |
| --- | --- |
| `people` | accounts, who is asking and what they may do, the audit, the first admin |
| `passwords` | digests of passwords, and the slowing down of guesses |

Here is how a caller proves who they are: by a login in a browser, or by a program's token. A
login is a random key in a cookie, its digest in the database, gone when either is. The digests
are keyed with the installation's secret: who reads the database cannot log in, and a new secret
ends every login. A token is shown once, kept as a hash, scoped, expiring, revocable.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import ColumnElement, Engine, delete, or_, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, database_time, reading, transaction
from backend.errors import Conflict, NotFound, Unauthorized
from backend.models import SessionRow, TokenRow, UserRow
from backend.schemas import Role, Scope, TokenCreated, TokenRead
from backend.services.accounts.passwords import (
    Password,
    choose_password,
    count_attempt,
    forgive_attempt,
    password_matches,
)
from backend.services.accounts.people import (
    LOCAL_OWNER,
    ROLE_BY_SCOPE,
    Caller,
    accept_invitation,
    audit,
    audit_changes,
    audit_page,
    change_user,
    check_invitation,
    check_name,
    create_user,
    delete_user,
    find_user,
    get_user,
    invitation,
    list_users,
    user_names,
)

__all__ = [
    "LOCAL_OWNER",
    "Caller",
    "Login",
    "Password",
    "accept_invitation",
    "audit",
    "audit_changes",
    "audit_page",
    "begin_login",
    "change_user",
    "check_holds",
    "check_invitation",
    "check_name",
    "check_password",
    "choose_password",
    "create_token",
    "create_user",
    "csrf_token",
    "delete_user",
    "end_login",
    "find_user",
    "get_user",
    "invitation",
    "list_tokens",
    "list_users",
    "log_in",
    "login_caller",
    "note_token_use",
    "revoke_token",
    "revoke_tokens",
    "set_password",
    "still_hold",
    "token_caller",
    "token_use_is_due",
    "user_names",
]


LONGEST_NAME = 100
LONGEST_KEY = 100
#: What a token begins with, so that people and secret scanners recognise one.
MARK = "eta_"
SHOWN_CHARACTERS = 12
LONGEST_TOKEN = 200
MOST_TOKENS = 100
#: "Last used" is about this exact: a write for every read would be too dear.
LAST_USED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Login:
    """A login that has just begun, and the key that proves it."""

    caller: Caller
    key: str


def log_in(
    engine: Engine, *, username: str, password: str, address: str, secret: str, hours: float
) -> Login:
    """Begin a login.

    In transactions of its own: looking at a password takes a tenth of a second, during which no
    other writer may have to wait.

    Raises:
        TooManyAttempts: Too many failed lately, for this account or from this address.
        Unauthorized: Name or password is wrong, or the account is locked.
    """
    # No name of ours has such characters, and PostgreSQL takes no NUL to look for.
    given = username.strip().casefold()[:LONGEST_NAME]
    name = "".join(one if one.isprintable() else "\ufffd" for one in given)
    digest = check_password(engine, username=name, password=password, address=address)
    with transaction(engine) as session:
        # Locked, so that a password which was replaced meanwhile begins nothing any more.
        row = _enabled(session, name, lock=True)
        if digest is None or row is None or row.password_hash != digest:
            raise Unauthorized("The name or the password is wrong.", field="password")
        key = begin_login(session, user_id=row.id, secret=secret, hours=hours)
        caller = login_caller(session, key=key, secret=secret)
        assert caller is not None
    return Login(caller, key)


def check_password(engine: Engine, *, username: str, password: str, address: str) -> str | None:
    """Return an account's digest if the password is right; wrong ones are counted, soon refused."""
    with transaction(engine) as session:
        count_attempt(session, username=username, address=address)
    with reading(engine) as session:
        row = _enabled(session, username)
    if not password_matches(password, row.password_hash if row else None):
        return None
    with transaction(engine) as session:
        forgive_attempt(session, username=username, address=address)
    return row.password_hash if row else None


def _enabled(session: Session, name: str, *, lock: bool = False) -> UserRow | None:
    query = select(UserRow).where(UserRow.name == name, UserRow.disabled_at.is_(None))
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def begin_login(session: Session, *, user_id: int, secret: str, hours: float) -> str:
    """Store a new login and return its key; the key is new whatever the browser brought."""
    session.execute(delete(SessionRow).where(SessionRow.expires_at <= clock()))
    key = secrets.token_urlsafe(32)
    expires = clock(hours * 3600)
    session.add(SessionRow(user_id=user_id, key_hash=_key_digest(secret, key), expires_at=expires))
    session.execute(update(UserRow).where(UserRow.id == user_id).values(last_login_at=clock()))
    return key


def login_caller(session: Session, *, key: str, secret: str) -> Caller | None:
    """Return whose login a key belongs to, if it has not ended."""
    if len(key) > LONGEST_KEY:
        return None
    query = (
        select(SessionRow.id, UserRow.id, UserRow.name, UserRow.role)
        .join(UserRow, UserRow.id == SessionRow.user_id)
        .where(SessionRow.key_hash == _key_digest(secret, key), *_login_alive())
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    session_id, user_id, name, role = found
    return Caller(name, cast(Role, role), user_id, session_id=session_id)


def end_login(session: Session, *, session_id: int) -> None:
    """End a login."""
    session.execute(delete(SessionRow).where(SessionRow.id == session_id))


def still_hold(session: Session, *, callers: Collection[Caller]) -> set[Caller]:
    """Return those whom what they came with minutes ago would still let in."""
    logins = {caller.session_id for caller in callers if caller.session_id is not None}
    own = (SessionRow.id.in_(logins), SessionRow.user_id == UserRow.id)
    alive = (
        set(session.scalars(select(SessionRow.id).where(*own, *_login_alive())))
        if logins
        else set()
    )
    shown = {caller.token_id for caller in callers if caller.token_id is not None}
    good = _good_tokens(session, token_ids=shown)
    return {
        caller
        for caller in callers
        if caller.user_id is None or caller.session_id in alive or caller.token_id in good
    }


def csrf_token(key: str, *, secret: str) -> str:
    """Return what a page of ours has to show besides the cookie, which any page would send."""
    return hmac.new(secret.encode(), f"csrf {key}".encode(), hashlib.sha256).hexdigest()


def _login_alive() -> tuple[ColumnElement[bool], ...]:
    return (SessionRow.expires_at > clock(), UserRow.disabled_at.is_(None))


def _key_digest(secret: str, key: str) -> str:
    return hmac.new(secret.encode(), f"session {key}".encode(), hashlib.sha256).hexdigest()


def create_token(
    session: Session,
    *,
    user_id: int,
    name: str,
    scope: Scope,
    days: float | None,
    by: Caller | None = None,
) -> TokenCreated:
    """Store a new token; the only time its text is known.

    Args:
        session: A session that may write.
        user_id: Whose it is.
        name: What it is for.
        scope: What it may do.
        days: Until it expires; None: never.
        by: Who asks, if it is not the shell: with a token, which the new one does not outlive.

    Raises:
        Unauthorized: What they came with has ended since.
        Conflict: The account has as many as it may have.
    """
    # Locked, so that two cannot both be the hundredth.
    check_holds(session, by=by, lock=user_id)
    held = [one for one in list_tokens(session, user_id=user_id) if not one.revoked]
    if len(held) >= MOST_TOKENS:
        raise Conflict(f"An account has at most {MOST_TOKENS} tokens; revoke some first.")
    text = MARK + secrets.token_urlsafe(32)
    row = TokenRow(
        user_id=user_id,
        name=name,
        prefix=text[:SHOWN_CHARACTERS],
        token_hash=_token_digest(text),
        scope=scope,
        expires_at=_token_expiry(session, days, by.token_id if by else None),
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return TokenCreated(**_token_to_read(row).model_dump(), token=text)


def check_holds(session: Session, *, by: Caller | None, lock: int | None = None) -> None:
    """Refuse whose login or token has ended since it let them in, as by a new password.

    Args:
        session: The transaction that makes what would outlast it.
        by: Who asks; None: the shell.
        lock: The account whose ways in are about to change; whole rows of requests may wait here.
    """
    session.execute(select(UserRow.id).where(UserRow.id == lock).with_for_update())
    if by is not None and not still_hold(session, callers=[by]):
        raise Unauthorized("This login or token has ended; log in again.")


def _token_expiry(session: Session, days: float | None, parent_id: int | None) -> datetime | None:
    wanted = None if days is None else database_time(session) + timedelta(days=days)
    parent = select(TokenRow.expires_at).where(TokenRow.id == parent_id)
    ends = None if parent_id is None else session.scalar(parent)
    return min((moment for moment in (wanted, ends) if moment), default=None)


def list_tokens(session: Session, *, user_id: int) -> list[TokenRead]:
    """Return an account's tokens, newest first."""
    query = select(TokenRow).where(TokenRow.user_id == user_id).order_by(TokenRow.id.desc())
    return [_token_to_read(row) for row in session.scalars(query)]


def revoke_token(session: Session, *, token_id: int, user_id: int | None) -> None:
    """End a token for good; `user_id` None revokes anybody's."""
    own = () if user_id is None else (TokenRow.user_id == user_id,)
    query = update(TokenRow).where(TokenRow.id == token_id, TokenRow.revoked_at.is_(None), *own)
    if changed_rows(session, query.values(revoked_at=clock())) == 0:
        raise NotFound("token", token_id)


def revoke_tokens(session: Session, *, user_id: int) -> int:
    """End every token of an account; returns how many could still be used."""
    own = update(TokenRow).where(TokenRow.user_id == user_id, TokenRow.revoked_at.is_(None))
    unexpired = or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > clock())
    return changed_rows(session, own.where(unexpired).values(revoked_at=clock()))


def token_caller(session: Session, *, text: str) -> Caller | None:
    """Return whose token a text is, if it is still good."""
    if not text.startswith(MARK) or len(text) > LONGEST_TOKEN:
        return None
    query = (
        select(TokenRow.id, TokenRow.scope, UserRow.id, UserRow.name, UserRow.role)
        .join(UserRow, UserRow.id == TokenRow.user_id)
        .where(TokenRow.token_hash == _token_digest(text), *_token_good())
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    token_id, scope, user_id, name, role = found
    kind = cast(Scope, scope)
    allowed = ROLE_BY_SCOPE[kind][cast(Role, role)]
    return Caller(name, allowed, user_id, scope=kind, token_id=token_id)


def _good_tokens(session: Session, *, token_ids: Collection[int]) -> set[int]:
    """Return the tokens that are neither revoked nor expired, nor their owner gone."""
    own = (TokenRow.id.in_(token_ids), TokenRow.user_id == UserRow.id)
    return (
        set(session.scalars(select(TokenRow.id).where(*own, *_token_good())))
        if token_ids
        else set()
    )


def token_use_is_due(session: Session, *, token_id: int) -> bool:
    """Return whether a use of the token is worth a write."""
    return bool(session.scalar(select(TokenRow.id).where(*_use_unnoted(token_id))))


def note_token_use(session: Session, *, token_id: int) -> None:
    """Remember that a token was used just now."""
    session.execute(update(TokenRow).where(*_use_unnoted(token_id)).values(last_used_at=clock()))


def _token_good() -> tuple[ColumnElement[bool], ...]:
    return (
        TokenRow.revoked_at.is_(None),
        or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > clock()),
        UserRow.disabled_at.is_(None),
    )


def _use_unnoted(token_id: int) -> tuple[ColumnElement[bool], ...]:
    long_ago = TokenRow.last_used_at < clock(-LAST_USED_SECONDS)
    return (TokenRow.id == token_id, or_(TokenRow.last_used_at.is_(None), long_ago))


def _token_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _token_to_read(row: TokenRow) -> TokenRead:
    return TokenRead(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scope=row.scope,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked=row.revoked_at is not None,
    )


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
    others = delete(SessionRow).where(SessionRow.user_id == user_id)
    session.execute(others.where(SessionRow.id != (keep_session or 0)))
    return 0 if keep_tokens else revoke_tokens(session, user_id=user_id)
