"""People who look at a study see one picture of it, drawn once for all of them."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

#: While a study runs its pictures follow at most so often: its worker needs the processor, too.
REDRAW_SECONDS = 4.0
#: Studies that are remembered.
MOST_STUDIES = 64


class Pace:
    """Which version of every study is shown at the moment, to everybody."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: OrderedDict[int, tuple[str, float]] = OrderedDict()

    def shown(self, study_id: int, version: str, *, running: bool) -> str:
        """Return the version to show: the newest at rest, else one that may be seconds old."""
        now = self._clock()
        before, since = self._shown.get(study_id, (version, now if running else -math.inf))
        if version != before and (not running or now - since >= REDRAW_SECONDS):
            before, since = version, now if running else -math.inf
        self._shown[study_id] = (before, since)
        self._shown.move_to_end(study_id)
        while len(self._shown) > MOST_STUDIES:
            self._shown.popitem(last=False)
        return before


class Shared(Generic[T]):
    """What was made for one person is handed to all who ask for the same.

    Args:
        most: How many answers are kept; the one that was asked for longest ago goes first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, asyncio.Task[T]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return what `make` gives, or gave, for the key; a failure is not kept."""
        task = self._made.get(key)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.ensure_future(_awaited(make))
            self._made[key] = task
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._made.get(key) is task:
                del self._made[key]
            raise


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()
