"""A study's picture: asked for, drawn, kept, and drawn before it is asked for."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import plotly.graph_objects as go
from dash import Output, State, no_update
from pydantic import BaseModel

from backend.client import calls
from backend.schemas import (
    DifferenceKind,
    DifferencesRead,
    ScorecardRead,
    StudyRead,
)
from dashboard.api_client import (
    Cache,
    Trouble,
    ask,
    asked_client,
    learning_of,
    recordings_of,
    task_names,
    task_title,
)
from dashboard.components import choices_of, unfinished
from dashboard.dash_blocks import Component, callback, html
from dashboard.figures import (
    COORDINATES,
    FAMILY_VIEWS,
    STEPS,
    Answers,
    Picture,
    across_figure,
    best_of_figure,
    check_rates,
    difference_figure,
    needs_learning,
    needs_rows,
    pair_names,
    shown_only,
    view_figure,
    with_titles,
)
from dashboard.ids import Study as ids
from dashboard.pages.study import progress
from dashboard.pages.study.answer import scores_of
from dashboard.pages.study.controls import (
    ASKED,
    StudyView,
    asked_alone,
    named_apart,
    of_task,
    one_control_away,
    pairs_of_task,
    task_shown,
)
from dashboard.pages.study.words import caption_of, first_of, why_empty
from dashboard.theme import PALETTE, Scheme, scheme_of, template
from ib_core.metrics import KINDS

#: What each picture of differences is made from.
COMPARED: dict[DifferenceKind, str] = {
    "method": "EB and another method",
    "clip": "clipped and unclipped runs",
    "engine": "runs of two versions of the engine",
}
#: Studies with fewer trials answer quickly enough anyway.
LARGE = 1000
#: Whoever tries one control after the other is not to be held up.
PAUSE_SECONDS = 1.0
#: Those of a large study take megabytes each; one has a dozen views that are a control apart.
MOST_PICTURES = 40
#: Studies whose initial loss is remembered: a number each.
MOST_LOSSES = 1000

Draw = Callable[[StudyView], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture of a study.

    Attributes:
        figure: The picture.
        caption: What stands below it.
        mark: Changes whenever the picture does.
        choices: What its series can be arranged by; None: nothing.
    """

    figure: go.Figure
    caption: Component
    mark: str
    choices: dict[str, Any] | None = None


PICTURES: Cache[Drawn] = Cache(MOST_PICTURES, owner=asked_client)
INITIAL_LOSSES: Cache[float] = Cache(MOST_LOSSES, owner=asked_client)
#: Tasks that nobody else holds would be forgotten while they run.
_running: set[asyncio.Task[None]] = set()


