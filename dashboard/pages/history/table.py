"""Which studies the history shows: the controls, what they ask the API, and views saved of them.

Studies as plain rows, which the browser draws by itself.

Every Dash component that appears makes all others look at the page's state once more. A table of
a hundred studies has thousands of them, and took six seconds to grow by a page; as data it takes
none. The browser writes texts as text, never as markup.
"""

from collections.abc import Sequence
from datetime import UTC
from typing import Any
from urllib.parse import urlencode

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import MeRead, StudyRead, SweepState, ViewCreate, ViewFilters, ViewRead
from dashboard import ids as shared
from dashboard.api_client import ask, may_change, sentence
from dashboard.components import (
    STATE_COLOUR,
    STATES,
    Control,
    link,
    progress_words,
    refused,
    unfinished,
)
from dashboard.dash_blocks import Component, browser_callback, callback, html
from dashboard.figures import spark_words, sparkline
from dashboard.ids import History as ids
from dashboard.ids import Views
from dashboard.theme import counted, method_style

Row = dict[str, Any]
#: Longer words the API refuses, in its own.
AT_MOST = {"input": {"maxLength": 200}}


def study_rows(studies: Sequence[StudyRead], visitor: MeRead) -> list[Row]:
    """Return a row a study, as somebody sees it."""
    return [_row(study, own=may_change(visitor, study)) for study in studies]


def running(studies: Sequence[StudyRead]) -> bool:
    """Return whether any of them is still being worked on."""
    return any(unfinished(study.progress) for study in studies)


def _row(study: StudyRead, *, own: bool) -> Row:
    tasks = ", ".join(study.tasks[:3]) + (" …" if len(study.tasks) > 3 else "")
    changed = study.updated_at
    aware = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
    return {
        "id": study.id,
        "query": f"?view={study.picture}" if study.picture else "",
        "name": study.name,
        "about": " · ".join(filter(None, [study.owner, tasks])),
        "tags": study.tags,
        "methods": [
            {"name": method_style(name).short, "colour": method_style(name).colour}
            for name in study.methods
        ],
        "changed": aware.isoformat(),
        "archive": ("Restore" if study.archived else "Archive") if own else None,
        **_so_far(study),
    }


def _so_far(study: StudyRead) -> Row:
    """Return what changes while a study runs: its curve, its state, its progress."""
    source = sparkline(study.spark)
    busy = unfinished(study.progress) > 0
    state = str(study.state) if study.state else "no sweep yet"
    told = progress_words(study.progress, study.total) if busy else counted(study.total, "trial")
    ended = [name for name in STATES[:-1] if study.progress.get(name)] if busy else []
    return {
        "spark": source and {"src": source, "alt": spark_words(study.spark)},
        "state": {"name": state, "kind": state if state in STATE_COLOUR else "queued"},
        "words": told if study.total else "",
        "bar": [
            {"state": name, "percent": 100 * study.progress[name] / study.total} for name in ended
        ],
    }


def archived_bar(study: StudyRead) -> Component:
    """Say what happened to a study, with a button that undoes it."""
    what = "archived" if study.archived else "back in the history"
    return html.Div(
        [
            html.Span(f"“{study.name}” is {what}."),
            dmc.Button(
                "Undo",
                id=shared.part("history-undo", study.id),
                size="compact-sm",
                variant="default",
                n_clicks=0,
            ),
        ],
        className="row undo-bar",
    )


PAGE_SIZE = 50
SORTS = (
    ("-updated_at", "Last change"),
    ("-created_at", "Newest"),
    ("created_at", "Oldest"),
    ("name", "Name"),
)
CONTROLS = (
    Control("q", ids.TEXT, ""),
    Control("tag", ids.TAG, ""),
    Control("task", ids.TASK),
    Control("state", ids.STATE, choices=tuple(str(state) for state in SweepState)),
    Control("archived", ids.ARCHIVED, False, kind="flag", property="checked"),
    Control("sort", ids.SORT, "-updated_at", choices=tuple(name for name, _ in SORTS)),
    Control("owner", ids.OWNER),
)


