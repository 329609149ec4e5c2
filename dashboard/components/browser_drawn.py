"""What the browser draws: graphs that keep their zoom, plain elements, illustrated pages."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dash import Input, Output, State

from dashboard.callbacks import browser_callback
from dashboard.components.number_fields import NumberSlider
from dashboard.markup import Component, dcc, html
from dashboard.theme import METHOD_STYLE, PALETTE, template


def draw_from(store: str, graph: str, zoom: str | None = None) -> None:
    """Let a graph show the figure that a store holds, and keep its viewer's zoom and choice.

    Plotly's `uirevision` alone does not: Dash writes a zoom back into the figure, whereupon
    plotly forgets that it came from a person. Callbacks of a graph also wait for the plotting
    library to load, those of a store do not.

    Args:
        store: Holds the figure.
        graph: Shows it.
        zoom: A store of the zoom as text, from and to along each axis, which the address may
            hold; None: the zoom is the graph's own affair.
    """
    name = json.dumps(graph)
    if zoom is None:
        browser_callback(
            f"function(figure) {{ return window.etascope.keepView({name}, figure).slice(0, 2); }}",
            Output(graph, "figure"),
            Output(graph, "style"),
            Input(store, "data"),
            prevent_initial_call=True,
        )
        return
    browser_callback(
        f"function(figure, zoom) {{ return window.etascope.keepView({name}, figure, zoom); }}",
        Output(graph, "figure"),
        Output(graph, "style"),
        Output(zoom, "data", allow_duplicate=True),
        Input(store, "data"),
        State(zoom, "data"),
        prevent_initial_call=True,
    )
    browser_callback(
        f"function(change, zoom) {{ return window.etascope.readZoom({name}, zoom); }}",
        Output(zoom, "data", allow_duplicate=True),
        Input(graph, "relayoutData"),
        State(zoom, "data"),
        prevent_initial_call=True,
    )
    browser_callback(
        f"function(zoom) {{ window.etascope.showZoom({name}, zoom); }}",
        Input(zoom, "data"),
        prevent_initial_call=True,
    )


def plain_elements(store: str, place: str, meanwhile: Component) -> Component:
    """Return a place for markup that no callback reads or changes in part, and what is shown first.

    At every change of anything Dash asks each component of a page whether it changed, too, and a
    new one makes it ask all of them again. A table of two hundred cells would slow down every
    control beside it, so it is sent as data and the browser makes the elements (`fill_from`).

    Args:
        store: Holds the markup.
        place: Shows it.
        meanwhile: What is shown until there is any.
    """
    return html.Div(
        [
            dcc.Store(id=store),
            html.Div(id=place, className="plain-elements"),
            html.Div(meanwhile, className="until-filled"),
        ]
    )


def fill_from(store: str, place: str) -> None:
    """Let a place show the components, of `dash.html` only, that a store holds."""
    browser_callback(
        f"function(markup) {{ window.etascope.fillPlain({json.dumps(place)}, markup); }}",
        Input(store, "data"),
    )


def looks() -> dict[str, Any]:
    """Return every method's style, and palette and template in light and dark."""
    by_scheme: dict[str, Any] = {
        scheme: {"palette": asdict(palette), "template": template(scheme).to_plotly_json()}
        for scheme, palette in PALETTE.items()
    }
    methods = {name: asdict(METHOD_STYLE[name]) for name in ("eb", "ib", "isgd")}
    return {"methods": methods, **by_scheme}


def sliders_for_browser(sliders: Mapping[str, NumberSlider]) -> list[dict[str, Any]]:
    """Return what the browser must know of sliders to read them, by the name of their number."""
    return [
        {
            "name": name,
            "id": slider.id,
            "low": slider.low,
            "high": slider.high,
            "log": slider.log,
            "whole": slider.whole,
        }
        for name, slider in sliders.items()
    ]


def slider_inputs(sliders: Mapping[str, NumberSlider]) -> list[Input]:
    """Return the numbers of sliders, then their places, which come first while one is dragged."""
    return [
        *(Input(slider.id, "value") for slider in sliders.values()),
        *(Input(slider.slider_id, "value") for slider in sliders.values()),
    ]


def drawing_place(id: str, label: str, words: str, size: str) -> Component:
    """Return the place of a picture the browser draws.

    Args:
        id: Of it.
        label: What it shows, for those who do not see it.
        words: Id of what says the same in words.
        size: The class that gives it its height.
    """
    named = {"aria-label": label, "aria-describedby": words}
    return html.Div(id=id, className=f"drawn {size}", role="img", **named)
