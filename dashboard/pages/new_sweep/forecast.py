"""What the form would mean, while it is filled in; and submitting it."""

import json
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import ApiError, calls
from backend.schemas import CatalogRead, DryRunRead, StudyCreate, SweepCreate, TaskRead
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, find_task, get_catalog, sentence
from dashboard.components import facts, with_code
from dashboard.dash_blocks import Component, browser_callback, callback, html
from dashboard.figures import rate_ticks, rates_words
from dashboard.ids import NewSweep as ids
from dashboard.pages.new_sweep import form as fields
from dashboard.pages.new_sweep.body import (
    FIELDS,
    OWN,
    PARTS,
    TYPED,
    UNDERSTOOD,
    WITH_ERRORS,
    Refused,
    body_from,
    grid_falls,
    in_the_forms_words,
    label_of,
    own_answers,
    shown_at,
    understood,
)
from dashboard.theme import METHOD_STYLE, about, count, size
from ib_core.written import written

HIDDEN = {"display": "none"}


def _property(name: str) -> str:
    return "text" if name in TYPED else "checked" if name == "restart" else "value"


INPUTS = [Input(id, _property(name)) for name, id in FIELDS.items()]
STATES = [State(one.component_id, one.component_property) for one in INPUTS]


def waiting() -> Component:
    """Return the shape of a forecast."""
    return html.Div([dmc.Skeleton(h=20, mb=8) for _ in range(4)], **{"aria-busy": "true"})


# Whatever is changed locks the button until the answer to just that has come, keeps the address
# in step, and is asked about once the typing pauses.
browser_callback(
    f"function(...given) {{ return window.etascope.formChanged({json.dumps(list(FIELDS))}, "
    f"'{ids.ASKED}', '{ids.FORECAST}', given); }}",
    Output(ids.SUBMIT, "disabled"),
    Input(ids.KEY, "data"),
    Input(ids.ANSWERED, "data"),
    Input(ids.NAME, "value"),
    *INPUTS,
)


@callback(
    Output(ids.FORECAST, "children"),
    Output(ids.RATES, "children"),
    Output(ids.ANSWERED, "data"),
    Output(ids.ERROR, "children"),
    *[Output(FIELDS[name], "error") for name in WITH_ERRORS],
    *[Output(FIELDS[name], "answers") for name in TYPED],
    *[Output(FIELDS[name], "understood") for name in UNDERSTOOD],
    Input(ids.ASKED, "data"),
    State(shared.NARROW, "data"),
    prevent_initial_call=True,
)
async def forecast(filled: list[Any], narrow: bool) -> tuple[Any, ...]:
    """Ask the API what the form would mean, and show its errors at their fields."""
    form = dict(zip(FIELDS, filled, strict=True))
    options = await _own_options(form)
    try:
        body = body_from(form, options)
        found = await ask(calls.forecast(SweepCreate.model_validate(body)))
    except Refused as error:
        return _refused(str(error), error.name, filled)
    except ApiError as error:
        preset = form["mode"] == "preset"
        where = shown_at(
            error.field, rates=form["rates_mode"], preset=preset, falls=grid_falls(body)
        )
        return _refused(in_the_forms_words(sentence(error)), where, filled)
    preview = rates_preview(found.learning_rates, narrow=bool(narrow))
    read = understood(body)
    own = own_answers(form["vary"], read=body.get("vary"))
    answered = {"form": filled, "ready": True, "own": own}
    clean = [None] * len(WITH_ERRORS)
    told = (*_answers(filled), *(read[name] for name in UNDERSTOOD))
    return (_facts(found), preview, answered, None, *clean, *told)


def _refused(words: str, where: str | None, filled: list[Any]) -> tuple[Any, ...]:
    errors = [words if name == where else None for name in WITH_ERRORS]
    panel = None if where else _alert(words)
    note = html.P(f"Not ready: see {label_of(where)}.", className="muted") if where else None
    told = (*_answers(filled), *[None] * len(UNDERSTOOD))
    wrong = (where.removeprefix(OWN), words) if where and where.startswith(OWN) else None
    own = own_answers(dict(zip(FIELDS, filled, strict=True))["vary"], wrong=wrong)
    return (note, None, {"form": filled, "ready": False, "own": own}, panel, *errors, *told)


