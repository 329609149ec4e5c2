"""A study's trials: the table, fetched as one scrolls, and what is behind a point."""

import asyncio
import json
from typing import Any

import dash_ag_grid as dag
import dash_mantine_components as dmc
from dash import Input, Output, State, no_update
from plotly.utils import PlotlyJSONEncoder

from backend.client import calls
from backend.schemas import SweepRead, TrialRead, TrialState
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask
from dashboard.components import (
    at_rate,
    error_panel,
    identifier,
    link,
    state_badge,
    trial_facts,
)
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.figures import MOST_OPENED, QUANTITY, TrialCurve, curve_figure
from dashboard.ids import Study as ids
from dashboard.pages.study.sweeps import MOST_SWEEPS, differing, title, told_apart
from dashboard.theme import (
    METHOD_STYLE,
    NONE,
    duration,
    graph_config,
    method_style,
    number,
    scheme_of,
)

PAGE = 100

COLUMNS = [
    {"field": "id", "headerName": "Trial", "cellRenderer": "markdown", "minWidth": 52},
    {"field": "method", "headerName": "Method", "minWidth": 64},
    {"field": "lr", "headerName": "Rate", "type": "rightAligned", "minWidth": 58},
    {"field": "seed", "headerName": "Seed", "type": "rightAligned", "minWidth": 45},
    {"field": "clip", "headerName": "Clip", "type": "rightAligned", "minWidth": 46},
    {"field": "state", "headerName": "State", "minWidth": 92},
    {"field": "train_loss", "headerName": "Train loss", "type": "rightAligned", "minWidth": 77},
    {"field": "test_loss", "headerName": "Test loss", "type": "rightAligned", "minWidth": 72},
    {"field": "accuracy", "headerName": "Test acc.", "type": "rightAligned", "minWidth": 73},
    {"field": "diverged", "headerName": "Diverged", "type": "rightAligned", "minWidth": 72},
    {
        "field": "seconds",
        "headerName": "Share of a stack's time",
        "headerTooltip": "Trials are trained as stacks: an equal share of the time one took.",
        "wrapHeaderText": True,
        "autoHeaderHeight": True,
        "type": "rightAligned",
        "minWidth": 66,
    },
]
#: Settings that have a column of their own, or one row for each of their values; and the task,
#: whose long name is the same in all rows of the sweep that is shown, and is said above them.
OTHERWISE_SHOWN = ("methods", "learning_rates", "seeds", "clips", "task")
#: Settings that a trial has beside its options.
TOLD_BY_TRIAL = ("task", "epochs", "batch_size", "activation", "mu", "profile", "batch_rule")
#: The grid brings its own looks; these are the page's.
THEME = "themeQuartz.withParams({fontFamily: 'inherit', fontSize: 13, cellHorizontalPadding: 6})"
#: Of a trial's curve behind a point.
MOST_POINTS = 400
MEANWHILE = dmc.Skeleton(h=360)
FIRST_ONLY = f"At most {MOST_OPENED} are shown here; the table of trials has all of them."


