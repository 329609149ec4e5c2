"""What the browser draws from a store: a graph that keeps its zoom, and plain elements."""

import json

from dash import Input, Output, State

from dashboard.callbacks import browser_callback
from dashboard.markup import Component, dcc, html


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
