"""Updates: one node's explicit and implicit step, drawn on its activation."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, dcc, html, no_update
from dash.development.base_component import Component

from backend.client import calls
from backend.schemas import ActivationRead, UpdateRead
from dashboard import ids
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback
from dashboard.catalog import get_catalog
from dashboard.components.controls import Choice, group, segmented, values
from dashboard.components.elements import card, guide_link
from dashboard.components.number_slider import NumberSlider
from dashboard.components.update_words import notes, update_words
from dashboard.components.url_state import Control, keep_in_url, read_controls
from dashboard.figures.blank import NOTHING_YET
from dashboard.figures.update_step import update_figure
from dashboard.formats import number
from dashboard.ids_illustrations import Updates
from dashboard.router import Page
from dashboard.theme import Scheme, graph_config, scheme_of

SPANS: tuple[Choice, ...] = (("whole", "Whole step"), ("near", "Near zero"))
NEAR = 3.0

PUSH = NumberSlider(
    Updates.PUSH, "Gradient |b|", 0.01, 10, 0.01, log=True, marks=(0.01, 0.1, 1, 10)
)
#: Its slider is as wide as the picture, so its own ends are set with every picture.
PLACE = NumberSlider(Updates.PLACE, "Pre-activation s", -100_000, 100_000, 0.02)
RATE = NumberSlider(
    Updates.RATE, "Learning rate η", 0.001, 10_000, 0.01, log=True, marks=(0.001, 0.1, 10, 1000)
)
INPUT = NumberSlider(Updates.INPUT, "Input |z|²", 0.01, 1000, 0.01, log=True, marks=(0.01, 1, 100))
RIDGE = NumberSlider(Updates.RIDGE, "Ridge μ", 0, 1, 0.01, marks=(0, 0.5, 1))

#: The fallbacks are the paper's relu figure.
CONTROLS = (
    Control("activation", Updates.ACTIVATION, "relu"),
    Control("b", Updates.PUSH, 1, "number"),
    Control("s", Updates.PLACE, 0.3, "number"),
    Control("lr", Updates.RATE, 1, "number"),
    Control("z_sq", Updates.INPUT, 1, "number"),
    Control("mu", Updates.RIDGE, 0, "number"),
    Control("view", Updates.SPAN, "whole", choices=values(SPANS)),
)
SLIDERS = {"b": PUSH, "s": PLACE, "lr": RATE, "z_sq": INPUT, "mu": RIDGE}


async def layout(**query: str) -> Component:
    """Return the page; every control may be set in the address."""
    catalog = await get_catalog()
    at = read_controls(CONTROLS, query)
    for name, slider in SLIDERS.items():
        fallback = next(control.fallback for control in CONTROLS if control.name == name)
        at[name] = slider.legal(at[name], fallback)
    if at["activation"] not in {activation.name for activation in catalog.activations}:
        at["activation"] = "relu"
    return html.Div(
        [
            _head(),
            html.Div(
                [_pictures(), _controls(at, catalog.activations)],
                className="two-thirds flat-on-phone",
            ),
        ]
    )


def _head() -> Component:
    return html.Div(
        [
            html.Div(
                [
                    html.H1("One node’s update"),
                    html.P(
                        "A node computes σ(s) from s = θᵀz, and b is the slope of the loss at its "
                        "output. Explicit backpropagation (EB) steps by the slope at s; implicit "
                        "backpropagation (IB) sees where the step would land. Lower loss is "
                        "better, and so is the shorter of two steps that reach it.",
                        className="page-lead",
                    ),
                ]
            ),
            html.Div(
                [
                    dmc.Button(
                        "Paper’s relu figure", id=Updates.PAPER, variant="default", size="sm"
                    ),
                    guide_link("updates"),
                ],
                className="actions",
            ),
        ],
        className="page-head",
    )


def _pictures() -> Component:
    return html.Div(
        [
            _picture("b > 0: the output should fall", Updates.DOWN, Updates.DOWN_WORDS, "place-1"),
            _picture("b < 0: the output should rise", Updates.UP, Updates.UP_WORDS, "place-4"),
        ],
        className="pair",
    )


def _picture(title: str, graph: str, words: str, place: str) -> Component:
    return card(
        html.Div(
            dcc.Graph(id=graph, figure=NOTHING_YET, config=graph_config(graph), responsive=True),
            className="graph-triple",
        ),
        html.Div(id=words, className="picture-words", **{"aria-live": "polite"}),
        title=title,
        className=f"figure-card {place}",
    )


def _controls(at: dict[str, Any], activations: Sequence[ActivationRead]) -> Component:
    return html.Div(
        [
            card(
                group(
                    "Node",
                    html.Div(
                        [
                            html.Label("Activation σ", htmlFor=Updates.ACTIVATION),
                            dmc.Select(
                                id=Updates.ACTIVATION,
                                data=choices_of(activations),
                                value=at["activation"],
                                allowDeselect=False,
                                size="xs",
                                maxDropdownHeight=420,
                            ),
                        ],
                        className="control",
                    ),
                    PLACE.draw(at["s"]),
                    html.P(
                        "s on the left, −s on the right, as in the paper’s figure.",
                        className="muted hint",
                    ),
                    PUSH.draw(at["b"]),
                    INPUT.draw(at["z_sq"]),
                ),
                group("Step", RATE.draw(at["lr"]), RIDGE.draw(at["mu"])),
                group("Axes", segmented("Show", Updates.SPAN, SPANS, at["view"])),
                className="place-3",
            ),
            card(
                html.Div(id=Updates.NOTE, className="words-small"),
                title="About this rule",
                className="place-5",
            ),
        ],
        className="stack",
    )


def choices_of(activations: Sequence[ActivationRead]) -> list[dict[str, Any]]:
    """Return the activations, those with a formula first."""
    exact = [a.name for a in activations if a.approximation_error is None]
    close = [a.name for a in activations if a.approximation_error is not None]
    return [
        {"group": "Exact implicit step", "items": exact},
        {"group": "By piecewise-cubic approximation", "items": close},
    ]


@callback(
    Output(Updates.DOWN, "figure"),
    Output(Updates.UP, "figure"),
    Output(Updates.DOWN_WORDS, "children"),
    Output(Updates.UP_WORDS, "children"),
    Output(Updates.NOTE, "children"),
    Output(PLACE.slider_id, "min"),
    Output(PLACE.slider_id, "max"),
    Output(PLACE.slider_id, "step"),
    Output(PLACE.slider_id, "marks"),
    Input(Updates.ACTIVATION, "value"),
    Input(Updates.PUSH, "value"),
    Input(Updates.PLACE, "value"),
    Input(Updates.RATE, "value"),
    Input(Updates.INPUT, "value"),
    Input(Updates.RIDGE, "value"),
    Input(Updates.SPAN, "value"),
    Input(ids.SCHEME, "data"),
)
async def redraw(
    activation: str, b: Any, s: Any, lr: Any, z_sq: Any, mu: Any, span: str, scheme: Any
) -> Any:
    """Fetch both steps for both signs of b and draw them."""
    typed = ((PUSH, b), (PLACE, s), (RATE, lr), (INPUT, z_sq), (RIDGE, mu))
    if any(not slider.accepts(value) for slider, value in typed):
        return no_update
    reach = NEAR if span == "near" else None
    view = await ask(
        calls.update(activation=activation, b=b, s=s, lr=lr, z_sq=z_sq, mu=mu, reach=reach)
    )
    figures = await asyncio.to_thread(draw, view, scheme_of(scheme))
    return (
        *figures,
        update_words(view, 1),
        update_words(view, -1),
        notes(view),
        *place_slider(view),
    )


def draw(view: UpdateRead, scheme: Scheme) -> tuple[Any, Any]:
    """Return the pictures of both signs of b."""
    return update_figure(view, 1, scheme), update_figure(view, -1, scheme)


def place_slider(view: UpdateRead) -> tuple[float, float, float, list[dict[str, Any]]]:
    """Return the ends, the step and the marks of the slider of s: those of the picture."""
    reach = view.s[-1]
    marks = [{"value": value, "label": number(value)} for value in (-reach, 0.0, reach)]
    return -reach, reach, reach / 100, marks


for _slider in SLIDERS.values():
    _slider.connect()
keep_in_url("^/updates/?$", CONTROLS)

browser_callback(
    f"function(clicks) {{ return {json.dumps([control.fallback for control in CONTROLS])}; }}",
    *[Output(control.id, control.property) for control in CONTROLS],
    Input(Updates.PAPER, "n_clicks"),
    prevent_initial_call=True,
)

PAGE = Page("/updates", "Updates", layout, navigation="Updates")
