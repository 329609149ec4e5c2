"""The history: every study, filtered and paged by the API.

The page's layout stands here; its parts are

| module | what it has |
| --- | --- |
| `table` | studies as plain rows; which are shown: the controls, what they ask, saved views |
"""

import asyncio
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls
from backend.schemas import BundleRead, Page, StudyRead, StudyUpdate
from dashboard import ids as shared
from dashboard import router
from dashboard.api_client import ask, get_catalog, get_visitor, may_write
from dashboard.components import (
    Control,
    answering,
    bundle_offer,
    button_link,
    empty_state,
    keep_in_url,
    read_controls,
    tick_from,
    tick_stores,
)
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.ids import Bundle
from dashboard.ids import History as ids
from dashboard.pages.history.table import (
    CONTROLS,
    archived_bar,
    asked_of,
    filter_bar,
    is_folded,
    narrowed,
    running,
    study_rows,
    views_button,
    views_dialog,
)
from dashboard.theme import counted

__all__ = ["PAGE", "layout"]

LIVE_MS = 3000
MOST_FOLDED = 500
#: Whether the bundle's studies are shown; apart from the filters, which views save.
OPEN = Control("bundle", ids.OPEN, False, kind="flag", property="data")
FILTERS = [Input(control.id, control.property) for control in CONTROLS]

