"""How far a study is, while it runs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, no_update

from backend.client import calls
from backend.schemas import StudyRead, SweepRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback, notice
from dashboard.components.elements import link, state_badge
from dashboard.components.progress import progress_panel, retriable, unfinished
from dashboard.components.times import local_time
from dashboard.figures.rate_ticks import rates_words
from dashboard.formats import counted
from dashboard.ids import Study as ids
from dashboard.markup import Component, html
from dashboard.theme import METHOD_STYLE
from dashboard.visitor import get_visitor, may_change

MOST_SWEEPS = 100

browser_callback(
    "function(count) { return window.etascope.visibleTick(count); }",
    Output(ids.TICK, "data"),
    Input(ids.INTERVAL, "n_intervals"),
    prevent_initial_call=True,
)


def version(study: StudyRead) -> str:
    """Return a text that changes whenever the study's results do."""
    counts = sorted(study.progress.items())
    return f"{study.sweep_ids} {counts} {study.state}"


@callback(
    Output(ids.STATUS, "children"),
    Output(ids.SWEEPS, "children"),
    Output(ids.SWEEPS_MARK, "data"),
    Output(ids.VERSION, "data"),
    Output(ids.INTERVAL, "disabled"),
    Output(shared.NOTICES, "sendNotifications", allow_duplicate=True),
    Input(ids.TICK, "data"),
    Input(ids.PENDING, "modified_timestamp"),
    State(ids.ID, "data"),
    State(ids.SWEEPS_MARK, "data"),
    State(ids.INTERVAL, "disabled"),
    prevent_initial_call=True,
)
async def follow(
    _tick: Any, _done: Any, study_id: int, known: str | None, paused: bool
) -> tuple[Any, ...]:
    """Ask how far the study is; pictures follow when the version changed.

    The sweeps' buttons are replaced only when they change: not under somebody's finger.
    """
    study, sweeps, visitor = await asyncio.gather(
        ask(calls.study(study_id)), ask(calls.sweeps(study_id, limit=MOST_SWEEPS)), get_visitor()
    )
    running = unfinished(study.progress) > 0
    mark = sweeps_mark(sweeps.items)
    listed = (
        no_update if mark == known else sweep_list(sweeps.items, own=may_change(visitor, study))
    )
    ended = not paused and not running
    said = [notice(f"The study has ended: {study.state}.")] if ended else no_update
    return status(study, sweeps.items), listed, mark, version(study), not running, said


def sweeps_mark(sweeps: Sequence[SweepRead]) -> str:
    """Return a text that changes whenever the list of sweeps would look different."""
    return str(
        [
            (one.id, str(one.state), one.cancelled, retriable(one.progress), one.reused)
            for one in sweeps
        ]
    )


def status(study: StudyRead, sweeps: Sequence[SweepRead]) -> Component | None:
    """Return progress while there is any to report: a finished study needs no bar."""
    if not study.total or (study.state == "completed"):
        return None
    left = [sweep.eta_seconds for sweep in sweeps if sweep.eta_seconds is not None]
    said = dict.fromkeys(message for sweep in sweeps for message in sweep.messages)
    return progress_panel(
        study.progress, study.total, eta=max(left, default=None), messages=list(said)
    )


def sweep_list(sweeps: Sequence[SweepRead], *, own: bool = True) -> list[Component]:
    """Return the study's sweeps, the newest first, with what their owner can do about them."""
    return [_sweep(sweep, own) for sweep in reversed(sweeps)]


def _sweep(sweep: SweepRead, own: bool) -> Component:
    buttons = []
    if own and unfinished(sweep.progress) and not sweep.cancelled:
        buttons.append(_button("cancel", sweep.id, "Cancel", "red"))
    if own and retriable(sweep.progress):
        again = counted(retriable(sweep.progress), "trial")
        buttons.append(_button("retry", sweep.id, f"Retry {again}", "indigo"))
    return html.Div(
        [
            html.Div([html.B(f"Sweep {sweep.id}"), state_badge(sweep.state)], className="row"),
            html.Div(describe(sweep), className="history-meta"),
            html.Div(["submitted ", local_time(sweep.created_at)], className="history-meta"),
            *([html.Div(sweep.note, className="history-meta")] if sweep.note else []),
            html.Div(
                [*buttons, *_ways_to_repeat(sweep)],
                className="row",
                style={"marginTop": "6px"},
            ),
        ],
        style={"marginBottom": "16px"},
    )


def _ways_to_repeat(sweep: SweepRead) -> list[Component]:
    """Return how to ask for the sweep again; what was imported cannot be run here."""
    if not sweep.spec.get("profile"):
        return []
    return [
        _button("copy", sweep.id, "Copy as…", "gray"),
        link("Change and run again", f"/new?sweep={sweep.id}", size="sm"),
    ]


def _button(kind: str, sweep_id: int, label: str, colour: str) -> Component:
    return dmc.Button(
        label,
        id=shared.part(f"sweep-{kind}", sweep_id),
        size="compact-sm",
        variant="light",
        color=colour,
        n_clicks=0,
    )


def describe(sweep: SweepRead) -> str:
    """Return a sweep's grid in a line."""
    spec = sweep.spec
    methods = [METHOD_STYLE[m].short if m in METHOD_STYLE else m for m in spec.get("methods", ())]
    clips = [clip for clip in spec.get("clips", ()) if clip is not None]
    parts = [
        str(spec.get("task", "")),
        ", ".join(methods),
        f"rates {rates_words(spec.get('learning_rates', ()))}",
        counted(len(spec.get("seeds", ())), "seed"),
        counted(sweep.total, "trial") + (f", {sweep.reused} reused" if sweep.reused else ""),
        f"clip {', '.join(f'{clip:g}' for clip in clips)}" if clips else "",
        f"{spec['profile']} profile" if spec.get("profile") else "",
        f"batch rule {spec['batch_rule']}" if spec.get("batch_rule") else "",
    ]
    return " · ".join(part for part in parts if part)
