"""The dashboard's only way to numbers: calls of the API, as the person at the browser.

Who that person is, and what to offer them, stands here, too: what they may really do is the API's
business, these answers only spare people buttons that would be refused.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

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
    SeriesRead,
    StudyRead,
    TaskRead,
)
from dashboard.cache import Cache, now_in_steps
from dashboard.markup import get_app

T = TypeVar("T")

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
    return cast(Sender, get_app().server.state.dashboard_client)


def in_process_client(api: Any) -> AsyncClient:
    """Return a client that talks to an API in this process, without any network."""
    return AsyncClient(app=api)


def api_address() -> str:
    """Return where a browser reaches the API: on this very server unless the app says otherwise."""
    return str(getattr(get_app().server.state, "api_address", ""))


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
CATALOG: Cache[CatalogRead] = Cache(4, owner=asked_client)


async def get_catalog(*, fresh: bool = False) -> CatalogRead:
    """Return what can be run; `fresh` asks again, for whether data has arrived."""
    if fresh:
        CATALOG.forget("catalog")
    version = now_in_steps(FRESH_SECONDS)
    return await CATALOG.get("catalog", version, lambda: ask(calls.catalog()))


async def task_title(names: list[str]) -> str:
    """Return what a figure about these tasks is called."""
    tasks = {task.name: task for task in (await get_catalog()).tasks} if names else {}
    return " and ".join(tasks[name].title if name in tasks else name for name in names[:3])


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
    answers = await asyncio.gather(
        *(
            ask(
                calls.learning(
                    study_id,
                    metric=loss,
                    smooth=smooth,
                    series=names if len(names) <= MOST_NAMED else (),
                )
            )
            for study_id, names in wanted.items()
        )
    )
    return {one.id: one for answer in answers for one in answer.series}
