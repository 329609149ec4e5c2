"""What was made for one person is handed to all who look at the same: the dashboard's one cache.

One rule says when something is stale: **the version of what it shows decides.** Whoever asks
names the version. The same one is answered from memory, another one is made and takes the place
of the one before, which nobody will ask for again. What the version is:

* of a study's pictures and numbers: its results. While it runs they follow at most every
  `REDRAW_SECONDS` (`ShownVersions`), and are the newest as soon as it rests;
* of what the API gives no version for, as the catalogue: the time, in steps (`now_in_steps`);
* of what never changes under its name, as a script: nothing at all.

Written by hand: a coroutine that runs once for all who wait for it is what `cachetools` has not,
a version that takes the place of another what `async-lru` has not.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

#: While a study runs its pictures follow at most so often: its worker needs the processor, too.
REDRAW_SECONDS = 4.0
#: Studies whose shown version is remembered.
MOST_STUDIES = 64


class Cache(Generic[T]):
    """Things by what they are of, one version of each.

    Args:
        most: How many are kept; the one that was asked for longest ago goes first.
        owner: Whose they are: what one API answered is no answer of another's.
    """

    def __init__(self, most: int, owner: Callable[[], object] = lambda: None) -> None:
        self._most = most
        self._owner = owner
        self._made: OrderedDict[Hashable, tuple[Hashable, asyncio.Task[T]]] = OrderedDict()

    async def get(self, key: Hashable, version: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return what `make` gives, or gave, for this version; a failure is not kept."""
        place = (self._owner(), key)
        kept, task = self._made.get(place, (None, None))
        if task is None or kept != version or not _usable(task):
            task = asyncio.ensure_future(_awaited(make))
            self._made[place] = (version, task)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        self._made.move_to_end(place)
        # Whoever leaves does not take along what others wait for.
        return task.result() if task.done() else await asyncio.shield(task)

    def forget(self, key: Hashable) -> None:
        """Have a thing made anew for whoever asks next."""
        self._made.pop((self._owner(), key), None)


def _usable(task: "asyncio.Task[T]") -> bool:
    """Return whether a task has given something, or will to who waits in the present loop."""
    if task.done():
        return not task.cancelled() and task.exception() is None
    return task.get_loop() is asyncio.get_running_loop()


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


class ShownVersions:
    """Which version of every study is shown at the moment, to everybody."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: OrderedDict[int, tuple[str, float]] = OrderedDict()

    def of(self, study_id: int, newest: str, *, running: bool) -> str:
        """Return the version to show: the newest at rest, else one that may be seconds old."""
        now = self._clock()
        before, since = self._shown.get(study_id, (newest, now if running else -math.inf))
        if newest != before and (not running or now - since >= REDRAW_SECONDS):
            before, since = newest, now if running else -math.inf
        self._shown[study_id] = (before, since)
        self._shown.move_to_end(study_id)
        while len(self._shown) > MOST_STUDIES:
            self._shown.popitem(last=False)
        return before


def now_in_steps(seconds: float) -> float:
    """Return a version that lasts so long, for what has none of its own."""
    return time.monotonic() // seconds
