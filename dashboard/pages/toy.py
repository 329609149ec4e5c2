"""Toy: explicit against implicit descent on a one-dimensional loss."""

import asyncio
import json
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, dcc, html, no_update
from dash.development.base_component import Component

from backend.client import calls
from backend.schemas import QuadraticRead
from dashboard import ids
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback
from dashboard.components.controls import Choice, group, segmented, switch, values
from dashboard.components.descent_words import LOSS_FORMULA, LOSS_WORDS, descent_words
from dashboard.components.elements import card, guide_link
from dashboard.components.number_slider import NumberSlider
from dashboard.components.step_player import step_player
from dashboard.components.url_state import Control, keep_in_url, read_controls
from dashboard.figures.blank import NOTHING_YET
from dashboard.figures.toy import TITLE_OF, path_figure
from dashboard.figures.toy_history import history_figure
from dashboard.formats import number
from dashboard.ids_illustrations import Toy
from dashboard.router import Page
from dashboard.theme import Scheme, graph_config, scheme_of

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
    Control("loss", Toy.LOSS, "quadratic", choices=values(LOSSES)),
    Control("lr", Toy.RATE, 1.75, "number"),
    Control("curvature", Toy.CURVATURE, 1, "number"),
    Control("start", Toy.START, 2, "number"),
    Control("steps", Toy.STEPS, 10, "number"),
    Control("log", Toy.LOG, False, "flag", property="checked"),
)
PAPER = CONTROLS[:5]
SLIDERS = {"lr": RATE, "curvature": CURVATURE, "start": START, "steps": STEPS}

UPDATE_RULE = {
    "esgd": "θ′ = θ − η f′(θ): the slope where one stands",
    "isgd": "θ′ = θ − η f′(θ′): the slope where one arrives",
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
            _head(),
            html.Div([_pictures(at["steps"]), _controls(at)], className="two-thirds flat-on-phone"),
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
                [_path_card("esgd", Toy.EXPLICIT), _path_card("isgd", Toy.IMPLICIT)],
                className="pair place-1",
            ),
            step_player(steps),
            html.Div(
                [
                    card(
                        _graph(Toy.LOSSES, "graph-low"),
                        title="Loss by step",
                        className="figure-card",
                    ),
                    card(
                        _graph(Toy.THETAS, "graph-low"), title="θ by step", className="figure-card"
                    ),
                ],
                className="pair place-4",
            ),
        ],
        className="stack",
    )


def _path_card(method: str, id: str) -> Component:
    return card(
        html.P(UPDATE_RULE[method], className="muted figure-caption"),
        _graph(id, "graph-tall"),
        title=TITLE_OF[method],
        className="figure-card",
    )


def _graph(id: str, size: str) -> Component:
    graph = dcc.Graph(id=id, figure=NOTHING_YET, config=graph_config(id), responsive=True)
    return html.Div(graph, className=size)


def _controls(at: dict[str, Any]) -> Component:
    mark = html.Div(
        html.Div(id=Toy.RATE_MARK, className="slider-mark"), className="slider-mark-rail"
    )
    return html.Div(
        [
            card(
                group(
                    "Loss",
                    html.Div(
                        segmented("Function", Toy.LOSS, LOSSES, at["loss"]),
                        className="wide-control",
                    ),
                    CURVATURE.draw(at["curvature"]),
                    START.draw(at["start"]),
                ),
                group("Descent", RATE.draw(at["lr"], above=mark), STEPS.draw(at["steps"])),
                group("Axes", switch("Log loss", Toy.LOG, at["log"])),
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


@callback(
    Output(Toy.FIGURES, "data"),
    Output(Toy.WORDS, "children"),
    Output(Toy.RATE_MARK, "children"),
    Output(Toy.RATE_MARK, "style"),
    Input(Toy.LOSS, "value"),
    Input(Toy.RATE, "value"),
    Input(Toy.CURVATURE, "value"),
    Input(Toy.START, "value"),
    Input(Toy.STEPS, "value"),
    Input(Toy.LOG, "checked"),
    Input(ids.SCHEME, "data"),
)
async def redraw(
    loss: str, lr: Any, curvature: Any, start: Any, steps: Any, log: bool, scheme: Any
) -> Any:
    """Fetch both paths and draw them; a field that is being typed in is waited for."""
    typed = ((RATE, lr), (CURVATURE, curvature), (START, start), (STEPS, steps))
    if any(not slider.accepts(value) for slider, value in typed):
        return no_update
    view = await ask(
        calls.quadratic(loss=loss, lr=lr, curvature=curvature, start=start, steps=steps)
    )
    pictures = await asyncio.to_thread(draw, view, scheme_of(scheme), log)
    return {"steps": steps, "pictures": pictures}, words(view), *limit_mark(view)


def draw(view: QuadraticRead, scheme: Scheme, log: bool) -> list[dict[str, Any]]:
    """Return the four pictures, whole; the browser shows them up to a step."""
    figures = (
        path_figure(view, "esgd", scheme),
        path_figure(view, "isgd", scheme),
        history_figure(view, "loss", scheme, log=log),
        history_figure(view, "theta", scheme),
    )
    return [figure.to_plotly_json() for figure in figures]


def words(view: QuadraticRead) -> list[Component]:
    """Return what the pictures show, for those who read."""
    about = html.P(
        [html.Strong(LOSS_FORMULA[view.loss]), ". ", LOSS_WORDS[view.loss]], className="muted"
    )
    return [*descent_words(view), about]


def limit_mark(view: QuadraticRead) -> tuple[str, dict[str, str]]:
    """Return the stability limit as a mark above the rate's slider, if there is one."""
    limit = view.stability_limit
    if limit is None or not RATE.low <= limit <= RATE.high:
        return "", {"display": "none"}
    return f"limit 2/λ = {number(limit)}", {"left": f"{RATE.percent(limit):.2f}%"}


for _slider in SLIDERS.values():
    _slider.connect()
keep_in_url("^/toy/?$", CONTROLS)

browser_callback(
    f"function(clicks) {{ return {json.dumps([control.fallback for control in PAPER])}; }}",
    *[Output(control.id, control.property) for control in PAPER],
    Input(Toy.PAPER, "n_clicks"),
    prevent_initial_call=True,
)

PAGE = Page("/toy", "Toy", layout, navigation="Toy")
