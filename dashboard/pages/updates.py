"""Updates: one node's explicit and implicit step, drawn on its activation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, dcc, html
from dash.development.base_component import Component

from backend.client import calls
from backend.schemas import ActivationRead
from dashboard import ids
from dashboard.api_client import ask, get_catalog
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
    values_of,
)
from dashboard.dash_blocks import browser_callback, callback
from dashboard.ids import Updates
from dashboard.router import Page
from dashboard.theme import looks

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
    Control("view", Updates.SPAN, "whole", choices=values_of(SPANS)),
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
            dcc.Store(id=Updates.LOOKS, data=looks()),
            dcc.Store(id=Updates.RULE, data=await rule_of(at["activation"])),
            _head(),
            # Controls come first for the keyboard; they stand on the right.
            html.Div(
                [_controls(at, query, catalog.activations), _pictures()],
                className="two-thirds controls-right flat-on-phone",
            ),
            _limit(),
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


def _limit() -> Component:
    """Return the step against the rate, where one sees whether it has a limit."""
    label = "How long both steps from s are at rates from 0.001 to 10 000, both axes logarithmic"
    return card(
        drawing_place(Updates.LIMIT, label, Updates.LIMIT_WORDS, "graph-limit"),
        html.Div(id=Updates.LIMIT_WORDS, className="picture-words", **{"aria-live": "polite"}),
        title="As the rate grows",
        className="figure-card",
        mt=16,
    )


def _picture(title: str, graph: str, words: str, place: str) -> Component:
    label = f"{title}. Both steps on the activation; below, step and loss for every s"
    return card(
        drawing_place(graph, label, words, "graph-triple"),
        html.Div(id=words, className="picture-words", **{"aria-live": "polite"}),
        title=title,
        className=f"figure-card {place}",
    )


def _controls(
    at: dict[str, Any], asked: Mapping[str, str], activations: Sequence[ActivationRead]
) -> Component:
    drawn = {name: one.draw(at[name], asked=asked.get(name)) for name, one in SLIDERS.items()}
    return html.Div(
        [
            card(
                drawn["s"],
                html.P(
                    "s on the left, −s on the right, as in the paper’s figure.",
                    className="muted hint wide-only",
                ),
                drawn["lr"],
                className="at-hand place-0",
            ),
            card(
                control_group(
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
                    drawn["b"],
                    drawn["z_sq"],
                    drawn["mu"],
                ),
                control_group("Axes", segmented("Show", Updates.SPAN, SPANS, at["view"])),
                className="place-3",
            ),
            card(
                html.Div(id=Updates.NOTE, className="words-small"),
                guide_link("updates", "How is the implicit step found?"),
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


async def rule_of(activation: str) -> dict[str, Any]:
    """Return what the browser needs for an activation's implicit step, whatever the step.

    Where a formula gives it the browser has the formula; the API, and torch with it, is not asked.
    """
    catalog = await get_catalog()
    exact = [one.name for one in catalog.activations if one.approximation_error is None]
    facts = ("stand_in", "approximation_error", "slope_error")
    if activation in exact:
        return {"activation": activation, **dict.fromkeys(facts)}
    found = await ask(calls.update(activation=activation))
    return {"activation": activation, **{fact: getattr(found, fact) for fact in facts}}


@callback(
    Output(Updates.RULE, "data"), Input(Updates.ACTIVATION, "value"), prevent_initial_call=True
)
async def change_rule(activation: str) -> dict[str, Any]:
    """Fetch the rule of another activation."""
    return await rule_of(activation)


browser_callback(
    "function(activation, span, scheme, rule, ...rest) "
    "{ const looks = rest.pop(), half = rest.length / 2; "
    f"return window.etascope.drawUpdates(looks, {json.dumps(sliders_for_browser(SLIDERS))}, "
    f"rule, activation, span === 'near' ? {NEAR} : null, scheme, "
    "rest.slice(0, half), rest.slice(half)); }",
    Output(Updates.DOWN_WORDS, "children"),
    Output(Updates.UP_WORDS, "children"),
    Output(Updates.NOTE, "children"),
    Output(Updates.LIMIT_WORDS, "children"),
    Output(PLACE.slider_id, "min"),
    Output(PLACE.slider_id, "max"),
    Output(PLACE.slider_id, "step"),
    Output(PLACE.slider_id, "marks"),
    Input(Updates.ACTIVATION, "value"),
    Input(Updates.SPAN, "value"),
    Input(ids.SCHEME, "data"),
    Input(Updates.RULE, "data"),
    *slider_inputs(SLIDERS),
    State(Updates.LOOKS, "data"),
)

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
