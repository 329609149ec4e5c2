"""Names known in this process: those it has the code of, and those it was only told about.

A worker has users' code; whoever takes requests from others must never run it, and reads their
sweeps by what workers announced (`ib_core.announced`). Two versions of one name may be announced at
once, so what is told holds for the block that reads one request, and for nobody beside it.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")


class Known(MutableMapping[str, T]):
    """Things by name; what the present block was told stands before what is here."""

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
