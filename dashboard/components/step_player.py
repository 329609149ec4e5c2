"""Goes through the toy's steps one by one; the browser does it, from pictures it has already."""

import dash_mantine_components as dmc
from dash import Input, Output, State, dcc, html
from dash.development.base_component import Component

from dashboard.callbacks import browser_callback
from dashboard.components.elements import card
from dashboard.ids_illustrations import Toy

STEP_MILLISECONDS = 600


def step_player(steps: int) -> Component:
    """Return buttons and a slider through so many steps."""
    return card(
        dcc.Interval(id=Toy.TICK, interval=STEP_MILLISECONDS, disabled=True),
        html.Div(
            [
                dmc.Button("Back", id=Toy.BACK, variant="default", size="xs"),
                dmc.Button("Play", id=Toy.PLAY, size="xs", w=72),
                dmc.Button("Step", id=Toy.NEXT, variant="default", size="xs"),
                dmc.Slider(
                    id=Toy.AT,
                    value=steps,
                    min=0,
                    max=steps,
                    step=1,
                    updatemode="drag",
                    size="sm",
                    thumbSize=18,
                    thumbLabel="Step shown",
                    label=None,
                    className="player-slider",
                ),
                html.Span(id=Toy.AT_WORDS, className="number", **{"aria-live": "off"}),
            ],
            className="player",
        ),
        className="place-2",
    )


browser_callback(
    "function(figures, at) { return window.etascope.showStep(figures, at); }",
    Output(Toy.AT_WORDS, "children"),
    Input(Toy.FIGURES, "data"),
    Input(Toy.AT, "value"),
)
browser_callback(
    "function(figures, play, back, next, tick, at, stopped) "
    "{ return window.etascope.moveStep(figures, at, stopped); }",
    Output(Toy.AT, "value"),
    Output(Toy.AT, "max"),
    Output(Toy.TICK, "disabled"),
    Output(Toy.PLAY, "children"),
    Input(Toy.FIGURES, "data"),
    Input(Toy.PLAY, "n_clicks"),
    Input(Toy.BACK, "n_clicks"),
    Input(Toy.NEXT, "n_clicks"),
    Input(Toy.TICK, "n_intervals"),
    State(Toy.AT, "value"),
    State(Toy.TICK, "disabled"),
    prevent_initial_call=True,
)
