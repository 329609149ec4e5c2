"""Options of a model or a method: what each takes, its default, its JSON schema; and known names.

A user's file says `options={"width": whole(4, 512), "norm": choice("batch", "none")}`; whoever
reads a sweep, draws a form or writes a manifest asks these. Nothing here needs torch.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from ib_core.errors import InvalidSpec, MisuseError, UnknownName
from ib_core.written import NumberKind, Unreadable, check_number, read_number, shown

#: Names that a sweep uses for itself.
RESERVED = frozenset(
    [
        *("code", "method_code", "lr", "seed", "decay", "restart", "isgd_form", "inner_steps"),
        *("validation", "own"),
        *("schedule", "warmup", "tau", "power"),
    ]
)
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Option:
    """One option: a number between two ends, or one of a few values.

    Attributes:
        kind: `whole`, `number` or `choice`.
        low: The lowest number.
        high: The highest.
        choices: The values of a choice.
        default: What is taken where nobody says anything.
        settled: Whether that is said, so that None is a value as any other.
        help: One sentence for forms and tables.
        later: Whether it came after trials without it: its default is not said, so that they keep
            their addresses.
    """

    kind: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Value, ...] = ()
    default: Value = None
    help: str = ""
    later: bool = False
    settled: bool = False

    def read(self, name: str, value: Any, *, typed: bool = False) -> Value:
        """Return the canonical value of what came, or say what would work.

        Args:
            name: The option's, for the sentence.
            value: What came.
            typed: Whether a person typed it, so that a text stands for a number.
        """
        try:
            if self.kind == "choice":
                return self._chosen(name, value, typed)
            number = NumberKind(
                f"The option {name}", self.low, self.high, whole=self.kind == "whole", needed=True
            )
            if isinstance(value, str) and typed:
                return read_number(value, number)
            return check_number(value, number)
        except Unreadable as error:
            raise InvalidSpec(str(error), field=f"vary.{name}") from None

    def _chosen(self, name: str, value: Any, typed: bool) -> Value:
        for one in self.choices:
            if value == one and isinstance(value, bool) == isinstance(one, bool):
                return one
            if typed and str(value).strip().lower() == str(one).lower():
                return one
        known = ", ".join(_written(one) for one in self.choices)
        raise Unreadable(f"The option {name} must be one of {known}; got {shown(value)}.")

    def schema(self) -> dict[str, Any]:
        """Return what is taken as JSON schema."""
        found: dict[str, Any] = {"description": self.help} if self.help else {}
        if self.kind == "choice":
            found["enum"] = list(self.choices)
        else:
            found["type"] = "integer" if self.kind == "whole" else "number"
            found |= {"minimum": self.low, "maximum": self.high}
        return {**found, "default": self.default}


def whole(low: int, high: int, default: int | None = None, help: str = "") -> Option:
    """Return an option that takes whole numbers from `low` to `high`."""
    return Option("whole", *_ends(low, high), default=default, help=help)


def number(low: float, high: float, default: float | None = None, help: str = "") -> Option:
    """Return an option that takes numbers from `low` to `high`."""
    return Option("number", *_ends(low, high), default=default, help=help)


_UNSAID: Any = object()


def choice(*values: Value, default: Value = _UNSAID, help: str = "", later: bool = False) -> Option:
    """Return an option that takes one of these values."""
    for one in values:
        plain = one is None or isinstance(one, str | int | float)
        if not plain or (isinstance(one, float) and not math.isfinite(one)):
            raise MisuseError(
                f"A choice is between texts, finite numbers, True, False and None; got {one!r}. "
                "Give it a name, and let the function look up what is meant."
            )
    if len(values) < 1 or len({_written(one).lower() for one in values}) < len(values):
        raise MisuseError("A choice has at least one value, and each once.")
    settled = default is not _UNSAID
    chosen = default if settled else None
    return Option("choice", choices=values, default=chosen, help=help, later=later, settled=settled)


def _ends(low: float, high: float) -> tuple[float, float]:
    numbers = isinstance(low, int | float) and isinstance(high, int | float)
    if not numbers or not math.isfinite(low) or not math.isfinite(high):
        raise MisuseError(
            f"An option's range has two finite ends, as number(0, 1e6); got {low!r} to {high!r}."
        )
    if not low <= high:
        raise MisuseError(f"An option's range must rise; got {low} to {high}.")
    return low, high


def _written(value: Value) -> str:
    return value if isinstance(value, str) else str(value).lower()


def with_defaults(
    options: Mapping[str, Option],
    factory: Callable[..., Any],
    what: str,
    taken: Collection[str] = RESERVED,
) -> dict[str, Option]:
    """Return the options with the defaults of the function that takes them.

    Args:
        options: By name.
        factory: The function.
        what: Whose they are, for the sentence.
        taken: Names that mean something else already.

    Raises:
        MisuseError: If the function takes no argument of that name, or there is no default.
    """
    found = {}
    parameters = _parameters(factory)
    for name, option in options.items():
        if not isinstance(option, Option):
            raise MisuseError(
                f"The option {name!r} of {what} must be whole(...), number(...) or choice(...); "
                f"got {type(option).__name__}."
            )
        if name in taken:
            raise MisuseError(f"A sweep has a {name!r} of its own; call {what}'s option otherwise.")
        if parameters is not None and name not in parameters:
            raise MisuseError(f"{what} has an option {name!r} but its function takes none.")
        default, settled = option.default, option.settled or option.default is not None
        if not settled and parameters is not None:
            given = parameters[name].default
            settled = given is not inspect.Parameter.empty
            default = given if settled else None
        if not settled and option.kind == "choice":
            default = option.choices[0]
        elif default is None and option.kind != "choice":
            raise MisuseError(f"Give the option {name!r} of {what} a default.")
        found[name] = replace(option, default=option.read(name, default), settled=True)
    return found


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Return what a function takes by name; None where it takes anything or cannot be asked."""
    try:
        found = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return None
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in found.values())
    return None if anything else found


