"""A study's picture: asked for, and drawn."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import plotly.graph_objects as go
from pydantic import BaseModel

from backend.client import calls
from backend.schemas import DifferenceKind, SensitivityRead, StudyRead
from dashboard.api_client import ask, differences
from dashboard.figures.difference import difference_figure
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.figures.wording import QUANTITY
from dashboard.formats import counted
from dashboard.markup import Component, get_app, html
from dashboard.pages.study.tasks import of_task, pairs_of_task, task_shown
from dashboard.pages.study.view import StudyView
from dashboard.theme import PALETTE, Scheme, template

#: What each picture of differences is made from.
COMPARED: dict[DifferenceKind, str] = {
    "method": "EB and another method",
    "clip": "clipped and unclipped runs",
    "engine": "runs of two versions of the engine",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture of a study.

    Attributes:
        figure: The picture.
        caption: What stands below it.
        mark: Changes whenever the picture does.
    """

    figure: go.Figure
    caption: Component
    mark: str


async def drawn(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    """Fetch what a view of a study is drawn from, and draw it."""
    if view.shows_curves:
        return await _curves(study, view, picture)
    return await _differences(study, view, picture)


def blank(words: str = "", scheme: Scheme = "light") -> go.Figure:
    """Return what stands where there is no picture, or none yet."""
    palette = PALETTE[scheme]
    said = {"text": words, "showarrow": False, "font": {"size": 15, "color": palette.muted}}
    return go.Figure(
        layout={
            "template": template(scheme),
            "height": 520,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": {"visible": False},
            "yaxis": {"visible": False},
            "annotations": [{**said, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}],
        }
    )


async def _beside(draw: Callable[[], go.Figure], caption: Component, *told: Any) -> Drawn:
    """Draw in a thread: ten thousand seeds take a while, and the event loop serves others."""
    figure, mark = await asyncio.to_thread(lambda: (draw(), _mark(told)))
    return Drawn(figure, caption, mark)


def _mark(told: Sequence[Any]) -> str:
    texts = (one.model_dump_json() if isinstance(one, BaseModel) else repr(one) for one in told)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


async def _curves(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    found, initial = await asyncio.gather(
        ask(calls.sensitivity(study.id, metric=view.metric, reducer=view.reducer, band=view.band)),
        _initial_loss(study) if view.metric == "train_loss" else _none(),
    )
    task = task_shown(view.task, study.tasks)
    series = [line for line in of_task(found.series, task) if view.shows(line)]
    threshold = next((line.threshold for line in series if line.threshold is not None), None)
    caption = _caption(found)
    if not any(line.points for line in series):
        words = _why_empty(found, view)
        return await _beside(partial(blank, words, picture.scheme), caption, words, picture)
    draw = partial(sensitivity_figure, series, picture, threshold=threshold, initial=initial)
    return await _beside(draw, caption, found, view, picture, initial)


def _why_empty(found: SensitivityRead, view: StudyView) -> str:
    if any(line.points for line in found.series):
        return "No curve matches the clipping that was chosen."
    if any(line.unfinished for line in found.series):
        return "No trial has ended yet. Curves appear with the first that do."
    if any(line.failed for line in found.series):
        return "Every trial failed or was cancelled."
    return f"No trial here has recorded its {QUANTITY[view.metric]}."


def _caption(found: SensitivityRead) -> Component:
    failed = sum(line.failed for line in found.series)
    waiting = sum(line.unfinished for line in found.series)
    parts = [
        f"Band: {found.band_definition}" if found.band_definition else "",
        f"{counted(waiting, 'trial')} to come." if waiting else "",
        f"{counted(failed, 'trial')} failed or cancelled, in no mean." if failed else "",
        "Click a point for its trials." if any(line.points for line in found.series) else "",
    ]
    return html.P(" ".join(part for part in parts if part), className="history-meta")


async def _none() -> None:
    """Return nothing, as an answer that is awaited."""


async def _initial_loss(study: StudyRead) -> float | None:
    """Return the training loss before training, which all methods of a task share.

    It never changes once it is known, so it is asked for once.
    """
    if len(study.tasks) != 1:
        return None
    state, key = get_app().server.state, (study.id, study.created_at)
    known: dict[Any, float] = getattr(state, "initial_losses", {})
    if key not in known:
        page = await ask(calls.trials(study.sweep_ids[0], limit=20))
        losses = [trial.initial_loss for trial in page.items if trial.initial_loss is not None]
        known = {**known, key: losses[0]} if losses else known
        state.initial_losses = known
    return known.get(key)


async def _differences(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    kind: DifferenceKind = "method" if view.view == "curves" else view.view
    found = await asyncio.gather(
        *(
            ask(differences(study.id, kind=kind, metric=metric, reducer=view.reducer))
            for metric in view.both_splits
        )
    )
    task = task_shown(view.task, study.tasks)
    own = [one.model_copy(update={"items": pairs_of_task(one.items, task)}) for one in found]
    shown = [one for one in own if one.items]
    if not shown:
        words = f"This needs {COMPARED[kind]} with the same rates and seeds."
        draw = partial(blank, "Nothing to compare.", picture.scheme)
        return await _beside(draw, html.P(words), words, picture)
    words = f"{shown[0].definition} Band: 95 % bootstrap interval of the mean."
    initial = 1.0 if view.quantity == "accuracy" else await _initial_loss(study)
    draw = partial(difference_figure, shown, picture, initial=initial)
    return await _beside(draw, html.P(words, className="history-meta"), *shown, picture, initial)
