"""The dashboard's only way to numbers: calls of the API as the person at the browser; one cache.

Who that person is, and what to offer them, stands here, too: what they may really do is the API's
business, these answers only spare people buttons that would be refused.

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
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar, cast

import dash
import httpx
from fastapi import FastAPI

from backend.client import ApiError, AsyncClient, Call, ServerAway, calls
from backend.schemas import (
    CSRF_HEADER,
    CatalogRead,
    LearningSeriesRead,
    LossMetric,
    MeRead,
    Metric,
    RecordingRead,
    SeriesRead,
    StudyRead,
    TaskRead,
)

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


#: What asking can end in besides an answer; each is a sentence for a person.
Trouble = (ApiError, ServerAway)

#: More series of a study than this are not asked for by name.
MOST_NAMED = 60
#: Besides cookies, what of a browser's request tells the API whose it is.
HANDED_ON = ("Authorization", CSRF_HEADER)


class Sender(Protocol):
    """Whatever sends calls: a client, or a test's stand-in."""

    async def send(self, call: Call[T]) -> T:
        """Make a call and return its answer."""
        ...


def connect(server: FastAPI, client: Sender) -> None:
    """Give an app the client its pages ask."""
    server.state.dashboard_client = client


def asked_client() -> Sender:
    """Return what the current app's pages ask."""
    return cast(Sender, dash.get_app().server.state.dashboard_client)


def in_process_client(api: Any) -> AsyncClient:
    """Return a client that talks to an API in this process, without any network."""
    return AsyncClient(app=api)


def api_address() -> str:
    """Return where a browser reaches the API: on this very server unless the app says otherwise."""
    return str(getattr(dash.get_app().server.state, "api_address", ""))


async def ask(call: Call[T]) -> T:
    """Make a call as whoever sits at the browser.

    Raises:
        ApiError: With the API's own sentence.
        ServerAway: If nobody answers.
    """
    return await asked_client().send(_as_visitor(call))


def _as_visitor(call: Call[T]) -> Call[T]:
    """Hand the browser's session on, so that the API decides what this person may see and do."""
    try:
        cookies, headers = dict(dash.ctx.cookies or {}), dict(dash.ctx.headers or {})
    except (dash.exceptions.MissingCallbackContextException, LookupError):
        return call
    own = {name: headers[name.lower()] for name in HANDED_ON if name.lower() in headers}
    if cookies:
        own["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return replace(call, headers={**call.headers, **own}) if own else call


def sentence(trouble: Exception) -> str:
    """Return what to tell the person when asking failed."""
    if isinstance(trouble, ApiError):
        hint = trouble.hint or ""
        # Some messages already end in what their hint begins with.
        return trouble.message if hint[:20] in trouble.message else f"{trouble.message} {hint}"
    if isinstance(trouble, ServerAway | httpx.HTTPError):
        return "The API does not answer. This page tries again by itself."
    return "Something went wrong while drawing this page."


async def get_visitor() -> MeRead:
    """Return who is asking."""
    return await ask(calls.me())


def may_write(visitor: MeRead) -> bool:
    """Return whether somebody may create things."""
    return visitor.role != "viewer"


def may_change(visitor: MeRead, study: StudyRead) -> bool:
    """Return whether a study is somebody's to change."""
    return visitor.role == "admin" or (may_write(visitor) and study.owner == visitor.username)


#: The catalogue of tasks and methods hardly ever changes, and is asked for once a minute at most.
FRESH_SECONDS = 60.0
#: More tasks than this a title counts.
MOST_NAMED = 3
CATALOG: Cache[CatalogRead] = Cache(4, owner=asked_client)


async def get_catalog(*, fresh: bool = False) -> CatalogRead:
    """Return what can be run; `fresh` asks again, for whether data has arrived."""
    if fresh:
        CATALOG.forget("catalog")
    version = now_in_steps(FRESH_SECONDS)
    return await CATALOG.get("catalog", version, lambda: ask(calls.catalog()))


async def task_title(names: list[str]) -> str:
    """Return what a figure about these tasks is called: all of them, or how many."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} tasks"
    tasks = {task.name: task for task in (await get_catalog()).tasks} if names else {}
    titles = [tasks[name].title if name in tasks else name for name in names]
    common = {title.partition(", ")[2] for title in titles}
    if len(titles) < 2 or len(common) > 1:
        return " and ".join(titles)
    heads = [title.partition(", ")[0] for title in titles]
    return ", ".join(filter(None, (f"{', '.join(heads[:-1])} and {heads[-1]}", *common)))


async def task_names(names: Sequence[str]) -> dict[str, str]:
    """Return what tasks are called beside each other: what is learnt, and how if that is one."""
    known = {task.name: task.title for task in (await get_catalog()).tasks}
    parts = {one: known[one].partition(", ") for one in names if one in known}
    heads = [head for head, _, _ in parts.values()]
    return {
        name: head if heads.count(head) == 1 else f"{head} ({rest.replace(', ', ' ')})"
        for name, (head, _, rest) in parts.items()
    }


def find_task(catalog: CatalogRead, name: str | None) -> TaskRead | None:
    """Return a task by name."""
    return next((task for task in catalog.tasks if task.name == name), None)


async def learning_of(
    series: Sequence[SeriesRead], metric: Metric, smooth: int
) -> dict[str, LearningSeriesRead]:
    """Return losses over training by series' id, asked of every study once.

    Args:
        series: Whose; more than the API takes by name are asked for as a whole.
        metric: What of them; time has no curve, and gives the training loss.
        smooth: Over how many evaluations they are averaged.
    """
    wanted: dict[int, list[str]] = {}
    for line in series:
        wanted.setdefault(line.study_id, []).append(line.id)
    loss: LossMetric = "train_loss" if metric == "seconds" else metric
    tasks = {line.task for line in series}
    answers = await asyncio.gather(
        *(
            ask(
                calls.learning(
                    study_id,
                    metric=loss,
                    smooth=smooth,
                    series=names if len(names) <= MOST_NAMED else (),
                    task=tasks.copy().pop() if len(tasks) == 1 else None,
                )
            )
            for study_id, names in wanted.items()
        )
    )
    return {one.id: one for answer in answers for one in answer.series}


#: So many rows of a recording a picture of many shows; more trials' would be megabytes.
MOST_STEPS, MOST_RECORDED = 120, 48


async def recordings_of(
    series: Sequence[SeriesRead], rates: Mapping[str, float] | None = None
) -> dict[str, dict[float, RecordingRead]]:
    """Return what was recorded by step of each rate's first seed, by series' id and rate.

    Args:
        series: Whose.
        rates: The one rate of each, by id, at which layers' outputs are wanted; without, all rates
            of which the sharpness is known.
    """
    points = [
        (line.id, point)
        for line in series
        for point in line.points
        if point.seeds and (rates is None or rates.get(line.id) == point.lr)
    ]
    firsts = [(name, one.lr, min(one.seeds, key=lambda s: s.seed).trial_id) for name, one in points]
    answers = await asyncio.gather(
        *(ask(calls.recording(trial, rows=MOST_STEPS)) for _, _, trial in firsts[:MOST_RECORDED])
    )
    found: dict[str, dict[float, RecordingRead]] = {}
    for (name, rate, _), one in zip(firsts, answers, strict=False):
        if one.steps and (one.sharpness if rates is None else one.outputs):
            found.setdefault(name, {})[rate] = one
    return found