async def drawn(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    """Fetch what a view of a study is drawn from, and draw it."""
    if view.picture in (*FAMILY_VIEWS, STEPS, COORDINATES):
        return await _series(study, view, picture)
    if view.view in ("best_of", "across"):
        return await _scored(study, view, picture)
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


async def _beside(
    draw: Callable[[], go.Figure],
    caption: Component,
    *told: Any,
    choices: dict[str, Any] | None = None,
) -> Drawn:
    """Draw in a thread: ten thousand seeds take a while, and the event loop serves others."""
    figure, mark = await asyncio.to_thread(lambda: (draw(), _mark(told)))
    return Drawn(figure, caption, mark, choices)


def _mark(told: Sequence[Any]) -> str:
    texts = (one.model_dump_json() if isinstance(one, BaseModel) else repr(one) for one in told)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


async def _series(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    """Draw what is made of series, and perhaps of their numbers and losses over training."""
    task, only = task_shown(view.task, study.tasks), view.family.only
    alone = asked_alone(study, task)
    metric, reducer = view.metric, view.reducer
    curves = partial(calls.sensitivity, study.id, metric=metric, reducer=reducer, band=view.band)
    found, initial, scored = await asyncio.gather(
        ask(curves(task=alone)),
        _initial_loss(study) if view.metric == "train_loss" else _none(),
        _scores(study, progress.version(study), view) if needs_rows(view.picture) else _none(),
    )
    if found.left_out and task and not alone:  # clips, rules and widths make series, too
        found = await ask(curves(task=task))
    every = [line for line in of_task(found.series, task) if view.shows(line)]
    titles = await task_names(study.tasks)
    series = with_titles(named_apart(shown_only(every, only)), titles)
    rows = [row for row in of_task(scored.rows, task) if view.shows(row)] if scored else []
    learning = (
        await learning_of(series, view.metric, view.family.smooth)
        if needs_learning(view.picture, picture)
        else {}
    )
    rates = check_rates(series, picture) if view.picture == COORDINATES else None
    ways = view.picture in (STEPS, COORDINATES)
    recorded = await recordings_of(series, rates) if ways else {}
    caption, choices = caption_of(found, view.picture), choices_of(every)
    if not any(line.points for line in series):
        words = why_empty(found, view)
        return await _beside(
            partial(blank, words, picture.scheme), caption, words, picture, choices=choices
        )
    answers = Answers(
        series,
        rows=with_titles(shown_only(rows, only), titles),
        learning=learning,
        threshold=next((line.threshold for line in series if line.threshold is not None), None),
        initial=initial,
        moves=[move for one in scored.answers for move in one.moves] if scored else [],
        recorded=recorded,
    )
    draw = partial(_drawn_or_said, view.picture, answers, picture)
    told = (found, view, picture, initial, [(name, *own) for name, own in recorded.items()])
    return await _beside(draw, caption, *told, choices=choices)


def _drawn_or_said(view: str, answers: Answers, picture: Picture) -> go.Figure:
    made = view_figure(view, answers, picture)
    return blank(made, picture.scheme) if isinstance(made, str) else made


async def _scores(study: StudyRead, version: str, view: StudyView) -> ScorecardRead:
    task = task_shown(view.task, study.tasks)
    alone = asked_alone(study, task)
    return await scores_of(study.id, version, view.scored, view.reducer, alone, task)


async def _none() -> None:
    """Return nothing, as an answer that is awaited."""


class NotToldYet(Exception):
    """No trial has told its loss before training."""


async def _initial_loss(study: StudyRead) -> float | None:
    """Return the training loss before training, which all methods of a task share.

    It never changes once it is known, so it is asked for once.
    """
    if len(study.tasks) != 1:
        return None

    async def asked() -> float:
        page = await ask(calls.trials(study.sweep_ids[0], limit=20))
        losses = [one.initial_loss for one in page.items if one.initial_loss is not None]
        if not losses:
            raise NotToldYet
        return losses[0]

    try:
        return await INITIAL_LOSSES.get(study.id, study.created_at, asked)
    except NotToldYet:  # a failure is not kept: the next picture asks again
        return None


async def _scored(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    """Draw what the scorecard has more of than a table can show."""
    version = progress.version(study)
    if view.view == "across":
        found = await scores_of(study.id, version, view.scored, view.reducer)
        if found.across is None:
            words = "This needs three tasks or more with two methods in common."
            draw = partial(blank, words, picture.scheme)
            return await _beside(draw, html.P(), words, picture)
        draw = partial(across_figure, found.across, replace(picture, title=""), found.rows)
        told = (
            f"{first_of(found.rows, found.left_out)} {' '.join(found.across.definitions.values())}"
        )
        return await _beside(
            draw, html.P(told, className="history-meta"), found.across, picture, view
        )
    found, task = await _scores(study, version, view), task_shown(view.task, study.tasks)
    every = [row for row in of_task(found.rows, task) if view.shows(row)]
    rows = named_apart(shown_only(every, view.family.only))
    rows = with_titles(rows, await task_names(study.tasks))
    if not any(one.value is not None for row in rows for one in row.best_of):
        words = "No series has an expected best of k yet: see “Expected best of 3” in the table."
        return await _beside(partial(blank, words, picture.scheme), html.P(), words, picture)
    words = KINDS["best_of_3"].definition.replace("of 3 rates", "of k rates")
    caption = html.P(words, className="history-meta")
    draw = partial(best_of_figure, rows, picture)
    return await _beside(draw, caption, *rows, picture, choices=choices_of(every))


async def _differences(study: StudyRead, view: StudyView, picture: Picture) -> Drawn:
    kind: DifferenceKind = view.view if view.view in COMPARED else "method"
    task = task_shown(view.task, study.tasks)
    of = partial(calls.differences, kind=kind, reducer=view.reducer, task=asked_alone(study, task))
    scored, found = await asyncio.gather(
        _scores(study, progress.version(study), view),
        asyncio.gather(*(ask(of(study.id, metric=metric)) for metric in view.both_splits)),
    )
    if task is None and (paired := _tasks_of(found, study.tasks)):
        picture = replace(picture, title=await task_title(paired))
    every = [one.model_copy(update={"items": pairs_of_task(one.items, task)}) for one in found]
    named = with_titles(of_task(scored.rows, task), await task_names(study.tasks))
    own = [one.model_copy(update={"items": pair_names(one.items, named)}) for one in every]
    shown = [one for one in own if one.items]
    if not shown:
        words = f"This needs {COMPARED[kind]} with the same rates and seeds."
        draw = partial(blank, "Nothing to compare.", picture.scheme)
        return await _beside(draw, html.P(words), words, picture)
    words = f"{shown[0].definition} Band: 95 % bootstrap interval of the mean."
    initial = 1.0 if view.quantity == "accuracy" else await _initial_loss(study)
    draw = partial(difference_figure, shown, picture, initial=initial, rows=named)
    return await _beside(draw, html.P(words, className="history-meta"), *shown, picture, initial)


def _tasks_of(found: Sequence[DifferencesRead], tasks: Sequence[str]) -> list[str]:
    """Return those of several tasks in which something is paired: labels name them."""
    words = {part for one in found for item in one.items for part in item.first_label.split(", ")}
    return [task for task in tasks if task in words]


@callback(
    Output(ids.DRAWN, "data"),
    Output(ids.CAPTION, "children"),
    Output(ids.MARK, "data"),
    Output(ids.SCORED, "data"),
    Output(ids.CHOICES, "data"),
    *ASKED,
    State(ids.ID, "data"),
    State(ids.KEPT, "data"),
    State(ids.SCORED, "data"),
    State(ids.CHOICES, "data"),
    running=[(Output(ids.FIGURE, "className"), "waiting", "")],
)
async def draw(*values: Any) -> tuple[Any, ...]:
    """Draw the study; a figure that the browser has is not sent again."""
    _version, *chosen, scheme, narrow, study_id, kept, scored, offered = values
    view = StudyView.of(chosen)
    study = await ask(calls.study(study_id))
    task, version = task_shown(view.task, study.tasks), progress.version(study)
    title = await task_title([task] if task else study.tasks)

    async def shown(other: StudyView) -> Drawn:
        picture = picture_of(other, title, scheme, narrow)
        key = (study.id, other, picture)
        return await PICTURES.get(key, version, lambda: drawn(study, other, picture))

    found = await shown(view)
    to_score = [version, view.scored, view.reducer, task]
    if alone := asked_alone(study, task):
        to_score.append(alone)
    scoring = no_update if scored == to_score else to_score
    choices = no_update if found.choices in (None, offered) else found.choices
    rest = (found.caption, found.mark, scoring, choices)
    prefetch(study, version, one_control_away(view, found.choices), shown)
    if found.mark in (kept or ()):
        return no_update, *rest
    return found.figure, *rest


def picture_of(view: StudyView, title: str, scheme: str | None, narrow: bool | None) -> Picture:
    """Return how a view is drawn."""
    return Picture(
        title=title,
        metric=view.metric,
        reducer=view.reducer,
        band=view.band,
        scale=view.scale,
        seeds=view.seeds,
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{view.task} {view.view} {view.metric} {view.scale} {view.family}",
        family=view.family,
    )


def prefetch(study: StudyRead, version: str, views: Iterable[StudyView], draw: Draw) -> None:
    """Begin to draw everything that is one control away from what is looked at.

    Making a picture from ten thousand trials takes a quarter of a second, which a person who
    pressed a control would notice. A running study changes too soon for it.

    Args:
        study: Which; only a large one at rest is drawn before it is asked for.
        version: Of it.
        views: What may be asked for next.
        draw: Draws a view of it, and keeps it.
    """
    for task in _running:
        task.cancel()
    if study.total >= LARGE and not unfinished(study.progress):
        task = asyncio.create_task(_draw_all(study, version, views, draw))
        _running.add(task)
        task.add_done_callback(_running.discard)


async def _draw_all(study: StudyRead, version: str, views: Iterable[StudyView], draw: Draw) -> None:
    await asyncio.sleep(PAUSE_SECONDS)
    for other in views:
        with suppress(*Trouble):
            await draw(other)
            await _scores(study, version, other)
