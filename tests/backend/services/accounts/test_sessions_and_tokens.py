"""What lets somebody in stops doing so at once, on both databases."""

from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from backend.db import clock
from backend.errors import Conflict, NotFound, Unauthorized
from backend.models import SessionRow, TokenRow
from backend.schemas import Role, Scope
from backend.services import accounts
from tests.backend.accounts import SECRET, new_user


@pytest.fixture
def ada(session: Session) -> int:
    new_user(session, "root", "admin")
    return new_user(session, "ada").id


def begin(session: Session, user_id: int) -> str:
    return accounts.begin_login(session, user_id=user_id, secret=SECRET, hours=1)


def make(session: Session, user_id: int, **changes: Any) -> Any:
    given: dict[str, Any] = {"name": "laptop", "scope": "write", "days": 1}
    return accounts.create_token(session, user_id=user_id, **(given | changes))


def end_session(session: Session, user_id: int) -> None:
    session.execute(update(SessionRow).values(expires_at=clock(-1)))


def end_token(session: Session, user_id: int) -> None:
    session.execute(update(TokenRow).values(expires_at=clock(-1)))


def lock(session: Session, user_id: int) -> None:
    accounts.change_user(session, user_id=user_id, disabled=True)


def remove(session: Session, user_id: int) -> None:
    accounts.delete_user(session, user_id=user_id)


@pytest.mark.parametrize("ending", [end_session, lock, remove])
def test_a_login_ends_at_once(session: Session, ada: int, ending: Any) -> None:
    key = begin(session, ada)
    caller = accounts.login_caller(session, key=key, secret=SECRET)
    assert caller is not None
    assert accounts.still_hold(session, callers=[caller]) == {caller}
    ending(session, ada)
    assert accounts.login_caller(session, key=key, secret=SECRET) is None
    assert accounts.still_hold(session, callers=[caller]) == set()


@pytest.mark.parametrize("ending", [end_token, lock, remove])
def test_a_token_ends_at_once(session: Session, ada: int, ending: Any) -> None:
    text = make(session, ada).token
    caller = accounts.token_caller(session, text=text)
    assert caller is not None
    assert accounts.still_hold(session, callers=[caller]) == {caller}
    ending(session, ada)
    assert accounts.token_caller(session, text=text) is None
    assert accounts.still_hold(session, callers=[caller]) == set()


def test_unlocking_does_not_bring_old_logins_back(session: Session, ada: int) -> None:
    key = begin(session, ada)
    accounts.change_user(session, user_id=ada, disabled=True)
    accounts.change_user(session, user_id=ada, disabled=False)
    assert accounts.login_caller(session, key=key, secret=SECRET) is None


def test_a_new_password_ends_the_other_logins_only(session: Session, ada: int) -> None:
    mine, other = begin(session, ada), begin(session, ada)
    caller = accounts.login_caller(session, key=mine, secret=SECRET)
    assert caller is not None
    accounts.set_password(
        session, user_id=ada, password_digest="new", keep_session=caller.session_id
    )
    assert accounts.login_caller(session, key=mine, secret=SECRET) is not None
    assert accounts.login_caller(session, key=other, secret=SECRET) is None


@pytest.mark.parametrize(("keep", "left"), [(False, 0), (True, 2)])
def test_a_new_password_ends_tokens_unless_they_are_kept(
    session: Session, ada: int, keep: bool, left: int
) -> None:
    texts = [make(session, ada).token, make(session, ada, days=None).token]
    make(session, ada, days=1e-9)
    root = make(session, accounts.find_user(session, name="root").id).token
    told = accounts.set_password(session, user_id=ada, password_digest="new", keep_tokens=keep)
    assert told == 2 - left, "those that had expired are not counted"
    assert sum(accounts.token_caller(session, text=text) is not None for text in texts) == left
    assert accounts.token_caller(session, text=root) is not None, "another account's"


@pytest.mark.parametrize("days", [90, None])
def test_a_token_does_not_outlive_the_one_it_was_made_with(
    session: Session, ada: int, days: float | None
) -> None:
    parent = make(session, ada, scope="admin", days=0.5)
    holder = accounts.token_caller(session, text=parent.token)
    child = make(session, ada, days=days, by=holder)
    assert child.expires_at == parent.expires_at
    short = make(session, ada, days=0.1, by=holder)
    assert short.expires_at < parent.expires_at
    endless = accounts.token_caller(
        session, text=make(session, ada, scope="admin", days=None).token
    )
    assert make(session, ada, days=None, by=endless).expires_at is None


