"""A study among people: its link, what was done to it, and deleting it for good."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import Input, Output, State, no_update

from backend.client import calls
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback
from dashboard.components.people import activity
from dashboard.ids import Study
from dashboard.ids_team import Sharing as ids
from dashboard.markup import Component, html

MOST_SHOWN = 5
MOST_KEPT = 100


def copy_link() -> Component:
    """Return the button that copies the address of exactly this view."""
    return dmc.Button("Copy link", id=ids.COPY_LINK, variant="default", n_clicks=0)


def delete_button() -> Component:
    """Return the button that asks before it deletes."""
    return dmc.Button("Delete", id=ids.DELETE, variant="default", className="danger", n_clicks=0)


async def past(study_id: int) -> Component:
    """Return what was done to a study; all but the newest few are folded away."""
    entries = (await ask(calls.audit(study_id=study_id, limit=MOST_KEPT))).items
    if len(entries) <= MOST_SHOWN + 1:
        return activity(entries)
    older = html.Details(
        [
            html.Summary(f"{len(entries) - MOST_SHOWN} earlier", className="history-meta"),
            activity(entries[MOST_SHOWN:]),
        ]
    )
    return html.Div([activity(entries[:MOST_SHOWN]), older], className="activity")


def delete_dialog() -> Component:
    """Return the question before a study is gone."""
    return dmc.Modal(
        [
            html.P(
                "Delete this study for good, with its sweeps, notes and every trial that no other "
                "study holds? This cannot be undone; archiving can."
            ),
            dmc.Group(
                [
                    dmc.Button("Keep it", id=ids.DELETE_NO, variant="default", n_clicks=0),
                    dmc.Button("Delete for good", id=ids.DELETE_YES, color="red", n_clicks=0),
                ],
                justify="end",
            ),
        ],
        id=ids.DELETE_MODAL,
        title="Are you sure?",
        closeButtonProps={"aria-label": "Close"},
    )


browser_callback(
    "function(clicks) { return window.etascope.copyLink(clicks); }",
    Output(ids.COPY_LINK, "title"),
    Input(ids.COPY_LINK, "n_clicks"),
    prevent_initial_call=True,
)
browser_callback(
    "function(clicks) { return Boolean(clicks); }",
    Output(ids.DELETE_MODAL, "opened"),
    Input(ids.DELETE, "n_clicks"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.DELETE_MODAL, "opened", allow_duplicate=True),
    Output(shared.LOCATION, "href", allow_duplicate=True),
    Input(ids.DELETE_YES, "n_clicks"),
    Input(ids.DELETE_NO, "n_clicks"),
    State(Study.ID, "data"),
    prevent_initial_call=True,
)
async def delete(_yes: int, _no: int, study_id: int) -> tuple[Any, Any]:
    """Delete what was confirmed, and go back to the history."""
    if dash.ctx.triggered_id != ids.DELETE_YES or not dash.ctx.triggered[0]["value"]:
        return False, no_update
    await ask(calls.delete_study(study_id))
    return False, "/history"