@callback(
    Output(ids.TRIALS, "children"),
    Output(ids.GRID_CURSORS, "data", allow_duplicate=True),
    Input(ids.SCORED, "data"),
    State(ids.GRID_CURSORS, "data"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def begin(_scored: Any, cursors: dict[str, str] | None, study_id: int) -> tuple[Any, Any]:
    """Set up the table, once, after the picture: its library is large."""
    if cursors is not None:
        return no_update, no_update
    sweeps = await ask(calls.sweeps(study_id, limit=MOST_SWEEPS))
    return panel(sweeps.items), {}


def panel(sweeps: list[SweepRead]) -> list[Component]:
    """Return filters and the table; a study with several sweeps shows one at a time."""
    newest = str(sweeps[-1].id)
    apart = told_apart(sweeps)
    methods = list(dict.fromkeys(m for s in sweeps for m in s.spec.get("methods", ())))
    return [
        html.Div(
            [
                dmc.Select(
                    label="Sweep",
                    id=ids.GRID_SWEEP,
                    data=[{"value": str(s.id), "label": title(s, apart[s.id])} for s in sweeps],
                    value=newest,
                    allowDeselect=False,
                    searchable=True,
                    size="xs",
                    w=320 if any(apart.values()) else 140,
                    maw="100%",
                ),
                dmc.Select(
                    label="Method",
                    id=ids.GRID_METHOD,
                    data=[{"value": name, "label": _title(name)} for name in methods],
                    placeholder="all",
                    clearable=True,
                    size="xs",
                    w=170,
                ),
                dmc.Select(
                    label="State",
                    id=ids.GRID_STATE,
                    data=[str(state) for state in TrialState],
                    placeholder="all",
                    clearable=True,
                    size="xs",
                    w=140,
                ),
            ],
            className="row",
            style={"marginBottom": "12px"},
        ),
        dag.AgGrid(
            id=ids.GRID,
            columnDefs=columns(sweeps),
            defaultColDef={"sortable": False, "flex": 1, "suppressMovable": True},
            rowModelType="infinite",
            dashGridOptions={
                "cacheBlockSize": PAGE,
                "infiniteInitialRowCount": 1,
                "maxConcurrentDatasourceRequests": 1,
                "rowHeight": 34,
                "headerHeight": 36,
                "suppressCellFocus": False,
                "theme": {"function": THEME},
                "ensureDomOrder": True,
            },
            style={"height": "420px"},
            className="trial-grid",
        ),
    ]


def columns(sweeps: list[SweepRead]) -> list[dict[str, Any]]:
    """Return the columns that have something to say: without clipping there is no clip.

    Whatever else the study's sweeps differ in has a column, too: its width, its batches, ...
    """
    clips = any(clip is not None for sweep in sweeps for clip in sweep.spec.get("clips", ()))
    varying = [
        {
            "field": name,
            "headerName": name.replace("_", " ").capitalize(),
            "type": "rightAligned",
            "minWidth": 20 + 7 * len(name),
        }
        for name in differing(sweeps)
        if name not in OTHERWISE_SHOWN
    ]
    shown = [column for column in COLUMNS if clips or column["field"] != "clip"]
    place = next(i for i, column in enumerate(shown) if column["field"] == "state")
    return [*shown[:place], *varying, *shown[place:]]


def _title(name: str) -> str:
    return METHOD_STYLE[name].title if name in METHOD_STYLE else name


@callback(
    Output(ids.GRID, "getRowsResponse"),
    Output(ids.GRID_CURSORS, "data"),
    Input(ids.GRID, "getRowsRequest"),
    State(ids.GRID_SWEEP, "value"),
    State(ids.GRID_METHOD, "value"),
    State(ids.GRID_STATE, "value"),
    State(ids.GRID_CURSORS, "data"),
)
async def fetch(
    request: dict[str, Any] | None,
    sweep: str | None,
    method: str | None,
    state: str | None,
    cursors: dict[str, str] | None,
) -> tuple[Any, Any]:
    """Fetch the rows that scrolled into view.

    The API pages by cursor, the grid by row number; the page before left the cursor of this one.
    """
    if not request or not sweep:
        return no_update, no_update
    start = int(request["startRow"])
    known = cursors or {}
    key = f"{sweep} {method} {state} {start}"
    if start and key not in known:
        return {"rowData": [], "rowCount": start}, no_update
    page = await ask(
        calls.trials(
            int(sweep),
            limit=PAGE,
            cursor=known.get(key),
            method=method or None,
            state=state or None,
        )
    )
    rows = [row_of(trial) for trial in page.items]
    if page.next_cursor is None:
        return {"rowData": rows, "rowCount": start + len(rows)}, no_update
    following = {**known, f"{sweep} {method} {state} {start + PAGE}": page.next_cursor}
    return {"rowData": rows}, following


@callback(
    Output(ids.GRID, "dashGridOptions"),
    Input(ids.GRID_SWEEP, "value"),
    Input(ids.GRID_METHOD, "value"),
    Input(ids.GRID_STATE, "value"),
    Input(ids.VERSION, "data"),
    State(ids.GRID, "dashGridOptions"),
    prevent_initial_call=True,
)
async def begin_again(
    _sweep: Any, _method: Any, _state: Any, version: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Make the grid ask again from its first row."""
    return {**options, "context": {"version": version, "asked": [_sweep, _method, _state]}}


def row_of(trial: TrialRead) -> dict[str, Any]:
    """Return a trial as the table shows it."""
    return {
        **{name: _told(value) for name, value in trial.options.items()},
        **{name: _told(getattr(trial, name)) for name in TOLD_BY_TRIAL},
        "engine": str((trial.record or {}).get("engine", NONE)),
        "id": f"[{trial.id}](/trials/{trial.id})",
        "method": method_style(trial.method).short,
        "lr": number(trial.lr),
        "seed": trial.seed,
        "clip": NONE if trial.clip is None else number(trial.clip),
        "state": str(trial.state),
        "train_loss": number(trial.train_loss),
        "test_loss": number(trial.test_loss),
        "accuracy": number(trial.test_accuracy),
        "diverged": NONE if trial.diverged_at_step is None else f"step {trial.diverged_at_step}",
        "seconds": duration(trial.seconds),
    }


def _told(value: Any) -> str:
    """Return a setting as a cell shows it."""
    if value in (None, False):
        return NONE
    return number(value, 6) if isinstance(value, int | float) and value is not True else str(value)


# Opened by the browser, so that a click is answered while the server is busy with a sweep; a click
# itself is heard by `assets/figures.js`.
browser_callback(
    "function(selected) { return [Boolean(selected), selected ? "
    f"{json.dumps(MEANWHILE, cls=PlotlyJSONEncoder)}"
    " : window.dash_clientside.no_update]; }",
    Output(ids.DRAWER, "opened"),
    Output(ids.DRAWER_BODY, "children", allow_duplicate=True),
    Input(ids.SELECTED, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(opened) { return opened ? window.dash_clientside.no_update : ''; }",
    Output(ids.SELECTED, "data", allow_duplicate=True),
    Input(ids.DRAWER, "opened"),
    prevent_initial_call=True,
)


def drawer(selected: str) -> Component:
    """Return the panel that opens over the page; an address may ask for it at once."""
    return dmc.Drawer(
        html.Div(MEANWHILE, id=ids.DRAWER_BODY),
        id=ids.DRAWER,
        opened=bool(selected),
        position="right",
        size="lg",
        title="Trials behind this point",
        closeButtonProps={"aria-label": "Close"},
        zIndex=300,
    )


@callback(
    Output(ids.DRAWER_BODY, "children"),
    Input(ids.SELECTED, "data"),
    State(shared.SCHEME, "data"),
)
async def show(selected: str | None, scheme: str | None) -> Any:
    """Fetch what is behind a point."""
    wanted = [one for part in (selected or "").split(",") if (one := identifier(part))]
    if not wanted:
        return no_update
    try:
        found = await asyncio.gather(*(_fetch(trial_id) for trial_id in wanted[:MOST_OPENED]))
    except Trouble as error:
        return error_panel(error)
    figure = curve_figure(found, scheme=scheme_of(scheme), test=len(found) == 1)
    first = found[0].trial
    only = first if len(found) == 1 else None
    return [
        html.P(link(f"See one update at rate {number(first.lr)}", at_rate(first))),
        dcc.Graph(figure=figure, config=graph_config("etascope-curve"), responsive=True),
        _table(found),
        *([html.P(FIRST_ONLY, className="muted")] if len(found) == MOST_OPENED else []),
        *([trial_facts(only)] if only else []),
    ]


async def _fetch(trial_id: int) -> TrialCurve:
    trial, curve = await asyncio.gather(
        ask(calls.trial(trial_id)), ask(calls.curve(trial_id, max_points=MOST_POINTS))
    )
    return TrialCurve(trial, curve)


def _table(found: list[TrialCurve]) -> Component:
    head = ["Trial", "Seed", QUANTITY["train_loss"], QUANTITY["test_loss"], "Outcome"]
    rows = [
        html.Tr(
            [
                html.Td(
                    link(
                        f"{method_style(one.trial.method).short} {one.trial.id}",
                        f"/trials/{one.trial.id}",
                    ),
                    className="nowrap",
                ),
                html.Td(one.trial.seed, className="number"),
                html.Td(number(one.trial.train_loss), className="number"),
                html.Td(number(one.trial.test_loss), className="number"),
                html.Td(state_badge(one.trial.state)),
            ]
        )
        for one in found
    ]
    return html.Div(
        html.Table(
            [html.Thead(html.Tr([html.Th(name.capitalize()) for name in head])), html.Tbody(rows)],
            className="table",
        ),
        className="scroll",
    )
