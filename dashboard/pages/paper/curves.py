"""One experiment's curves: ours, and the authors' recorded runs over them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output

from backend.client import calls
from backend.schemas import ExperimentRead, PaperRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback
from dashboard.components import (
    Control,
    card,
    keep_in_url,
    read_controls,
    segmented,
    values_of,
    with_code,
)
from dashboard.figures import NOTHING_YET, Picture, sensitivity_figure
from dashboard.ids import Paper as ids
from dashboard.markup import Component, dcc, html
from dashboard.theme import graph_config, scheme_of

FIRST = "05_jsb_chorales"
PROFILES = (("text", "Text"), ("authors", "Authors and recorded"))
NOT_RUN = (
    "Nothing of it was run here yet. The table below runs it with one click; "
    "`etascope import-bundle` brings in the trials that came with Etascope."
)
CONTROLS = (
    Control("experiment", ids.EXPERIMENT, FIRST),
    Control("profile", ids.PROFILE, "text", choices=values_of(PROFILES)),
)

keep_in_url("^/paper/?$", CONTROLS)
# A link far down the page chooses what is drawn at its top.
browser_callback(
    f"function() {{ document.getElementById('{ids.PICTURE}').scrollIntoView(); }}",
    Input(ids.EXPERIMENT, "value"),
    prevent_initial_call=True,
)


def picture_address(one: ExperimentRead) -> str:
    """Return where an experiment's curves are drawn, in a profile that has some."""
    profile = "" if one.text.series or not curves_of(one, "authors") else "&profile=authors"
    return f"/paper?experiment={one.id}{profile}"


def card_for(paper: PaperRead, query: Mapping[str, str]) -> Component:
    """Return the picture of the experiment an address names, with its controls."""
    known = {one.id: one.title for one in paper.experiments}
    values = read_controls(CONTROLS, query)
    wanted = values["experiment"]
    return card(
        html.Div(
            [
                dmc.Select(
                    label="Experiment",
                    id=ids.EXPERIMENT,
                    data=[{"value": id, "label": title} for id, title in known.items()],
                    value=wanted if wanted in known else FIRST,
                    allowDeselect=False,
                    searchable=True,
                    w=280,
                ),
                segmented("Profile", ids.PROFILE, PROFILES, values["profile"]),
            ],
            className="picture-controls",
        ),
        dcc.Graph(
            id=ids.GRAPH,
            figure=NOTHING_YET,
            config=graph_config("etascope-paper"),
            responsive=True,
        ),
        html.Div(id=ids.MESSAGE, className="picture-words history-meta"),
        className="figure-card",
        id=ids.PICTURE,
    )


@callback(
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Output(ids.MESSAGE, "children"),
    Input(ids.EXPERIMENT, "value"),
    Input(ids.PROFILE, "value"),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw(experiment: str, profile: str, scheme: Any, narrow: Any) -> tuple[Any, Any, Any]:
    """Draw an experiment's curves."""
    paper = await ask(calls.paper())
    one = next((found for found in paper.experiments if found.id == experiment), None)
    series = curves_of(one, profile) if one else []
    if one is None or not series:
        return NOTHING_YET, {"display": "none"}, with_code(NOT_RUN)
    look = Picture(
        title=f"{one.title}, {profile} profile",
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{experiment} {profile}",
    )
    threshold = next((line.threshold for line in series if line.threshold is not None), None)
    figure = await asyncio.to_thread(sensitivity_figure, series, look, threshold=threshold)
    return figure, {"height": f"{figure.layout.height}px"}, one.note


def curves_of(one: ExperimentRead, profile: str) -> list[Any]:
    """Return a profile's curves; the recorded runs lie over the authors profile's."""
    return one.text.series if profile == "text" else [*one.authors.series, *one.recorded]
