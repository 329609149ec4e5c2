"""Patience with a database that is locked, full, read-only or away."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from backend.db import PASSING_FAULTS, reason

T = TypeVar("T")

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0


def backoff(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return min(FIRST_WAIT * 2.0 ** min(failures - 1, 10), LONGEST_WAIT)


def until_it_works(
    action: Callable[[], T], *, what: str, give_up: Callable[[float], bool] = lambda _: False
) -> T:
    """Call `action` until the database lets it, for as long as `give_up(seconds)` is false."""
    failures, began = 0, time.monotonic()
    while True:
        try:
            return action()
        except PASSING_FAULTS as error:
            failures += 1
            if give_up(time.monotonic() - began):
                raise
            log.warning(
                "Cannot %s (%s); trying again in %.1f s.", what, reason(error), backoff(failures)
            )
            time.sleep(backoff(failures))
