"""What everybody did, page by page."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, no_update

from backend.client import calls
from backend.schemas import AuditRead, Page
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import callback
from dashboard.components.people import activity
from dashboard.ids_team import Admin as ids
from dashboard.markup import Component, html

PAGE_SIZE = 30


def panel(past: Page[AuditRead]) -> list[Component]:
    """Return the newest deeds, with a button for older ones."""
    return [
        html.Div([activity(past.items, linked=True)], id=ids.ACTIVITY),
        html.Div(_more(past), id=ids.MORE),
    ]


def _more(past: Page[AuditRead]) -> Component | None:
    if past.next_cursor is None:
        return None
    return dmc.Button(
        "Show more",
        id=shared.part("admin-more", past.next_cursor),
        variant="default",
        size="compact-sm",
        mt=8,
        n_clicks=0,
    )


@callback(
    Output(ids.ACTIVITY, "children"),
    Output(ids.MORE, "children"),
    Input(shared.part("admin-more", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def show_more(clicks: list[int]) -> tuple[Any, Any]:
    """Add older deeds below."""
    if not any(clicks):
        return no_update, no_update
    cursor = dash.ctx.triggered_id["key"]
    past = await ask(calls.audit(limit=PAGE_SIZE, cursor=cursor))
    older = dash.Patch()
    older.append(activity(past.items, linked=True))
    return older, _more(past)
