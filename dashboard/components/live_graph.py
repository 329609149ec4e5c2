"""A graph that is drawn anew while somebody looks closely at a part of it."""

import json

from dash import Input, Output

from dashboard.callbacks import browser_callback


def draw_from(store: str, graph: str) -> None:
    """Let a graph show the figure that a store holds, and keep its viewer's zoom and choice.

    Plotly's `uirevision` alone does not: Dash writes a zoom back into the figure, whereupon
    plotly forgets that it came from a person. Callbacks of a graph also wait for the plotting
    library to load, those of a store do not.
    """
    browser_callback(
        f"function(figure) {{ return window.etascope.keepView({json.dumps(graph)}, figure); }}",
        Output(graph, "figure"),
        Output(graph, "style"),
        Input(store, "data"),
        prevent_initial_call=True,
    )
