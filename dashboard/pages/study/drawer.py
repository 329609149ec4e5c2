"""Behind a point: its trials' curves and outcomes."""

import asyncio
import json
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, no_update
from plotly.utils import PlotlyJSONEncoder

from backend.client import calls
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask
from dashboard.callbacks import browser_callback, callback
from dashboard.components.elements import link, state_badge
from dashboard.components.error_panel import error_panel
from dashboard.components.record import at_rate, trial_facts
from dashboard.figures.curve import TrialCurve, curve_figure
from dashboard.figures.traces import MOST_OPENED
from dashboard.figures.wording import QUANTITY
from dashboard.formats import number
from dashboard.ids import Study as ids
from dashboard.markup import Component, dcc, html
from dashboard.theme import graph_config, method_style, scheme_of

MOST_POINTS = 400
MEANWHILE = dmc.Skeleton(h=360)
FIRST_ONLY = f"At most {MOST_OPENED} are shown here; the table of trials has all of them."

# Opened by the browser, so that a click is answered while the server is busy with a sweep; a click
# itself is heard by `assets/points.js`.
browser_callback(
    "function(selected) { return [Boolean(selected), selected ? "
    f"{json.dumps(MEANWHILE, cls=PlotlyJSONEncoder)}"
    " : window.dash_clientside.no_update]; }",
    Output(ids.DRAWER, "opened"),
    Output(ids.DRAWER_BODY, "children", allow_duplicate=True),
    Input(ids.SELECTED, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(opened) { return opened ? window.dash_clientside.no_update : ''; }",
    Output(ids.SELECTED, "data", allow_duplicate=True),
    Input(ids.DRAWER, "opened"),
    prevent_initial_call=True,
)


def drawer(selected: str) -> Component:
    """Return the panel that opens over the page; an address may ask for it at once."""
    return dmc.Drawer(
        html.Div(MEANWHILE, id=ids.DRAWER_BODY),
        id=ids.DRAWER,
        opened=bool(selected),
        position="right",
        size="lg",
        title="Trials behind this point",
        closeButtonProps={"aria-label": "Close"},
        zIndex=300,
    )


@callback(
    Output(ids.DRAWER_BODY, "children"),
    Input(ids.SELECTED, "data"),
    State(shared.SCHEME, "data"),
)
async def show(selected: str | None, scheme: str | None) -> Any:
    """Fetch what is behind a point."""
    wanted = [int(part) for part in (selected or "").split(",") if part.isdecimal()]
    if not wanted:
        return no_update
    try:
        found = await asyncio.gather(*(_fetch(trial_id) for trial_id in wanted[:MOST_OPENED]))
    except Trouble as error:
        return error_panel(error)
    figure = curve_figure(found, scheme=scheme_of(scheme), test=len(found) == 1)
    first = found[0].trial
    only = first if len(found) == 1 else None
    return [
        html.P(link(f"See one update at rate {number(first.lr)}", at_rate(first))),
        dcc.Graph(figure=figure, config=graph_config("etascope-curve"), responsive=True),
        _table(found),
        *([html.P(FIRST_ONLY, className="muted")] if len(found) == MOST_OPENED else []),
        *([trial_facts(only)] if only else []),
    ]


async def _fetch(trial_id: int) -> TrialCurve:
    trial, curve = await asyncio.gather(
        ask(calls.trial(trial_id)), ask(calls.curve(trial_id, max_points=MOST_POINTS))
    )
    return TrialCurve(trial, curve)


def _table(found: list[TrialCurve]) -> Component:
    head = ["Trial", "Seed", QUANTITY["train_loss"], QUANTITY["test_loss"], "Outcome"]
    rows = [
        html.Tr(
            [
                html.Td(
                    link(
                        f"{method_style(one.trial.method).short} {one.trial.id}",
                        f"/trials/{one.trial.id}",
                    ),
                    className="nowrap",
                ),
                html.Td(one.trial.seed, className="number"),
                html.Td(number(one.trial.train_loss), className="number"),
                html.Td(number(one.trial.test_loss), className="number"),
                html.Td(state_badge(one.trial.state)),
            ]
        )
        for one in found
    ]
    return html.Div(
        html.Table(
            [html.Thead(html.Tr([html.Th(name.capitalize()) for name in head])), html.Tbody(rows)],
            className="table",
        ),
        className="scroll",
    )
