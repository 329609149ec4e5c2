"""Passwords: argon2 digests, and which ones are too weak to have."""

import secrets
from dataclasses import dataclass
from functools import lru_cache
from threading import BoundedSemaphore

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from backend.errors import InvalidInput

HASHER = PasswordHash((Argon2Hasher(),))
SHORTEST = 10
LONGEST = 200
FEWEST_DIFFERENT = 5

#: Each digest takes 64 MB: strangers must not be able to ask for many at once.
_AT_ONCE = BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Password:
    """A password that may be used: as its owner types it, and as it is stored."""

    text: str
    digest: str


def choose(username: str, wish: str | None = None) -> Password:
    """Return a password with its digest; one is made up where none is wished for.

    To be called outside transactions: a digest takes a tenth of a second on purpose.

    Raises:
        InvalidInput: It would be guessed too easily.
    """
    text = secrets.token_urlsafe(12) if wish is None else wish
    _refuse_weak(text, username)
    with _AT_ONCE:
        return Password(text, HASHER.hash(text))


def matches(text: str, digest: str | None) -> bool:
    """Return whether a password is the one of a digest.

    Takes as long without a digest: how long a refusal takes must not tell which accounts exist.
    """
    if len(text) > LONGEST:
        return False
    with _AT_ONCE:
        same = HASHER.verify(text, digest or _decoy())
    return same and digest is not None


@lru_cache(maxsize=1)
def _decoy() -> str:
    return HASHER.hash(secrets.token_urlsafe(12))


def _refuse_weak(text: str, username: str) -> None:
    if not SHORTEST <= len(text) <= LONGEST:
        raise InvalidInput(
            f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(text)}.",
            field="password",
        )
    folded = text.casefold()
    if len(set(folded)) < FEWEST_DIFFERENT or folded in (username, username * 2):
        raise InvalidInput(
            "This password would be guessed at once.",
            field="password",
            hint="Take a few words that nobody else would put together.",
        )
