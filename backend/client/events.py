"""Reads a stream of server-sent events."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    name: str
    data: str
    id: str = ""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a stream; comments (keep-alives) and incomplete ones are left out."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield Event(
                    name=(fields.get("event") or ["message"])[-1],
                    data="\n".join(fields["data"]),
                    id=(fields.get("id") or [""])[-1],
                )
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
