"""The offer to load the paper's reproduction with one click, wherever it is missing."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import Input, Output, no_update

from backend.client import calls
from backend.schemas import BundleRead
from dashboard.api_client import ask
from dashboard.callbacks import callback
from dashboard.ids import Bundle as ids
from dashboard.markup import Component, dcc, html

LOOK_MS = 1500
LOADING = "Loading it: about ten seconds."


def bundle_offer(bundle: BundleRead) -> Component:
    """Return a button that loads the bundle, and what is said meanwhile."""
    return html.Div(
        [
            dmc.Button(
                "Load the reproduction",
                id=ids.BUTTON,
                variant="default",
                n_clicks=0,
                loading=bundle.state == "loading",
            ),
            html.Div(_words(bundle), id=ids.WORDS, role="status", className="history-meta"),
            dcc.Interval(id=ids.INTERVAL, interval=LOOK_MS, disabled=bundle.state != "loading"),
        ],
        className="bundle-offer",
    )


def _words(bundle: BundleRead) -> str:
    if bundle.state == "loading":
        return LOADING
    return f"It could not be loaded: {bundle.message}" if bundle.state == "failed" else ""


@callback(
    Output(ids.BUTTON, "loading"),
    Output(ids.WORDS, "children"),
    Output(ids.INTERVAL, "disabled"),
    Output(ids.LOADED, "data"),
    Input(ids.BUTTON, "n_clicks"),
    Input(ids.INTERVAL, "n_intervals"),
    prevent_initial_call=True,
)
async def load(clicks: int, _looks: int | None) -> tuple[Any, ...]:
    """Begin to load the bundle, and look how far it is until it is there."""
    pressed = dash.ctx.triggered_id == ids.BUTTON
    if pressed and not clicks:
        return no_update, no_update, no_update, no_update
    bundle = await ask(calls.load_bundle() if pressed else calls.bundle())
    loading = bundle.state == "loading"
    loaded = bundle.studies if bundle.state == "loaded" else no_update
    return loading, _words(bundle), not loading, loaded