def read_options(
    options: Mapping[str, Option], given: Mapping[str, Any], what: str, *, typed: bool = False
) -> dict[str, Value]:
    """Return every option's value, the defaults where none is given.

    Raises:
        UnknownName: For an option there is not.
        InvalidSpec: For a value that is not taken.
    """
    for name in given:
        if name not in options:
            if not options:
                raise InvalidSpec(f"{what} has no options; got {name!r}.", field=f"vary.{name}")
            raise UnknownName(f"option of {what}", name, options, field=f"vary.{name}")
    return {
        name: option.read(name, given[name], typed=typed) if name in given else option.default
        for name, option in options.items()
    }


def options_schema(options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the JSON schema of an object with these options."""
    return {
        "type": "object",
        "properties": {name: option.schema() for name, option in options.items()},
        "additionalProperties": False,
    }


# --- Tasks and methods by name: those this process has the code of, or was only told about


T = TypeVar("T")


class Known(MutableMapping[str, T]):
    """Things by name; what the present block was told stands before what is here.

    A worker has users' code; whoever takes requests from others must never run it, and reads their
    sweeps by what workers announced (`ib_core.announced`). Two versions of one name may be
    announced at once, so what is told holds for the block that reads one request, and for nobody
    beside it.
    """

    def __init__(self, what: str) -> None:
        self._here: dict[str, T] = {}
        self._told: ContextVar[Mapping[str, T]] = ContextVar(
            f"told {what}", default=MappingProxyType({})
        )

    @contextmanager
    def told(self, things: Mapping[str, T]) -> Iterator[None]:
        """Know these, too, for as long as the block runs, in its own thread only."""
        token = self._told.set({**self._told.get(), **things})
        try:
            yield
        finally:
            self._told.reset(token)

    def __getitem__(self, name: str) -> T:
        told = self._told.get()
        return told[name] if name in told else self._here[name]

    def __setitem__(self, name: str, thing: T) -> None:
        self._here[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._here[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._here, **self._told.get()})

    def __len__(self) -> int:
        return len({*self._here, *self._told.get()})
