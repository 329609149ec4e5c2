"""When to stop: a flag that all processes of a worker see, and patience with the database."""

import logging
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import RawValue
from typing import TypeVar

from backend.db import PASSING_FAULTS, reason

T = TypeVar("T")

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0
#: How long a stopping worker waits for a database that does not answer.
STOPPING_SECONDS = 10.0


class StopFlag:
    """Shared by processes that are forked after it was made; each may also raise its own.

    Without a lock on purpose: a process that is killed while it looks must not take a lock along
    that the others then wait for.
    """

    def __init__(self) -> None:
        self._everywhere = RawValue("b", 0)
        self._here = False

    def set(self) -> None:
        """Raise the flag for everybody: the whole worker stops."""
        self._everywhere.value = 1

    def set_here(self) -> None:
        """Raise the flag in this process only: it alone was told to stop what it does."""
        self._here = True

    def clear_here(self) -> None:
        """Lower this process's own flag; the shared one stays as it is."""
        self._here = False

    def is_set(self) -> bool:
        """Return whether the flag is up, here or everywhere."""
        return self._here or bool(self._everywhere.value)


def backoff(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return min(FIRST_WAIT * 2.0 ** min(failures - 1, 10), LONGEST_WAIT)


def until_it_works(
    action: Callable[[], T], *, what: str, give_up: Callable[[float], bool] = lambda _: False
) -> T:
    """Call `action` until the database lets it, for as long as `give_up(seconds)` is false.

    It may be locked, full, read-only or away meanwhile.
    """
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
