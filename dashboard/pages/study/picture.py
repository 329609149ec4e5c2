"""The picture and its scorecard: fetched when the controls or the results change."""

import asyncio
import hashlib
from typing import Any

import plotly.graph_objects as go
from dash import Input, Output, State, no_update

from backend.client import ApiError, calls
from backend.schemas import DifferenceKind, SensitivityRead, StudyRead
from dashboard import ids as shared
from dashboard.api_client import ask, differences
from dashboard.callbacks import callback
from dashboard.catalog import task_title
from dashboard.components.scorecard import advice, scorecard_table
from dashboard.figures.difference import difference_figure
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.figures.wording import QUANTITY
from dashboard.formats import counted
from dashboard.ids import Study as ids
from dashboard.markup import Component, html
from dashboard.pages.study.view import CONTROLS, StudyView
from dashboard.theme import PALETTE, Scheme, scheme_of, template

VIEW_INPUTS = [Input(control.id, control.property) for control in CONTROLS[:-1]]


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


@callback(
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Output(ids.CAPTION, "children"),
    Output(ids.MARK, "data"),
    Input(ids.VERSION, "data"),
    *VIEW_INPUTS,
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
    State(ids.ID, "data"),
    State(ids.MARK, "data"),
    running=[(Output(ids.FIGURE, "className"), "waiting", "")],
)
async def draw(*values: Any) -> tuple[Any, ...]:
    """Draw the study; a figure that did not change is not sent again."""
    _, *chosen, scheme, narrow, study_id, mark = values
    view = StudyView(*chosen)
    study = await ask(calls.study(study_id))
    picture = Picture(
        title=await task_title(study.tasks),
        metric=view.metric,
        reducer=view.reducer,
        band=view.band,
        scale=view.scale,
        seeds=view.seeds,
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{view.view} {view.metric} {view.scale}",
    )
    if view.view == "curves":
        figure, caption = await _curves(study, view, picture)
    else:
        figure, caption = await _differences(study, view, picture)
    new_mark = await asyncio.to_thread(_mark, figure)
    style = {"height": f"{figure.layout.height}px"}
    return (no_update if new_mark == mark else figure), style, caption, new_mark


def _mark(figure: go.Figure) -> str:
    return hashlib.sha256(figure.to_json().encode()).hexdigest()


async def _curves(
    study: StudyRead, view: StudyView, picture: Picture
) -> tuple[go.Figure, Component]:
    found, initial = await asyncio.gather(
        ask(calls.sensitivity(study.id, metric=view.metric, reducer=view.reducer, band=view.band)),
        _initial_loss(study) if view.metric == "train_loss" else _none(),
    )
    series = [line for line in found.series if view.shows(line)]
    if not any(line.points for line in series):
        return blank(_why_empty(found, view), picture.scheme), _caption(found)
    # Ten thousand seeds take a while to draw; meanwhile the event loop serves others.
    figure = await asyncio.to_thread(
        sensitivity_figure, series, picture, threshold=found.threshold, initial=initial
    )
    return figure, _caption(found)


def _why_empty(found: SensitivityRead, view: StudyView) -> str:
    if any(line.points for line in found.series):
        return "No curve matches the clipping that was chosen."
    if any(line.unfinished for line in found.series):
        return "No trial has ended yet."
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
    """Return the training loss before training, which all methods of a task share."""
    if len(study.tasks) != 1:
        return None
    page = await ask(calls.trials(study.sweep_ids[0], limit=20))
    losses = (trial.initial_loss for trial in page.items)
    return next((loss for loss in losses if loss is not None), None)


async def _differences(
    study: StudyRead, view: StudyView, picture: Picture
) -> tuple[go.Figure, Component]:
    kind: DifferenceKind = "clip" if view.view == "clip" else "method"
    found = await asyncio.gather(
        *(
            ask(differences(study.id, kind=kind, metric=metric, reducer=view.reducer))
            for metric in view.both_splits
        )
    )
    shown = [one for one in found if one.items]
    if not shown:
        what = "clipped and unclipped runs" if kind == "clip" else "EB and another method"
        words = f"This needs {what} with the same rates and seeds."
        return blank("Nothing to compare.", picture.scheme), html.P(words)
    words = f"{shown[0].definition} Band: 95 % bootstrap interval of the mean."
    initial = 1.0 if view.quantity == "accuracy" else await _initial_loss(study)
    figure = await asyncio.to_thread(difference_figure, shown, picture, initial=initial)
    return figure, html.P(words, className="history-meta")


@callback(
    Output(ids.SCORECARD, "children"),
    Input(ids.VERSION, "data"),
    Input(ids.QUANTITY, "value"),
    Input(ids.SPLIT, "value"),
    Input(ids.REDUCER, "value"),
    State(ids.ID, "data"),
)
async def score(_version: str, quantity: str, split: str, reducer: Any, study_id: int) -> Any:
    """Fetch the robustness numbers."""
    view = StudyView(quantity, split, reducer, "all", "curves", "std", True, "focus")
    try:
        found = await ask(calls.scorecard(study_id, metric=view.scored, reducer=reducer))
    except ApiError as error:
        return html.P(error.message, className="muted")
    if not found.rows:
        return html.P("Numbers appear with the first finished trials.", className="muted")
    return [*advice(found.rows), scorecard_table(found.rows)]
