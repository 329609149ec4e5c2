"""Draws ahead what a large study is likely to be asked next, so that its controls react at once.

The API keeps its answers, and the dashboard its figures, until the study changes. Making them from
ten thousand trials takes a quarter of a second, which a person who pressed a control would notice.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from backend.client import calls
from backend.schemas import StudyRead
from dashboard.api_client import Trouble, ask
from dashboard.components.progress import unfinished
from dashboard.pages.study.view import StudyView

#: Studies with fewer trials answer quickly enough anyway.
LARGE = 1000
#: Whoever tries one control after the other is not to be held up.
PAUSE_SECONDS = 1.0
#: So many views are remembered as drawn already.
REMEMBERED = 1000

#: Tasks that nobody else holds would be forgotten while they run.
_running: set[asyncio.Task[None]] = set()
_drawn: deque[str] = deque(maxlen=REMEMBERED)

Draw = Callable[[StudyView], Awaitable[object]]


def draw_ahead(study: StudyRead, view: StudyView, draw: Draw, *, look: str = "") -> None:
    """Begin to draw everything that is one control away; a running study changes too soon.

    Args:
        study: Of a finished study only.
        view: What is looked at.
        draw: Draws a view of it, and keeps it.
        look: What else a figure depends on, as the colour scheme.
    """
    for task in _running:
        task.cancel()
    if study.total >= LARGE and not unfinished(study.progress):
        task = asyncio.create_task(_draw_all(study, view, draw, look))
        _running.add(task)
        task.add_done_callback(_running.discard)


async def _draw_all(study: StudyRead, view: StudyView, draw: Draw, look: str) -> None:
    await asyncio.sleep(PAUSE_SECONDS)
    for other in one_control_away(view):
        key = f"{study.id} {study.updated_at} {study.progress} {other} {look}"
        if key in _drawn:
            continue
        with suppress(*Trouble):
            await draw(other)
            await ask(calls.scorecard(study.id, metric=other.scored, reducer=other.reducer))
            _drawn.append(key)


def one_control_away(view: StudyView) -> Iterator[StudyView]:
    """Yield the views that differ from one in one control, the likeliest first."""
    yield replace(view, split="test" if view.split == "train" else "train")
    yield replace(view, quantity="accuracy" if view.quantity == "loss" else "loss")
    yield replace(view, reducer="best" if view.reducer == "final" else "final")
    yield from (replace(view, scale=name) for name in ("log", "focus") if name != view.scale)
    yield from (replace(view, band=name) for name in ("quantile", "std", "se") if name != view.band)
    yield replace(view, view="method" if view.view == "curves" else "curves")
