"""What the form would mean, while it is filled in; and submitting it."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import Input, Output, State, no_update

from backend.client import ApiError, calls
from backend.schemas import CatalogRead, DryRunRead, StudyCreate, SweepCreate, TaskRead
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, sentence
from dashboard.api_client import forecast as dry_run
from dashboard.callbacks import callback
from dashboard.catalog import find_task, get_catalog
from dashboard.components.elements import with_code
from dashboard.components.record import facts
from dashboard.figures.rate_ticks import rate_ticks, rates_words
from dashboard.formats import count, duration, size
from dashboard.ids import NewSweep as ids
from dashboard.markup import Component, html
from dashboard.pages.new_sweep import form as fields
from dashboard.pages.new_sweep.body import FIELDS, WITH_ERRORS, Unreadable, body_from, shown_at
from dashboard.theme import METHOD_STYLE

HIDDEN = {"display": "none"}
CHECKED = {"restart"}
INPUTS = [Input(id, "checked" if name in CHECKED else "value") for name, id in FIELDS.items()]


def waiting() -> Component:
    """Return the shape of a forecast."""
    return html.Div([dmc.Skeleton(h=20, mb=8) for _ in range(4)], **{"aria-busy": "true"})


@callback(
    Output(ids.FORECAST, "children"),
    Output(ids.RATES, "children"),
    Output(ids.SUBMIT, "disabled"),
    Output(ids.BODY, "data"),
    Output(ids.ERROR, "children"),
    *[Output(id, "error") for id in WITH_ERRORS],
    *INPUTS,
    State(ids.STUDY, "data"),
    State(shared.NARROW, "data"),
)
async def forecast(*values: Any) -> tuple[Any, ...]:
    """Ask the API what the form would mean, and show its errors at their fields."""
    *filled, study_id, narrow = values
    form = dict(zip(FIELDS, filled, strict=True))
    try:
        body = body_from(form)
        found = await ask(dry_run(await _any_study(study_id), body))
    except Unreadable as error:
        return _refused(str(error), shown_at(error.field, by_list=form["rates_mode"] == "list"))
    except ApiError as error:
        by_list = form["rates_mode"] == "list"
        return _refused(sentence(error), shown_at(error.field, by_list=by_list))
    except NoStudyYet:
        body = body_from(form)
        return (_no_forecast(), None, False, body, None, *([None] * len(WITH_ERRORS)))
    preview = rates_preview(found.learning_rates, narrow=bool(narrow))
    return (_facts(found), preview, False, body, None, *([None] * len(WITH_ERRORS)))


class NoStudyYet(Exception):
    """The history is empty, and the API forecasts for a study."""


async def _any_study(study_id: int | None) -> int:
    """Return a study to forecast for; which one makes no difference to the forecast."""
    if study_id is not None:
        return study_id
    page = await ask(calls.studies(limit=1, archived="any"))
    if not page.items:
        raise NoStudyYet
    return page.items[0].id


def sweep_of(body: dict[str, Any]) -> SweepCreate:
    """Return a body as the API's type; what was not set stays unset."""
    return SweepCreate.model_validate(body)


def _refused(words: str, where: str | None) -> tuple[Any, ...]:
    errors = [words if id == where else None for id in WITH_ERRORS]
    panel = None if where else dmc.Alert(with_code(words), color="red", mt=8)
    note = html.P("Not ready: see the field marked red.", className="muted") if where else None
    return (note, None, True, None, panel, *errors)


def _no_forecast() -> Component:
    return html.P("The first study of this installation: there is nothing to reuse yet.")


def _facts(found: DryRunRead) -> Component:
    pairs = [
        ("Trials", count(found.trials)),
        ("Already known", count(found.reused)),
        ("To train", count(found.trials - found.reused)),
        ("Shards", count(found.shards)),
        ("Time of one worker", f"about {duration(found.cost_seconds)}" if found.shards else "none"),
        ("Memory at most", size(found.memory_bytes) if found.memory_bytes else None),
        ("Sweeps", count(found.sweeps) if found.sweeps > 1 else None),
    ]
    return html.Div(
        [
            facts(pairs),
            *(dmc.Alert(message, color="yellow", mt=8, p=8) for message in found.messages),
        ]
    )


def rates_preview(rates: list[float], *, narrow: bool = False) -> Component | None:
    """Return the grid's rates as ticks and as text."""
    source = rate_ticks(rates, narrow=narrow)
    if source is None:
        return None
    text = rates_words(rates)
    return html.Div(
        [
            html.Img(src=source, alt=f"Rates {text}", className="rate-ticks"),
            html.Div(text, className="history-meta"),
        ]
    )


