"""Saved views: the history's filters under a name, each person's own."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import ViewCreate, ViewFilters, ViewRead
from dashboard import ids as shared
from dashboard.api_client import ask, sentence
from dashboard.callbacks import browser_callback, callback
from dashboard.components.elements import link
from dashboard.components.people import refused
from dashboard.ids_team import Views as ids
from dashboard.markup import Component, html
from dashboard.pages.history.filters import CONTROLS


def button() -> Component:
    """Return what opens the views."""
    return dmc.Button("Views", id=ids.BUTTON, variant="default", n_clicks=0)


def dialog() -> Component:
    """Return the saved views, and a place to save the present one."""
    return dmc.Modal(
        [
            html.Div(id=ids.LIST),
            html.Div(
                [
                    dmc.TextInput(
                        label="Save the present filters as", id=ids.NAME, style={"flex": 1}
                    ),
                    dmc.Button("Save", id=ids.SAVE, n_clicks=0),
                ],
                className="form-row",
                style={"marginTop": "16px"},
            ),
            html.Div(id=ids.ERROR, role="alert"),
        ],
        id=ids.MODAL,
        title="Saved views",
        closeButtonProps={"aria-label": "Close"},
    )


def address_of(view: ViewRead) -> str:
    """Return the history's address with a view's filters."""
    return f"/history?{urlencode(view.filters)}" if view.filters else "/history"


def filters_of(values: Sequence[Any]) -> dict[str, str]:
    """Return the controls' values as an address holds them, without those nobody changed."""
    found = {}
    for control, value in zip(CONTROLS, values, strict=True):
        text = "1" if value is True else str(value or "").strip()
        if text and value != control.fallback:
            found[control.name] = text
    return found


async def _list() -> Component:
    views = (await ask(calls.views())).items
    if not views:
        return html.P(
            "None yet. Set the filters, give them a name, and find them here.", className="muted"
        )
    return html.Ul([html.Li(_item(view)) for view in views], className="activity")


def _item(view: ViewRead) -> Component:
    told = ", ".join(f"{name} {text}" for name, text in view.filters.items()) or "everything"
    delete = dmc.Button(
        "Delete",
        id=shared.part("view-delete", view.id),
        size="compact-sm",
        variant="subtle",
        color="gray",
        n_clicks=0,
        **{"aria-label": f"Delete {view.name}"},
    )
    words = [link(view.name, address_of(view)), html.Div(told, className="history-meta")]
    return html.Div([html.Div(words), delete], className="remark-head")


@callback(
    Output(ids.MODAL, "opened"),
    Output(ids.LIST, "children"),
    Input(ids.BUTTON, "n_clicks"),
    prevent_initial_call=True,
)
async def show(clicks: int) -> tuple[Any, Any]:
    """Open the dialog with what is saved now."""
    return (True, await _list()) if clicks else (no_update, no_update)


@callback(
    Output(ids.LIST, "children", allow_duplicate=True),
    Output(ids.NAME, "value"),
    Output(ids.ERROR, "children"),
    Input(ids.SAVE, "n_clicks"),
    State(ids.NAME, "value"),
    *[State(control.id, control.property) for control in CONTROLS],
    prevent_initial_call=True,
)
async def save(clicks: int, name: str | None, *values: Any) -> tuple[Any, Any, Any]:
    """Keep the present filters, or say why not."""
    if not clicks:
        return no_update, no_update, no_update
    try:
        view = ViewCreate(name=(name or "").strip(), filters=ViewFilters(**filters_of(values)))
        await ask(calls.save_view(view))
    except ValidationError:
        return no_update, no_update, refused("Give it a name of at most 100 characters.")
    except ApiError as error:
        return no_update, no_update, refused(sentence(error))
    return await _list(), "", None


@callback(
    Output(ids.LIST, "children", allow_duplicate=True),
    Input(shared.part("view-delete", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def delete(_clicks: list[int]) -> Any:
    """Delete a view."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    await ask(calls.delete_view(pressed["key"]))
    return await _list()


# A view that was followed has done what the dialog was opened for.
browser_callback(
    "function(search) { return false; }",
    Output(ids.MODAL, "opened", allow_duplicate=True),
    Input(shared.LOCATION, "search"),
    prevent_initial_call=True,
)