def filter_bar(
    values: dict[str, Any], tasks: list[tuple[str, str]], people: list[str] | None
) -> Component:
    """Return the filters, set as the address says.

    Args:
        values: Of the controls.
        tasks: Names and titles to choose from.
        people: Whose studies one can look for; None: there are no accounts.
    """
    return html.Div(
        [
            dmc.TextInput(
                label="Search",
                id=ids.TEXT,
                value=values["q"],
                placeholder="name, notes or tag",
                debounce=250,
                attributes=AT_MOST,
                w={"base": "100%", "sm": 240},
            ),
            dmc.TextInput(
                label="Tag",
                id=ids.TAG,
                value=values["tag"],
                debounce=250,
                attributes=AT_MOST,
                w=140,
            ),
            dmc.Select(
                label="Task",
                id=ids.TASK,
                data=[{"value": name, "label": title} for name, title in tasks],
                value=values["task"],
                placeholder="any",
                searchable=True,
                clearable=True,
                w={"base": "100%", "sm": 220},
            ),
            dmc.Select(
                label="State",
                id=ids.STATE,
                data=[str(state) for state in SweepState],
                value=values["state"],
                placeholder="any",
                clearable=True,
                w=140,
            ),
            dmc.Select(
                label="Person",
                id=ids.OWNER,
                data=people or [],
                value=values["owner"],
                placeholder="anybody",
                searchable=True,
                clearable=True,
                w=150,
                display="none" if people is None else None,
            ),
            dmc.Select(
                label="Order",
                id=ids.SORT,
                data=[{"value": name, "label": words} for name, words in SORTS],
                value=values["sort"],
                allowDeselect=False,
                w=140,
            ),
            dmc.Switch(label="Archived", id=ids.ARCHIVED, checked=values["archived"], mb=8),
        ],
        className="row filters",
        role="search",
    )


def asked_of(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the API's filters for the controls' values."""
    text, tag, task, state, archived, sort, owner = values
    asked = {
        "q": (text or "").strip() or None,
        "tag": (tag or "").strip() or None,
        "task": task or None,
        "state": state or None,
        "owner": owner or None,
        "archived": "true" if archived else "false",
        "sort": sort,
        "spark": "true",
        "limit": PAGE_SIZE,
    }
    # Whoever looks for something finds it wherever it comes from.
    folded = not narrowed(asked) and not archived
    return {**asked, "bundle": "false" if folded else "any"}


def narrowed(asked: dict[str, Any]) -> bool:
    """Return whether somebody looks for particular studies."""
    return any(asked[name] for name in ("q", "tag", "task", "state", "owner"))


def is_folded(asked: dict[str, Any]) -> bool:
    """Return whether the studies of a bundle stay out of the list."""
    return bool(asked["bundle"] == "false")


def views_button() -> Component:
    """Return what opens the views."""
    return dmc.Button("Views", id=Views.BUTTON, variant="default", n_clicks=0)


def views_dialog() -> Component:
    """Return the saved views, and a place to save the present one."""
    return dmc.Modal(
        [
            html.Div(id=Views.LIST),
            html.Div(
                [
                    dmc.TextInput(
                        label="Save the present filters as", id=Views.NAME, style={"flex": 1}
                    ),
                    dmc.Button("Save", id=Views.SAVE, n_clicks=0),
                ],
                className="form-row",
                style={"marginTop": "16px"},
            ),
            html.Div(id=Views.ERROR, role="alert"),
        ],
        id=Views.MODAL,
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


async def _saved_views() -> Component:
    views = (await ask(calls.views())).items
    if not views:
        return html.P(
            "None yet. Set the filters, give them a name, and find them here.", className="muted"
        )
    return html.Ul([html.Li(_saved_view(view)) for view in views], className="activity")


def _saved_view(view: ViewRead) -> Component:
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
    return html.Div([html.Div(words), delete], className="entry-head")


@callback(
    Output(Views.MODAL, "opened"),
    Output(Views.LIST, "children"),
    Input(Views.BUTTON, "n_clicks"),
    prevent_initial_call=True,
)
async def show_views(clicks: int) -> tuple[Any, Any]:
    """Open the dialog with what is saved now."""
    return (True, await _saved_views()) if clicks else (no_update, no_update)


@callback(
    Output(Views.LIST, "children", allow_duplicate=True),
    Output(Views.NAME, "value"),
    Output(Views.ERROR, "children"),
    Input(Views.SAVE, "n_clicks"),
    State(Views.NAME, "value"),
    *[State(control.id, control.property) for control in CONTROLS],
    prevent_initial_call=True,
)
async def save_view(clicks: int, name: str | None, *values: Any) -> tuple[Any, Any, Any]:
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
    return await _saved_views(), "", None


@callback(
    Output(Views.LIST, "children", allow_duplicate=True),
    Input(shared.part("view-delete", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def delete_view(_clicks: list[int]) -> Any:
    """Delete a view."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    await ask(calls.delete_view(pressed["key"]))
    return await _saved_views()


# A view that was followed has done what the dialog was opened for.
browser_callback(
    "function(search) { return false; }",
    Output(Views.MODAL, "opened", allow_duplicate=True),
    Input(shared.LOCATION, "search"),
    prevent_initial_call=True,
)