def grid_of(task: TaskRead | None, profile: str) -> dict[str, Any]:
    """Return the ends of a task's own rates, to start a grid from."""
    own = task.profiles.get(profile) if task else None
    rates = own.learning_rates if own else [0.01, 100.0]
    return {"rate_from": rates[0], "rate_to": rates[-1], "rate_count": max(len(rates), 9)}


@callback(
    Output(ids.GRID, "style"),
    Output(ids.PRESET_PART, "style"),
    Output("new-rates-grid", "style"),
    Output("new-rates-list", "style"),
    Input(ids.MODE, "value"),
    Input(ids.RATES_MODE, "value"),
    prevent_initial_call=True,
)
async def show_parts(mode: str, rates_mode: str) -> tuple[Any, ...]:
    """Show the fields that count."""
    return (
        HIDDEN if mode == "preset" else None,
        None if mode == "preset" else HIDDEN,
        None if rates_mode == "grid" else HIDDEN,
        None if rates_mode == "list" else HIDDEN,
    )


@callback(
    Output(ids.TASK_FACTS, "children"),
    Output("new-method-boxes", "children"),
    Output(ids.METHODS, "value"),
    Output(ids.RATE_FROM, "value"),
    Output(ids.RATE_TO, "value"),
    Output(ids.RATE_COUNT, "value"),
    Input(ids.TASK, "value"),
    Input(FIELDS["profile"], "value"),
    State(ids.METHODS, "value"),
    prevent_initial_call=True,
)
async def choose_task(name: str, profile: str, methods: list[str]) -> tuple[Any, ...]:
    """Say what the task is, and offer what suits it."""
    catalog = await get_catalog()
    task = find_task(catalog, name)
    able = task.methods if task else methods
    kept = [method for method in methods or () if method in able]
    grid: tuple[Any, ...] = (no_update,) * 3
    if dash.ctx.triggered_id == ids.TASK:
        own = grid_of(task, profile)
        grid = (own["rate_from"], own["rate_to"], own["rate_count"])
    boxes = fields.method_boxes(catalog.methods, task)
    return (fields.task_facts(task, profile), boxes, kept, *grid)


@callback(
    Output(ids.PRESET_FACTS, "children"),
    Input(ids.PRESET, "value"),
    prevent_initial_call=True,
)
async def choose_preset(name: str) -> Any:
    """Say what the preset is."""
    catalog = await get_catalog()
    return fields.preset_facts(next((one for one in catalog.presets if one.name == name), None))


@callback(
    Output(shared.LOCATION, "href", allow_duplicate=True),
    Output(ids.ERROR, "children", allow_duplicate=True),
    Output(ids.STUDY, "data"),
    Input(ids.SUBMIT, "n_clicks"),
    State(ids.BODY, "data"),
    State(ids.STUDY, "data"),
    State(ids.NAME, "value"),
    State(ids.KEY, "data"),
    running=[(Output(ids.SUBMIT, "loading"), True, False)],
    prevent_initial_call=True,
)
async def submit(
    clicks: int, body: dict[str, Any] | None, study_id: int | None, name: str | None, key: str
) -> tuple[Any, Any, Any]:
    """Submit the sweep and go to its study; the key makes a second click harmless."""
    if not clicks or not body:
        return no_update, no_update, no_update
    try:
        study_id = study_id or await _create(body, name)
        await ask(calls.submit(study_id, sweep_of(body), idempotency_key=f"form-{key}"))
    except Trouble as error:
        return no_update, dmc.Alert(with_code(sentence(error)), color="red", mt=8), study_id
    return f"/studies/{study_id}", None, study_id


async def _create(body: dict[str, Any], name: str | None) -> int:
    catalog = await get_catalog()
    study = StudyCreate(name=(name or "").strip() or study_name(body, catalog), tags=tags_of(body))
    return (await ask(calls.create_study(study))).id


def tags_of(body: dict[str, Any]) -> list[str]:
    """Return the tags by which a preset's studies are found again."""
    return str(body["preset"]).split("/") if body.get("preset") else []


def study_name(body: dict[str, Any], catalog: CatalogRead) -> str:
    """Return a name for a study that was given none."""
    if body.get("preset"):
        presets = {one.name: one.title for one in catalog.presets}
        return presets.get(body["preset"], str(body["preset"]))
    task = find_task(catalog, body.get("task"))
    methods = [METHOD_STYLE[m].short if m in METHOD_STYLE else m for m in body.get("methods", ())]
    return f"{task.title if task else body.get('task')}: {', '.join(methods)}"
