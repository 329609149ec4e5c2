"""One trial: its curve, its outcome, and what proves it."""

import asyncio
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.client import ApiError, calls
from backend.schemas import TrialRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import callback
from dashboard.components import (
    Control,
    at_rate,
    button_link,
    card,
    draw_from,
    facts,
    keep_in_url,
    outcome_pairs,
    read_controls,
    record_facts,
    segmented,
    setting_pairs,
    state_badge,
)
from dashboard.figures import NOTHING_YET, TrialCurve, curve_figure
from dashboard.formats import number
from dashboard.ids import Trial as ids
from dashboard.markup import Component, dcc, html
from dashboard.router import Page, View
from dashboard.theme import graph_config, method_style, scheme_of

LIVE_MS = 1500
MOST_POINTS = 1000
SCALES = (("auto", "Auto"), ("linear", "Linear"), ("log", "Log"))
#: Whether the axis is logarithmic; None: if a linear one would hide something.
LOG: dict[str, bool | None] = {"auto": None, "linear": False, "log": True}
CONTROLS = (Control("y", ids.SCALE, "auto", choices=tuple(LOG)),)

draw_from(ids.DRAWN, ids.GRAPH)
keep_in_url(r"^/trials/\d+/?$", CONTROLS)


async def layout(trial_id: str = "0", **query: str) -> View:
    """Return the page of a trial."""
    if not trial_id.isdecimal() or not 0 < int(trial_id) < 2**63:
        raise ApiError(404, "not_found", f"There is no trial {trial_id!r}.")
    trial = await ask(calls.trial(int(trial_id)))
    values = read_controls(CONTROLS, query)
    name = f"{method_style(trial.method).short} at rate {number(trial.lr)}, seed {trial.seed}"
    body = html.Div(
        [
            dcc.Store(id=ids.ID, data=trial.id),
            dcc.Store(id=ids.DRAWN),
            dcc.Interval(id=ids.INTERVAL, interval=LIVE_MS, disabled=_ended(trial)),
            _head(trial, name),
            html.Div(
                [
                    html.Div([_picture(trial, values["y"]), _settings(trial)], className="stack"),
                    html.Div(
                        [
                            card(html.Div(_outcome(trial), id=ids.FACTS), title="Outcome"),
                            card(record_facts(trial), title="Reproducibility record"),
                        ],
                        className="stack",
                    ),
                ],
                className="two-thirds",
            ),
        ],
        className="stack",
    )
    return View(body, title=f"Trial {trial.id}", crumbs=((f"Trial {trial.id}", ""),))


def _picture(trial: TrialRead, scale: str) -> Component:
    graph = dcc.Graph(
        id=ids.GRAPH,
        figure=NOTHING_YET,
        config=graph_config(f"etascope-trial-{trial.id}"),
        responsive=True,
        style={"height": "420px"},
    )
    control = segmented("y scale", ids.SCALE, SCALES, scale)
    return card(html.Div(control, className="short-control"), graph, className="figure-card")


def _settings(trial: TrialRead) -> Component:
    return card(facts(setting_pairs(trial)), title="Settings")


def _ended(trial: TrialRead) -> bool:
    return trial.outcome is not None or trial.state == "cancelled"


def _head(trial: TrialRead, name: str) -> Component:
    return html.Div(
        [
            html.Div([html.H1(name), html.P(trial.task, className="page-lead")]),
            html.Div(
                [
                    html.Span(state_badge(trial.state), id=ids.STATE),
                    button_link("See one update at this rate", at_rate(trial), primary=False),
                ],
                className="actions",
            ),
        ],
        className="page-head",
    )


def _outcome(trial: TrialRead) -> Component:
    failed = [dmc.Alert(trial.error, color="red", title="Failed", mb=12)] if trial.error else []
    return html.Div([*failed, facts(outcome_pairs(trial))])


@callback(
    Output(ids.DRAWN, "data"),
    Output(ids.FACTS, "children"),
    Output(ids.STATE, "children"),
    Output(ids.INTERVAL, "disabled"),
    Input(ids.INTERVAL, "n_intervals"),
    Input(ids.SCALE, "value"),
    Input(shared.SCHEME, "data"),
    State(ids.ID, "data"),
)
async def draw(_ticks: Any, scale: str, scheme: str | None, trial_id: int) -> tuple[Any, ...]:
    """Draw the trial as far as it is."""
    trial, curve = await asyncio.gather(
        ask(calls.trial(trial_id)), ask(calls.curve(trial_id, max_points=MOST_POINTS))
    )
    figure = curve_figure(
        [TrialCurve(trial, curve)], scheme=scheme_of(scheme), log=LOG.get(scale), height=420
    )
    return figure, _outcome(trial), state_badge(trial.state), _ended(trial)


PAGE = Page("/trials/<trial_id>", "Trial", layout)
