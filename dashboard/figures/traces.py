"""Traces as plain data."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

Trace = dict[str, Any]

#: More curves than this in one picture of losses by step could not be told apart.
MOST_OPENED = 20


def scatter(**properties: Any) -> Trace:
    """Return a scatter trace.

    A figure checks what it is given; a `go.Scatter` would be checked before and copied besides,
    which takes half of the time of pictures that follow a slider.
    """
    return {"type": "scatter", **properties}


def opens(trials: Iterable[int]) -> str:
    """Return what a click on a point opens, as the address has it: at most `MOST_OPENED` trials."""
    return ",".join(map(str, islice(trials, MOST_OPENED)))