async def _own_options(form: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of the options that the form's task has for itself, if any are set."""
    task = find_task(await get_catalog(), form["task"]) if form["vary"] else None
    return dict(task.options.get("properties", {})) if task else {}


def _answers(filled: list[Any]) -> list[str]:
    """Return the texts that were read: what is said is true of no other."""
    form = dict(zip(FIELDS, filled, strict=True))
    return [form[name] or "" for name in TYPED]


def _alert(words: str) -> Component:
    return dmc.Alert(with_code(words), color="red", mt=8)


def _facts(found: DryRunRead) -> Component:
    most, first = ("at most ", ", first round") if found.at_most else ("", "")
    to_train = found.trials - found.reused
    pairs = [
        ("Trials", f"{most}{count(found.trials)}"),
        (f"Already known{first}", count(found.reused)),
        ("To train", f"{most}{count(to_train)}"),
        (f"Shards, a worker each{first}", count(found.shards)),
        (
            "Time of one worker",
            f"{most}{about(found.cost_seconds)}" if to_train or found.replays else "none",
        ),
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
    grid = {"rate_from": rates[0], "rate_to": rates[-1], "rate_count": max(len(rates), 9)}
    return {name: written(value) for name, value in grid.items()}


@callback(
    Output(ids.GRID, "style"),
    Output(ids.PRESET_PART, "style"),
    Output("new-rates-grid", "style"),
    Output("new-rates-list", "style"),
    Output("new-rates-grid-part", "style"),
    Output("new-rates-edge-part", "style"),
    Output("new-rates-most-part", "style"),
    Output("new-rates-search", "style"),
    Input(ids.MODE, "value"),
    Input(ids.RATES_MODE, "value"),
    prevent_initial_call=True,
)
async def show_parts(mode: str, rates_mode: str) -> tuple[Any, ...]:
    """Show the fields that count."""
    return (
        HIDDEN if mode == "preset" else None,
        None if mode == "preset" else HIDDEN,
        None if rates_mode in PARTS else HIDDEN,
        None if rates_mode == "list" else HIDDEN,
        None if rates_mode == "grid" else HIDDEN,
        *([None if rates_mode == "edge" else HIDDEN] * 3),
    )


# What stands in the fields of a task's own options is gathered in one that the form knows.
browser_callback(
    "function(...given) { return window.etascope.gatherOptions(given); }",
    Output(FIELDS["vary"], "value"),
    Input(shared.part("own-number", ALL), "text"),
    Input(shared.part("own-choice", ALL), "value"),
    State(shared.part("own-number", ALL), "id"),
    State(shared.part("own-choice", ALL), "id"),
)
# And what is said of them goes back to each.
browser_callback(
    "function(...given) { return window.etascope.tellOptions(...given); }",
    Output(shared.part("own-number", ALL), "error"),
    Output(shared.part("own-number", ALL), "answers"),
    Output(shared.part("own-number", ALL), "understood"),
    Output(shared.part("own-choice", ALL), "error"),
    Input(ids.ANSWERED, "data"),
    State(shared.part("own-number", ALL), "id"),
    State(shared.part("own-choice", ALL), "id"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.TASK_FACTS, "children"),
    Output(ids.OWN, "children"),
    Output("new-method-boxes", "children"),
    Output(ids.METHODS, "value"),
    Output(ids.RATE_FROM, "text"),
    Output(ids.RATE_TO, "text"),
    Output(ids.RATE_COUNT, "text"),
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
    own_fields: Any = no_update
    if dash.ctx.triggered_id == ids.TASK:
        own_fields = fields.own_fields(task, None)
    return (fields.task_facts(task, profile), own_fields, boxes, kept, *grid)


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
    *STATES,
    State(ids.STUDY, "data"),
    State(ids.NAME, "value"),
    State(ids.KEY, "data"),
    running=[(Output(ids.SUBMIT, "loading"), True, False)],
    prevent_initial_call=True,
)
async def submit(clicks: int, *values: Any) -> tuple[Any, Any, Any]:
    """Submit what the form says now and go to its study; the key makes a second click harmless.

    The form is read again here: what was typed a moment before the click has no forecast yet.
    """
    *filled, study_id, name, key = values
    if not clicks:
        return no_update, no_update, no_update
    form = dict(zip(FIELDS, filled, strict=True))
    try:
        body = body_from(form, await _own_options(form))
        sweep = SweepCreate.model_validate(body)
        if study_id is None:
            study = await _study_for(body, name)
            call = calls.submit_into(study, sweep, idempotency_key=f"form-{key}")
        else:
            call = calls.submit(study_id, sweep, idempotency_key=f"form-{key}")
        study_id = (await ask(call)).study_id
    except Refused as error:
        return no_update, _alert(f"{label_of(error.name)}: {error}"), study_id
    except Trouble as error:
        return no_update, _alert(in_the_forms_words(sentence(error))), study_id
    return f"/studies/{study_id}{await _picture(body)}", None, study_id


async def _picture(body: dict[str, Any]) -> str:
    """Return what of an address opens a preset's study with the picture it is made for."""
    presets = (await get_catalog()).presets if "preset" in body else []
    picture = next((one.picture for one in presets if one.name == body["preset"]), "")
    return f"?view={picture}" if picture else ""


async def _study_for(body: dict[str, Any], name: str | None) -> StudyCreate:
    catalog = await get_catalog()
    return StudyCreate(name=(name or "").strip() or study_name(body, catalog), tags=tags_of(body))


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
