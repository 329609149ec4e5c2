"""The history: every study, filtered and paged by the API."""

import asyncio
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls, team_calls
from backend.schemas import Page, StudyRead, StudyUpdate
from dashboard import ids as shared
from dashboard import router
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback
from dashboard.catalog import get_catalog
from dashboard.components.elements import button_link
from dashboard.components.error_panel import empty_state
from dashboard.components.study_table import (
    archived_bar,
    running,
    spark_cell,
    state_cell,
    study_rows,
    study_table,
)
from dashboard.components.url_state import keep_in_url, read_controls
from dashboard.ids import History as ids
from dashboard.markup import Component, dcc, html
from dashboard.pages.history import views
from dashboard.pages.history.filters import CONTROLS, asked_of, filter_bar
from dashboard.visitor import get_visitor

LIVE_MS = 3000
FILTERS = [Input(control.id, control.property) for control in CONTROLS]

keep_in_url("^/$", CONTROLS)
browser_callback(
    "function(count) { return window.etascope.visibleTick(count); }",
    Output(ids.TICK, "data"),
    Input(f"{ids.TICK}-interval", "n_intervals"),
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
                            views.button(),
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
            dcc.Store(id=ids.TICK),
            dcc.Interval(id=f"{ids.TICK}-interval", interval=LIVE_MS, disabled=True),
            html.Div(id=ids.UNDO, role="status"),
            html.Div(_skeleton(), id=ids.TABLE),
            html.Div(id=ids.MORE),
            views.dialog(),
        ]
    )


async def _people() -> list[str] | None:
    """Return everybody's name; None where there are no accounts."""
    if not (await get_visitor()).auth:
        return None
    return [one.username for one in (await ask(team_calls.people())).items]


def _skeleton() -> Component:
    return html.Div([dmc.Skeleton(h=56, mb=8) for _ in range(6)], **{"aria-busy": "true"})


@callback(
    Output(ids.TABLE, "children"),
    Output(ids.MORE, "children"),
    Output(f"{ids.TICK}-interval", "disabled"),
    *FILTERS,
    Input(ids.CHANGES, "data"),
)
async def filter_studies(*values: Any) -> tuple[Any, Any, Any]:
    """Fetch the first page of what matches."""
    *chosen, _changes = values
    asked = asked_of(tuple(chosen))
    page, visitor = await asyncio.gather(ask(calls.studies(**asked)), get_visitor())
    if not page.items:
        filtered = any(asked[name] for name in ("q", "tag", "task", "state", "owner"))
        return _nothing(filtered=filtered, archived=asked["archived"] == "true"), None, True
    return study_table(page.items, visitor), _more(page), not running(page.items)


@callback(
    Output(shared.part("history-state", ALL), "children"),
    Output(shared.part("history-spark", ALL), "children"),
    Output(f"{ids.TICK}-interval", "disabled", allow_duplicate=True),
    Input(ids.TICK, "data"),
    State(shared.part("history-state", ALL), "id"),
    *[State(control.id, control.property) for control in CONTROLS],
    prevent_initial_call=True,
)
async def follow(_tick: Any, shown: list[dict[str, Any]], *values: Any) -> tuple[Any, Any, Any]:
    """Bring the rows up to date in place: what is selected stays selected."""
    page = await ask(calls.studies(**asked_of(values)))
    found = {study.id: study for study in page.items}
    rows = [found.get(one["key"]) for one in shown]
    states = [state_cell(study) if study else no_update for study in rows]
    sparks = [spark_cell(study) if study else no_update for study in rows]
    return states, sparks, not running(page.items)


def _nothing(*, filtered: bool, archived: bool) -> Component:
    if filtered or archived:
        words = "No study matches." if filtered else "No study is archived."
        return empty_state(words, "Change the filters above to see more.")
    return empty_state(
        "No studies yet",
        "A study trains the same network at many learning rates and shows where it breaks. "
        "Handwritten digits are bundled, so the first one needs no download.",
        button_link("Start the first study", "/new?preset=first/digits"),
        button_link("Read the guide", "/guide", primary=False),
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
    Output(ids.ROWS, "children"),
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
    rows = dash.Patch()
    rows.extend(study_rows(page.items, visitor))
    return rows, _more(page)


@callback(
    Output(ids.CHANGES, "data"),
    Output(ids.UNDO, "children"),
    Input(shared.part("history-archive", ALL), "n_clicks"),
    Input(shared.part("history-undo", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def archive(_archive: list[int], _undo: list[int]) -> tuple[Any, Any]:
    """Archive a study or bring it back; each offers the other."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update, no_update
    study = await ask(calls.study(pressed["key"]))
    changed = StudyUpdate(archived=not study.archived)
    study = await ask(calls.update_study(study.id, changed))
    return {"study": study.id, "archived": study.archived}, archived_bar(study)


@callback(
    Output(ids.COMPARE, "disabled"),
    Output(ids.COMPARE, "children"),
    Input(shared.part("history-select", ALL), "checked"),
)
async def count_selected(checked: list[bool]) -> tuple[bool, str]:
    """Say how many studies would be compared."""
    chosen = sum(bool(one) for one in checked)
    return chosen < 2, f"Compare {chosen} studies" if chosen >= 2 else "Compare selected"


@callback(
    Output(shared.LOCATION, "href"),
    Input(ids.COMPARE, "n_clicks"),
    State(shared.part("history-select", ALL), "checked"),
    State(shared.part("history-select", ALL), "id"),
    prevent_initial_call=True,
)
async def compare(clicks: int, checked: list[bool], found: list[dict[str, Any]]) -> Any:
    """Open the comparison of what is selected."""
    chosen = [str(one["key"]) for one, on in zip(found, checked, strict=True) if on]
    return f"/compare?studies={','.join(chosen)}" if clicks and len(chosen) > 1 else no_update


PAGE = router.Page("/", "History", layout, navigation="History", parent=None)
