"""Logging in, on both databases: the right password only, and not by trying them all."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, update

from backend.db import clock, dispose_engines, get_engine, transaction
from backend.errors import TooManyAttempts, Unauthorized
from backend.models import LoginAttemptsRow, SessionRow, UserRow
from backend.services import accounts
from backend.services.accounts import Login, log_in, passwords
from tests.backend.accounts import PASSWORD, SECRET, new_user


def attempt(username: str = "ada", password: str = PASSWORD, address: str = "10.0.0.1") -> Login:
    return log_in(
        get_engine(),
        username=username,
        password=password,
        address=address,
        secret=SECRET,
        hours=1,
    )


@pytest.fixture
def ada(database: str) -> int:
    del database
    with transaction() as session:
        return new_user(session, "ada").id


def fail(times: int, **changes: Any) -> None:
    for _ in range(times):
        with pytest.raises(Unauthorized):
            attempt(password="wrong", **changes)


def test_a_login_is_a_new_key_of_which_only_a_digest_is_stored(ada: int) -> None:
    first, second = attempt(), attempt(" ADA ")
    assert first.key != second.key
    assert first.caller.user_id == ada
    with transaction() as session:
        stored = session.scalars(select(SessionRow.key_hash)).all()
        assert len(stored) == 2
        assert not {first.key, second.key} & set(stored)
        assert accounts.login_caller(session, key=first.key, secret=SECRET) == first.caller
        assert accounts.login_caller(session, key=first.key, secret=SECRET[::-1]) is None
        assert session.scalar(select(UserRow.last_login_at)) is not None


def test_an_unknown_name_and_a_wrong_password_are_told_alike(ada: int) -> None:
    with pytest.raises(Unauthorized) as wrong:
        attempt(password="wrong")
    with pytest.raises(Unauthorized) as unknown:
        attempt("nobody")
    assert wrong.value.message == unknown.value.message


def test_who_is_locked_out_cannot_log_in(ada: int) -> None:
    with transaction() as session:
        new_user(session, "root", "admin")
        accounts.change_user(session, user_id=ada, disabled=True)
    with pytest.raises(Unauthorized):
        attempt()


def test_guessing_one_account_is_refused_even_with_the_right_password_then(ada: int) -> None:
    fail(passwords.FREE_PER_ACCOUNT)
    dispose_engines()  # as a restart would
    with pytest.raises(TooManyAttempts, match=r"Try again in \d+ seconds") as caught:
        attempt(address="10.9.9.9")
    assert 0 < caught.value.seconds <= 30


def test_the_wait_ends_doubles_and_a_success_forgets_it(ada: int) -> None:
    fail(passwords.FREE_PER_ACCOUNT)
    _wait(31)
    fail(1)
    with pytest.raises(TooManyAttempts) as caught:
        attempt()
    assert 30 < caught.value.seconds <= 60
    _wait(61)
    attempt()
    fail(passwords.FREE_PER_ACCOUNT - 1)
    attempt()


def test_guessing_many_accounts_from_one_address_is_refused(ada: int) -> None:
    for number in range(passwords.FREE_PER_ADDRESS):
        fail(1, username=f"guess{number}")
    with pytest.raises(TooManyAttempts):
        attempt()
    attempt(address="10.0.0.2")


def test_one_s_own_right_password_does_not_forgive_guesses_at_others(ada: int) -> None:
    for number in range(passwords.FREE_PER_ADDRESS - 1):
        fail(1, username=f"guess{number}")
    attempt()
    fail(1, username="one more")
    with pytest.raises(TooManyAttempts):
        attempt()


def test_an_ipv6_household_is_one_address(ada: int) -> None:
    for number in range(passwords.FREE_PER_ADDRESS):
        fail(1, username=f"guess{number}", address=f"2001:db8::{number + 1:x}")
    with pytest.raises(TooManyAttempts):
        attempt(address="2001:db8::ffff")
    attempt(address="2001:db8:0:1::1")


def test_after_an_hour_guesses_are_forgotten(ada: int) -> None:
    fail(passwords.FREE_PER_ACCOUNT)
    _wait(passwords.FORGOTTEN_AFTER_SECONDS + 1)
    fail(passwords.FREE_PER_ACCOUNT)
    with pytest.raises(TooManyAttempts) as caught:
        attempt()
    assert caught.value.seconds <= passwords.FIRST_WAIT_SECONDS  # as after the first time


def test_right_logins_are_never_throttled(ada: int) -> None:
    for _ in range(passwords.FREE_PER_ACCOUNT * 2):
        attempt()


def test_guesses_that_come_all_at_once_are_counted_one_by_one(ada: int) -> None:
    def guess(number: int) -> str:
        try:
            attempt(password=f"wrong {number}")
        except (Unauthorized, TooManyAttempts) as error:
            return error.code
        return "in"

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(guess, range(24)))
    assert codes.count("unauthorized") == passwords.FREE_PER_ACCOUNT


def _wait(seconds: float) -> None:
    """Let time pass, as far as the throttle knows."""
    with transaction() as session:
        session.execute(update(LoginAttemptsRow).values(last_at=clock(-seconds)))
