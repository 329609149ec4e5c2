"""Passwords: weak ones are refused, digests tell nothing."""

import pytest

from backend.errors import InvalidInput
from backend.services import accounts
from backend.services.accounts import passwords


def test_a_digest_is_argon2_and_different_each_time() -> None:
    one, two = (accounts.choose_password("ada", "a horse and a staple") for _ in range(2))
    assert one.digest.startswith("$argon2id$")
    assert one.digest != two.digest
    assert passwords.password_matches("a horse and a staple", one.digest)
    assert not passwords.password_matches("a horse and a stable", one.digest)


@pytest.mark.parametrize("weak", ["short", "aaaaaaaaaaaaaa", "longusername", "x" * 201, ""])
def test_a_weak_password_is_refused_without_repeating_it(weak: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        accounts.choose_password("longusername", weak)
    assert not weak or weak not in caught.value.message


def test_a_made_up_password_is_strong_enough_and_new_each_time() -> None:
    one, two = (accounts.choose_password("ada") for _ in range(2))
    assert one.text != two.text
    assert len(one.text) >= 16


def test_nobody_s_password_is_never_right() -> None:
    assert not passwords.password_matches("a horse and a staple", None)
    assert not passwords.password_matches("x" * 1000, None)
