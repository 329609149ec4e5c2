"""Errors that say what came and what would work."""

import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class IBError(Exception):
    """Base of every error a caller may meet; its message is one sentence for a person.

    Attributes:
        code: Stable machine-readable name, used in the API's error shape.
        field: The input the message is about, when there is one.
        hint: What to do next, when the message does not already say it.
    """

    code = "error"

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint


class UnknownName(IBError):
    """A name that is in no registry."""

    code = "unknown_name"

    def __init__(
        self, kind: str, given: str, known: Iterable[str], *, field: str | None = None
    ) -> None:
        names = ", ".join(sorted(known))
        super().__init__(
            f"There is no {kind} called {given!r}. Known: {names}.", field=field or kind
        )


class InvalidSpec(IBError):
    """A sweep or setting that cannot be run as asked."""

    code = "invalid_spec"


class MissingData(IBError):
    """A dataset that is not on this machine; the message says how to get it."""

    code = "missing_data"


class CorruptData(IBError):
    """A dataset file that is truncated, altered or not what its name says."""

    code = "corrupt_data"


class MisuseError(IBError):
    """A layer or optimizer used in a way that would give wrong numbers silently."""

    code = "misuse"


def lookup(kind: str, name: str, registry: Mapping[str, T], *, field: str | None = None) -> T:
    """Return ``registry[name]``, or raise `UnknownName` listing what is known."""
    try:
        return registry[name]
    except KeyError:
        raise UnknownName(kind, name, registry, field=field) from None


#: Folders of code that is not the user's: installed packages, Python's own, and this one.
_NOT_THEIRS = ("site-packages", "dist-packages", "lib/python3", "ib_core", "<frozen")


def said_where(error: BaseException) -> str:
    """Return what an error says, with the file and line of the user's code it came from."""
    said = str(error).strip().splitlines()
    words = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
    if isinstance(error, IBError):
        words = error.message
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}: {error.msg}"
    theirs = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(part in frame.filename for part in _NOT_THEIRS)
    ]
    if not theirs:
        return words
    last = theirs[-1]
    return f"{Path(last.filename).name}, line {last.lineno}, in {last.name}: {words}"
