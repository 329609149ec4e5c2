"""Markup that no callback reads or changes in part, as plain elements of the page.

At every change of anything Dash asks each component of a page whether it changed, too, and a new
one makes it ask all of them again. A table of two hundred cells would slow down every control
beside it, so it is sent as data and the browser makes the elements.
"""

import json

from dash import Input

from dashboard.callbacks import browser_callback
from dashboard.markup import Component, dcc, html


def planted(store: str, place: str, meanwhile: Component) -> Component:
    """Return a place for markup, and what is shown until there is any."""
    return html.Div(
        [
            dcc.Store(id=store),
            html.Div(id=place, className="planted"),
            html.Div(meanwhile, className="until-planted"),
        ]
    )


def plant_from(store: str, place: str) -> None:
    """Let a place show the components, of `dash.html` only, that a store holds."""
    browser_callback(
        f"function(markup) {{ window.etascope.plant({json.dumps(place)}, markup); }}",
        Input(store, "data"),
    )
