"""Bearer tokens: shown once, kept as a hash, scoped, expiring, revocable."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, database_time
from backend.errors import Conflict, NotFound
from backend.models import TokenRow, UserRow
from backend.schemas import Role, Scope, TokenCreated, TokenRead
from backend.services.accounts.caller import ROLE_BY_SCOPE, Caller

#: What a token begins with, so that people and secret scanners recognise one.
MARK = "eta_"
SHOWN_CHARACTERS = 12
LONGEST_TOKEN = 200
MOST_TOKENS = 100
#: "Last used" is about this exact: a write for every read would be too dear.
LAST_USED_SECONDS = 60.0


def create(
    session: Session,
    *,
    user_id: int,
    name: str,
    scope: Scope,
    days: float | None,
    parent_id: int | None = None,
) -> TokenCreated:
    """Store a new token; the only time its text is known.

    Args:
        session: A session that may write.
        user_id: Whose it is.
        name: What it is for.
        scope: What it may do.
        days: Until it expires; None: never.
        parent_id: The token it is made with, which it does not outlive.
    """
    # Locked, so that two cannot both be the hundredth.
    session.execute(select(UserRow.id).where(UserRow.id == user_id).with_for_update())
    held = [one for one in list_for(session, user_id=user_id) if not one.revoked]
    if len(held) >= MOST_TOKENS:
        raise Conflict(f"An account has at most {MOST_TOKENS} tokens; revoke some first.")
    text = MARK + secrets.token_urlsafe(32)
    row = TokenRow(
        user_id=user_id,
        name=name,
        prefix=text[:SHOWN_CHARACTERS],
        token_hash=_digest(text),
        scope=scope,
        expires_at=_expiry(session, days, parent_id),
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return TokenCreated(**_to_read(row).model_dump(), token=text)


def _expiry(session: Session, days: float | None, parent_id: int | None) -> datetime | None:
    wanted = None if days is None else database_time(session) + timedelta(days=days)
    parent = select(TokenRow.expires_at).where(TokenRow.id == parent_id)
    ends = None if parent_id is None else session.scalar(parent)
    return min((moment for moment in (wanted, ends) if moment), default=None)


def list_for(session: Session, *, user_id: int) -> list[TokenRead]:
    """Return an account's tokens, newest first."""
    query = select(TokenRow).where(TokenRow.user_id == user_id).order_by(TokenRow.id.desc())
    return [_to_read(row) for row in session.scalars(query)]


def revoke(session: Session, *, token_id: int, user_id: int | None) -> None:
    """End a token for good; `user_id` None revokes anybody's."""
    own = () if user_id is None else (TokenRow.user_id == user_id,)
    query = update(TokenRow).where(TokenRow.id == token_id, TokenRow.revoked_at.is_(None), *own)
    if changed_rows(session, query.values(revoked_at=clock())) == 0:
        raise NotFound("token", token_id)


def revoke_all(session: Session, *, user_id: int) -> int:
    """End every token of an account; returns how many could still be used."""
    own = update(TokenRow).where(TokenRow.user_id == user_id, TokenRow.revoked_at.is_(None))
    unexpired = or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > clock())
    return changed_rows(session, own.where(unexpired).values(revoked_at=clock()))


def find(session: Session, *, text: str) -> Caller | None:
    """Return whose token a text is, if it is still good."""
    if not text.startswith(MARK) or len(text) > LONGEST_TOKEN:
        return None
    query = (
        select(TokenRow.id, TokenRow.scope, UserRow.id, UserRow.name, UserRow.role)
        .join(UserRow, UserRow.id == TokenRow.user_id)
        .where(TokenRow.token_hash == _digest(text), *_good())
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    token_id, scope, user_id, name, role = found
    kind = cast(Scope, scope)
    allowed = ROLE_BY_SCOPE[kind][cast(Role, role)]
    return Caller(name, allowed, user_id, scope=kind, token_id=token_id)


def still_good(session: Session, *, token_ids: Collection[int]) -> set[int]:
    """Return the tokens that are neither revoked nor expired, nor their owner gone."""
    own = (TokenRow.id.in_(token_ids), TokenRow.user_id == UserRow.id)
    return set(session.scalars(select(TokenRow.id).where(*own, *_good()))) if token_ids else set()


def needs_a_note(session: Session, *, token_id: int) -> bool:
    """Return whether a use of the token is worth a write."""
    return bool(session.scalar(select(TokenRow.id).where(*_unnoted(token_id))))


def note_use(session: Session, *, token_id: int) -> None:
    """Remember that a token was used just now."""
    session.execute(update(TokenRow).where(*_unnoted(token_id)).values(last_used_at=clock()))


def _good() -> tuple[ColumnElement[bool], ...]:
    return (
        TokenRow.revoked_at.is_(None),
        or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > clock()),
        UserRow.disabled_at.is_(None),
    )


def _unnoted(token_id: int) -> tuple[ColumnElement[bool], ...]:
    long_ago = TokenRow.last_used_at < clock(-LAST_USED_SECONDS)
    return (TokenRow.id == token_id, or_(TokenRow.last_used_at.is_(None), long_ago))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _to_read(row: TokenRow) -> TokenRead:
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
