"""The catalogue of tasks and methods, asked for once a minute at most: it hardly ever changes."""

import time

from backend.client import calls
from backend.schemas import CatalogRead, TaskRead
from dashboard.api_client import ask
from dashboard.markup import get_app

FRESH_SECONDS = 60.0


async def get_catalog(*, fresh: bool = False) -> CatalogRead:
    """Return what can be run; `fresh` asks again, for whether data has arrived."""
    state = get_app().server.state
    known = getattr(state, "dashboard_catalog", None)
    if known is not None and not fresh and time.monotonic() - known[0] < FRESH_SECONDS:
        return CatalogRead.model_validate(known[1])
    catalog = await ask(calls.catalog())
    state.dashboard_catalog = (time.monotonic(), catalog)
    return catalog


async def task_title(names: list[str]) -> str:
    """Return what a figure about these tasks is called."""
    tasks = {task.name: task for task in (await get_catalog()).tasks} if names else {}
    return " and ".join(tasks[name].title if name in tasks else name for name in names[:3])


def find_task(catalog: CatalogRead, name: str | None) -> TaskRead | None:
    """Return a task by name."""
    return next((task for task in catalog.tasks if task.name == name), None)
