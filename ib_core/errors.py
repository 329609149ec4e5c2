"""Errors that say what came and what would work."""

import inspect
import re
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

T = TypeVar("T")


class IBError(Exception):
    """Base of every error a caller may meet; its message is one sentence for a person.

    Attributes:
        code: Stable machine-readable name, used in the API's error shape.
        field: The input the message is about, when there is one.
        hint: What to do next, when the message does not already say it.
        where: The user's file and line that it is about, where that is known.
    """

    code = "error"
    where: str | None = None

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint

    def at(self, where: str | None) -> Self:
        """Return itself, said of a place; of none at all where that is empty."""
        self.where = where
        return self


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


#: Files, and folders of packages, that a user brought along: theirs wherever they lie.
THEIRS: set[Path] = set()
#: Python's own folders, and those of this package.
_HOME = Path(__file__).resolve().parent.parent
_OURS = {
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
    *(_HOME / name for name in ("ib_core", "backend", "worker", "dashboard")),
}


def is_installed(place: Path) -> bool:
    """Return whether a file is Python's, this package's or another installed one's."""
    folders = {*place.parents}
    installed = not {"site-packages", "dist-packages"}.isdisjoint(place.parts)
    return installed or not folders.isdisjoint(_OURS)


def _is_theirs(place: str) -> bool:
    if place.startswith("<frozen"):
        return False
    file = Path(place)
    return not THEIRS.isdisjoint({file, *file.parents}) or not is_installed(file)


#: Of what a user's code says so many characters are passed on.
LONGEST_WORDS = 500


def _words(error: BaseException) -> str:
    """Return the first line of what an error says, cut and printable."""
    try:
        line = (str(error).strip().splitlines() or [""])[0][: LONGEST_WORDS + 1]
    except Exception:
        return "it cannot be told"
    line = "".join(one if one.isprintable() else " " for one in line)
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]}..."


def said_where(error: BaseException, made_by: Any = None) -> str:
    """Return what an error says, with the file and line of the user's code it came from.

    Args:
        error: What was raised.
        made_by: The function or class of the user's that made what raised it: where none of their
            lines was running, as in an `nn.Sequential`, its first line is told.
    """
    said = _words(error)
    words = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, IBError):
        words = error.message
    if isinstance(error, MemoryError) and not said:
        words = "MemoryError: it asked for more memory than it may have"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_theirs(frame.filename)]
    if not theirs:
        told = getattr(error, "where", None)
        place = first_line(made_by) if told is None else told
        return f"{place}: {words}" if place else words
    last = theirs[-1]
    return f"{Path(last.filename).name}, line {last.lineno}, in {last.name}: {words}"


#: A line of a trace that `faulthandler` writes.
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


def place_in(trace: str) -> str | None:
    """Return where in a user's code a process was, by `faulthandler`; None if in none of it."""
    for file, line, name in _FRAME.findall(trace):
        if _is_theirs(file):
            return f"{Path(file).name}, line {line}, in {name}"
    return None


def first_line(made_by: Any) -> str | None:
    """Return where a function or class of the user's begins; None if it is not theirs."""
    made_by = getattr(made_by, "func", made_by)  # of a functools.partial
    if not inspect.isroutine(made_by) and not inspect.isclass(made_by):
        made_by = type(made_by)
    try:
        file, line = inspect.getfile(made_by), inspect.getsourcelines(made_by)[1]
    except (TypeError, OSError):
        return None
    if not _is_theirs(file):
        return None
    return f"{Path(file).name}, line {line}, in {made_by.__name__}"
