"""The link for the first admin works once, and only for whoever has it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.orm import Session

from backend.db import transaction
from backend.errors import Forbidden
from backend.services import accounts
from tests.backend.accounts import SECRET


def accept(session: Session, key: str, name: str = "ada") -> None:
    accounts.accept_invitation(session, secret=SECRET, key=key, name=name, password_digest="digest")


def test_the_link_makes_one_admin(session: Session) -> None:
    key = accounts.invitation(session, secret=SECRET)
    assert key is not None
    assert accounts.invitation(session, secret=SECRET[::-1]) != key
    with pytest.raises(Forbidden):
        accept(session, key[:-1])
    accept(session, key)
    ada = accounts.find_user(session, name="ada")
    assert ada.role == "admin"
    (entry,) = accounts.audit_page(session).items
    assert (entry.action, entry.username, entry.user_id) == ("user.create", "ada", ada.id)
    assert accounts.invitation(session, secret=SECRET) is None
    with pytest.raises(Forbidden):
        accept(session, key, "bob")


def test_two_who_come_at_once_are_not_both_first(database: str) -> None:
    del database
    with transaction() as session:
        key = accounts.invitation(session, secret=SECRET) or ""

    def come(name: str) -> bool:
        try:
            with transaction() as session:
                accept(session, key, name)
        except Forbidden:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(come, ["ada", "bob", "cyd", "dan", "eve", "fay"])) == 1