def test_what_has_ended_makes_no_token(session: Session, ada: int) -> None:
    parent = make(session, ada, scope="admin")
    holder = accounts.token_caller(session, text=parent.token)
    login = accounts.login_caller(session, key=begin(session, ada), secret=SECRET)
    accounts.set_password(session, user_id=ada, password_digest="new")
    for by in (holder, login):
        with pytest.raises(Unauthorized):
            make(session, ada, by=by)


def test_only_a_token_s_hash_is_stored(session: Session, ada: int) -> None:
    made = make(session, ada)
    row = session.scalars(select(TokenRow)).one()
    assert made.token.startswith(row.prefix)
    assert made.token not in (row.token_hash, row.prefix, row.name)
    assert accounts.token_caller(session, text=f"eta_{row.token_hash}") is None
    assert "token" not in accounts.list_tokens(session, user_id=ada)[0].model_dump()


@pytest.mark.parametrize(
    ("role", "scope", "allowed"),
    [
        ("admin", "admin", "admin"),
        ("admin", "write", "member"),
        ("admin", "read", "viewer"),
        ("member", "admin", "member"),
        ("viewer", "admin", "viewer"),
        ("viewer", "write", "viewer"),
    ],
)
def test_a_scope_takes_rights_away_and_gives_none(
    session: Session, role: Role, scope: Scope, allowed: Role
) -> None:
    user = new_user(session, "bob", role)
    caller = accounts.token_caller(session, text=make(session, user.id, scope=scope).token)
    assert caller is not None
    assert caller.role == allowed


def test_a_use_is_noted_once_a_minute(session: Session, ada: int) -> None:
    made = make(session, ada)
    assert accounts.token_use_is_due(session, token_id=made.id)
    accounts.note_token_use(session, token_id=made.id)
    assert not accounts.token_use_is_due(session, token_id=made.id)
    assert accounts.list_tokens(session, user_id=ada)[0].last_used_at is not None
    session.execute(update(TokenRow).values(last_used_at=clock(-61)))
    assert accounts.token_use_is_due(session, token_id=made.id)


def test_other_people_s_tokens_cannot_be_revoked(session: Session, ada: int) -> None:
    made = make(session, ada)
    bob = new_user(session, "bob").id
    with pytest.raises(NotFound):
        accounts.revoke_token(session, token_id=made.id, user_id=bob)
    accounts.revoke_token(session, token_id=made.id, user_id=ada)
    assert accounts.token_caller(session, text=made.token) is None
    with pytest.raises(NotFound):
        accounts.revoke_token(session, token_id=made.id, user_id=ada)


def test_a_revoked_token_makes_room_for_another(
    session: Session, ada: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "MOST_TOKENS", 2)
    first, _ = make(session, ada), make(session, ada)
    with pytest.raises(Conflict, match="at most 2 tokens"):
        make(session, ada)
    accounts.revoke_token(session, token_id=first.id, user_id=ada)
    assert make(session, ada).token


def test_an_admin_is_always_left(session: Session, ada: int) -> None:
    root = accounts.find_user(session, name="root").id
    for taking in (
        lambda: accounts.delete_user(session, user_id=root),
        lambda: accounts.change_user(session, user_id=root, disabled=True),
        lambda: accounts.change_user(session, user_id=root, role="member"),
    ):
        with pytest.raises(Conflict, match="only admin"):
            taking()
    accounts.change_user(session, user_id=ada, role="admin")
    accounts.delete_user(session, user_id=root)
    assert accounts.user_names(session) == ["ada"]


def test_an_admin_who_is_locked_out_is_none(session: Session, ada: int) -> None:
    root = accounts.find_user(session, name="root").id
    accounts.change_user(session, user_id=ada, role="admin")
    accounts.change_user(session, user_id=ada, disabled=True)
    with pytest.raises(Conflict, match="only admin"):
        accounts.delete_user(session, user_id=root)


def test_a_name_is_given_once(session: Session, ada: int) -> None:
    with pytest.raises(Conflict, match="already an account"):
        new_user(session, "ada")
