"""Asks ahead for what a large study is likely to be asked next, so that controls react at once.

The API keeps its answers until the study changes. Making one from ten thousand trials takes a
fifth of a second, which a person who has just pressed a control would notice.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from backend.client import calls
from backend.client.calls import Call
from backend.schemas import StudyRead
from dashboard.api_client import Trouble, ask, differences
from dashboard.components.progress import unfinished
from dashboard.pages.study.view import StudyView

#: Studies with fewer trials answer quickly enough anyway.
LARGE = 1000

#: So many calls are remembered as asked already.
REMEMBERED = 1000

#: Tasks that nobody else holds would be forgotten while they run.
_running: set[asyncio.Task[None]] = set()
_asked: deque[str] = deque(maxlen=REMEMBERED)


def ask_ahead(study: StudyRead, view: StudyView) -> None:
    """Begin to ask for everything that is one control away; a running study changes too soon."""
    if study.total >= LARGE and not unfinished(study.progress) and not _running:
        task = asyncio.create_task(_ask_all(study, view))
        _running.add(task)
        task.add_done_callback(_running.discard)


async def _ask_all(study: StudyRead, view: StudyView) -> None:
    for call in one_control_away(study.id, view):
        key = f"{call.path} {call.parameters} {study.updated_at} {study.progress}"
        if key not in _asked:
            _asked.append(key)
            with suppress(*Trouble):
                await ask(call)


def one_control_away(study_id: int, view: StudyView) -> Iterator[Call[Any]]:
    """Yield the calls behind each view that differs from this one in one control."""
    others = [
        replace(view, split="test" if view.split == "train" else "train"),
        replace(view, quantity="accuracy" if view.quantity == "loss" else "loss"),
        replace(view, reducer="best" if view.reducer == "final" else "final"),
    ]
    bands = [replace(view, band=band) for band in ("std", "se", "quantile") if band != view.band]
    for other in (*others, *bands):
        yield calls.sensitivity(
            study_id, metric=other.metric, reducer=other.reducer, band=other.band
        )
    for metric in view.both_splits:
        yield differences(study_id, kind="method", metric=metric, reducer=view.reducer)
    for other in others:
        yield calls.scorecard(study_id, metric=other.scored, reducer=other.reducer)