keep_in_url("^/history/?$", CONTROLS)
keep_in_url("^/history/?$", [OPEN])
tick_from(f"{ids.TICK}-interval", ids.TICK)
browser_callback(
    "function(rows) { return window.etascope.showStudies(rows); }",
    Output(ids.LIST, "className"),
    Input(ids.ROWS, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(rows) { return window.etascope.showFolded(rows); }",
    Output(ids.FOLDED, "title"),
    Input(ids.FOLDED_ROWS, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(chosen) { return window.etascope.countSelected(chosen); }",
    Output(ids.COMPARE, "disabled"),
    Output(ids.COMPARE, "children"),
    Input(ids.SELECTED, "data"),
    prevent_initial_call=True,
)


async def layout(**query: str) -> Component:
    """Return the history."""
    values = read_controls(CONTROLS, query)
    catalog, people = await asyncio.gather(get_catalog(), _people())
    return html.Div(
        [
            html.Div(
                [
                    html.Div(
                        [
                            html.H1("Studies"),
                            html.P(
                                "How far can the learning rate be turned before training breaks?",
                                className="page-lead",
                            ),
                        ]
                    ),
                    html.Div(
                        [
                            dmc.Button(
                                "Compare selected", id=ids.COMPARE, variant="default", disabled=True
                            ),
                            views_button(),
                            button_link("New sweep", "/new"),
                        ],
                        className="actions",
                    ),
                ],
                className="page-head",
            ),
            filter_bar(values, [(task.name, task.title) for task in catalog.tasks], people),
            dcc.Store(id=ids.CURSOR),
            dcc.Store(id=ids.CHANGES),
            dcc.Store(id=ids.ROWS),
            dcc.Store(id=ids.FOLDED_ROWS),
            dcc.Store(id=ids.OPEN, data=OPEN.read(query)),
            dcc.Store(id=Bundle.LOADED),
            dcc.Store(id=ids.SELECTED),
            dcc.Store(id=ids.PRESSED),
            *tick_stores(ids.TICK),
            dcc.Interval(id=f"{ids.TICK}-interval", interval=LIVE_MS, disabled=True),
            html.Div(id=ids.UNDO, role="status"),
            html.Div(_skeleton(), id=ids.TABLE),
            html.Div(id=ids.LIST),
            html.Div(id=ids.MORE),
            html.Div(id=ids.FOLD),
            html.Div(id=ids.FOLDED, className="folded"),
            views_dialog(),
        ]
    )


async def _people() -> list[str] | None:
    """Return everybody's name; None where there are no accounts."""
    if not (await get_visitor()).auth:
        return None
    return [one.username for one in (await ask(calls.people())).items]


def _skeleton() -> Component:
    return html.Div([dmc.Skeleton(h=56, mb=8) for _ in range(6)], **{"aria-busy": "true"})


@callback(
    Output(ids.ROWS, "data"),
    Output(ids.TABLE, "children"),
    Output(ids.MORE, "children"),
    Output(f"{ids.TICK}-interval", "disabled"),
    Output(ids.FOLD, "children"),
    *FILTERS,
    Input(ids.CHANGES, "data"),
    Input(Bundle.LOADED, "data"),
    State(ids.OPEN, "data"),
)
async def filter_studies(*values: Any) -> tuple[Any, ...]:
    """Fetch the first page of what matches; unasked, a bundle's studies stay folded."""
    *chosen, _changes, _loaded, opened = values
    asked = asked_of(tuple(chosen))
    page, visitor, bundle = await asyncio.gather(
        ask(calls.studies(**asked)), get_visitor(), ask(calls.bundle())
    )
    rows = {"how": "replace", "studies": study_rows(page.items, visitor)}
    fold = _fold(bundle, opened=bool(opened)) if is_folded(asked) else None
    if page.items:
        return rows, None, _more(page), not running(page.items), fold
    nothing = _nothing(asked, bundle if may_write(visitor) else None)
    return rows, nothing, None, True, fold


@callback(
    Output(ids.ROWS, "data", allow_duplicate=True),
    Output(f"{ids.TICK}-interval", "disabled", allow_duplicate=True),
    Input(ids.TICK, "data"),
    *[State(control.id, control.property) for control in CONTROLS],
    running=answering(ids.TICK),
    prevent_initial_call=True,
)
async def follow(_tick: Any, *values: Any) -> tuple[Any, Any]:
    """Bring the rows up to date in place: what is selected stays selected."""
    page, visitor = await asyncio.gather(ask(calls.studies(**asked_of(values))), get_visitor())
    rows = {"how": "update", "studies": study_rows(page.items, visitor)}
    return rows, not running(page.items)


def _fold(bundle: BundleRead, *, opened: bool) -> Component | None:
    """Return the row that stands for all studies of the bundle, and opens."""
    if not bundle.studies:
        return None
    return html.Button(
        [
            html.B("The paper's reproduction and other shipped studies"),
            html.Span(counted(bundle.studies, "study", "studies"), className="history-meta"),
        ],
        id=f"{ids.FOLD}-button",
        className="fold",
        n_clicks=0,
        **{"aria-expanded": "true" if opened else "false", "aria-controls": ids.FOLDED},
    )


browser_callback(
    "function(clicks, open) { return clicks ? !open : window.dash_clientside.no_update; }",
    Output(ids.OPEN, "data"),
    Input(f"{ids.FOLD}-button", "n_clicks"),
    State(ids.OPEN, "data"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.FOLDED_ROWS, "data"),
    Input(ids.OPEN, "data"),
    Input(ids.FOLD, "children"),
    *[State(control.id, control.property) for control in CONTROLS],
)
async def unfold(opened: bool | None, fold: Any, *values: Any) -> dict[str, Any]:
    """Show the bundle's studies below their row, or none of them."""
    if not opened or fold is None:
        return {"how": "replace", "studies": [], "opened": False}
    asked = asked_of(values) | {"bundle": "true", "limit": MOST_FOLDED}
    page, visitor = await asyncio.gather(ask(calls.studies(**asked)), get_visitor())
    return {"how": "replace", "studies": study_rows(page.items, visitor), "opened": True}


def _nothing(asked: dict[str, Any], bundle: BundleRead | None) -> Component:
    """Return what stands for an empty list; `bundle`: what could be loaded instead."""
    archived = asked["archived"] == "true"
    if not is_folded(asked):
        words = "No study is archived." if archived and not narrowed(asked) else "No study matches."
        return empty_state(words, "Change the filters above to see more.")
    offer = [bundle_offer(bundle)] if bundle and bundle.state != "loaded" else []
    return empty_state(
        "No studies of your own yet",
        "A study trains the same network at many learning rates and shows where it breaks. "
        "Handwritten digits are bundled, so the first one needs no download.",
        button_link("Start the first study", "/new?preset=first/digits"),
        button_link("Read the guide", "/guide", primary=False),
        *offer,
    )


def _more(page: Page[StudyRead]) -> Component | None:
    if page.next_cursor is None:
        return None
    return dmc.Center(
        dmc.Button(
            "Show more",
            id=shared.part("history-more", page.next_cursor),
            variant="default",
            n_clicks=0,
        ),
        mt=16,
    )


@callback(
    Output(ids.ROWS, "data", allow_duplicate=True),
    Output(ids.MORE, "children", allow_duplicate=True),
    Input(shared.part("history-more", ALL), "n_clicks"),
    *[State(control.id, control.property) for control in CONTROLS],
    prevent_initial_call=True,
)
async def show_more(clicks: list[int], *values: Any) -> tuple[Any, Any]:
    """Add the next page to the table."""
    if not any(clicks):
        return no_update, no_update
    cursor = dash.ctx.triggered_id["key"]
    page, visitor = await asyncio.gather(
        ask(calls.studies(**asked_of(values), cursor=cursor)), get_visitor()
    )
    return {"how": "add", "studies": study_rows(page.items, visitor)}, _more(page)


@callback(
    Output(ids.CHANGES, "data"),
    Output(ids.UNDO, "children"),
    Input(ids.PRESSED, "data"),
    Input(shared.part("history-undo", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def archive(_pressed: dict[str, Any] | None, _undo: list[int]) -> tuple[Any, Any]:
    """Archive a study or bring it back; each offers the other."""
    by, value = dash.ctx.triggered_id, dash.ctx.triggered[0]["value"]
    if not by or not value:
        return no_update, no_update
    study = await ask(calls.study(value["study"] if by == ids.PRESSED else by["key"]))
    changed = StudyUpdate(archived=not study.archived)
    study = await ask(calls.update_study(study.id, changed))
    return {"study": study.id, "archived": study.archived}, archived_bar(study)


@callback(
    Output(shared.LOCATION, "href"),
    Input(ids.COMPARE, "n_clicks"),
    State(ids.SELECTED, "data"),
    prevent_initial_call=True,
)
async def compare(clicks: int, chosen: list[int] | None) -> Any:
    """Open the comparison of what is selected."""
    if not clicks or len(chosen or ()) < 2:
        return no_update
    return f"/compare?studies={','.join(map(str, chosen or ()))}"


PAGE = router.Page("/history", "History", layout, navigation="History", parent=None)
