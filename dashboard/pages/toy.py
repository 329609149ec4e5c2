"""Toy: explicit against implicit descent on a one-dimensional loss."""

import json
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, dcc, html
from dash.development.base_component import Component

from dashboard import ids
from dashboard.components import (
    Choice,
    Control,
    NumberSlider,
    card,
    control_group,
    drawing_place,
    guide_link,
    keep_in_url,
    read_controls,
    segmented,
    slider_inputs,
    sliders_for_browser,
    switch,
    values_of,
)
from dashboard.dash_blocks import browser_callback
from dashboard.ids import Toy
from dashboard.router import Page
from dashboard.theme import looks

LOSSES: tuple[Choice, ...] = (
    ("quadratic", "Quadratic"),
    ("absolute", "Absolute"),
    ("logistic", "Logistic"),
    ("arctan_well", "Arctan well"),
)
RATE = NumberSlider(
    Toy.RATE, "Learning rate η", 0.01, 100, 0.01, log=True, marks=(0.01, 0.1, 1, 10, 100)
)
CURVATURE = NumberSlider(Toy.CURVATURE, "Curvature λ", 0.1, 10, 0.01, log=True, marks=(0.1, 1, 10))
START = NumberSlider(Toy.START, "Start θ₀", -4, 4, 0.05, marks=(-4, 0, 4))
STEPS = NumberSlider(Toy.STEPS, "Steps", 1, 50, 1, marks=(1, 10, 50), whole=True)

#: The fallbacks are the paper's first figure.
CONTROLS = (
    Control("loss", Toy.LOSS, "quadratic", choices=values_of(LOSSES)),
    Control("lr", Toy.RATE, 1.75, "number"),
    Control("curvature", Toy.CURVATURE, 1, "number"),
    Control("start", Toy.START, 2, "number"),
    Control("steps", Toy.STEPS, 10, "number"),
    Control("log", Toy.LOG, False, "flag", property="checked"),
)
PAPER = CONTROLS[:5]
STEP_MILLISECONDS = 600
SLIDERS = {"lr": RATE, "curvature": CURVATURE, "start": START, "steps": STEPS}

#: By picture: the method's name and its rule.
PATHS = {
    Toy.EXPLICIT: ("Explicit (ESGD)", "θ′ = θ − η f′(θ): the slope where one stands"),
    Toy.IMPLICIT: ("Implicit (ISGD)", "θ′ = θ − η f′(θ′): the slope where one arrives"),
}


def layout(**query: str) -> Component:
    """Return the page; every control may be set in the address."""
    at = read_controls(CONTROLS, query)
    for name, slider in SLIDERS.items():
        fallback = next(control.fallback for control in CONTROLS if control.name == name)
        at[name] = slider.legal(at[name], fallback)
    return html.Div(
        [
            dcc.Store(id=Toy.FIGURES),
            dcc.Store(id=Toy.LOOKS, data=looks()),
            _head(),
            # Controls come first for the keyboard; they stand on the right.
            html.Div(
                [_controls(at, query), _pictures(at["steps"])],
                className="two-thirds controls-right flat-on-phone",
            ),
        ]
    )


def _head() -> Component:
    return html.Div(
        [
            html.Div(
                [
                    html.H1("Explicit and implicit descent"),
                    html.P(
                        "Both methods start at the same point and take the same number of steps. "
                        "Explicit descent (ESGD) uses the slope where it stands, implicit descent "
                        "(ISGD) the slope where it arrives. Turn the learning rate past 2/λ.",
                        className="page-lead",
                    ),
                ]
            ),
            html.Div(
                [
                    dmc.Button(
                        "Paper’s figure (η = 1.75)", id=Toy.PAPER, variant="default", size="sm"
                    ),
                    guide_link("toy"),
                ],
                className="actions",
            ),
        ],
        className="page-head",
    )


def _pictures(steps: int) -> Component:
    return html.Div(
        [
            html.Div(
                [_path_card(Toy.EXPLICIT), _path_card(Toy.IMPLICIT)],
                className="pair place-1",
            ),
            step_player(steps),
            html.Div(
                [
                    _step_card(Toy.LOSSES, "Loss by step"),
                    _step_card(Toy.THETAS, "θ by step"),
                ],
                className="pair place-4",
            ),
        ],
        className="stack",
    )


def _path_card(id: str) -> Component:
    title, rule = PATHS[id]
    return card(
        html.P(rule, className="muted figure-caption"),
        drawing_place(id, f"{title}: the loss, and the path on it", Toy.WORDS, "graph-tall"),
        title=title,
        className="figure-card",
    )


def _step_card(id: str, title: str) -> Component:
    label = f"{title}, both methods"
    return card(
        drawing_place(id, label, Toy.WORDS, "graph-low"), title=title, className="figure-card"
    )


def _controls(at: dict[str, Any], asked: Mapping[str, str]) -> Component:
    mark = html.Div(
        html.Div(id=Toy.RATE_MARK, className="slider-mark"), className="slider-mark-rail"
    )
    return html.Div(
        [
            card(
                RATE.draw(at["lr"], asked=asked.get("lr"), above=mark), className="at-hand place-0"
            ),
            card(
                control_group(
                    "Loss",
                    html.Div(
                        segmented("Function", Toy.LOSS, LOSSES, at["loss"]),
                        className="wide-control",
                    ),
                    CURVATURE.draw(at["curvature"], asked=asked.get("curvature")),
                    START.draw(at["start"], asked=asked.get("start")),
                ),
                control_group("Descent", STEPS.draw(at["steps"], asked=asked.get("steps"))),
                control_group("Axes", switch("Log loss", Toy.LOG, at["log"])),
                className="place-3",
            ),
            card(
                html.Div(id=Toy.WORDS, **{"aria-live": "polite"}),
                title="What happens, in words",
                className="place-5",
            ),
        ],
        className="stack",
    )


def step_player(steps: int) -> Component:
    """Return buttons and a slider that go through so many steps one by one."""
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
    "function(loss, log, scheme, ...rest) { const [looks, at, stopped] = rest.splice(-3); "
    f"return window.etascope.drawToy(looks, {json.dumps(sliders_for_browser(SLIDERS))}, "
    "loss, log, scheme, rest.slice(0, rest.length / 2), rest.slice(rest.length / 2), "
    "at, stopped); }",
    Output(Toy.FIGURES, "data"),
    Output(Toy.WORDS, "children"),
    Output(Toy.RATE_MARK, "children"),
    Output(Toy.RATE_MARK, "style"),
    Input(Toy.LOSS, "value"),
    Input(Toy.LOG, "checked"),
    Input(ids.SCHEME, "data"),
    *slider_inputs(SLIDERS),
    State(Toy.LOOKS, "data"),
    State(Toy.AT, "value"),
    State(Toy.TICK, "disabled"),
)
for _slider in SLIDERS.values():
    _slider.connect()
keep_in_url("^/toy/?$", CONTROLS)

browser_callback(
    f"function(clicks) {{ return {json.dumps([control.fallback for control in PAPER])}; }}",
    *[Output(control.id, control.property) for control in PAPER],
    Input(Toy.PAPER, "n_clicks"),
    prevent_initial_call=True,
)
# Going through the steps one by one is the browser's affair: it has all pictures already.
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

PAGE = Page("/toy", "Toy", layout, navigation="Toy")
