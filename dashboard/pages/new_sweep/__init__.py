"""A new sweep: what to train, on which rates and seeds, and what that would cost.

The page's layout stands here; its parts are

| module | what it has |
| --- | --- |
| `form` | the fields, in cards |
| `body` | from what is typed to a request's body, and from an error to its field |
| `forecast` | what the form would mean, while it is filled in; and submitting it |
"""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc

from backend.client import calls
from backend.schemas import CatalogRead, StudyRead, TaskRead
from dashboard.api_client import ask, find_task, get_catalog, get_visitor, may_change
from dashboard.components import card, identifier
from dashboard.dash_blocks import Component, dcc, html
from dashboard.ids import NewSweep as ids
from dashboard.pages.new_sweep import forecast
from dashboard.pages.new_sweep import form as fields
from dashboard.pages.new_sweep.body import CHOSEN, FIELDS, LABELS, form_from_spec
from dashboard.router import Page, View

__all__ = ["PAGE", "layout"]

FIRST_TASK = "digits_mlp"


async def layout(**query: str) -> View:
    """Return the form, filled in as the address asks.

    `study` adds to a study, `sweep` repeats a sweep, `lrs` is a list of rates, and every field may
    be filled in by its own name: so "back" finds the form as it was left.
    """
    catalog = await get_catalog(fresh=True)
    form = await _filled(query, catalog)
    study = await _study(query, form)
    task = find_task(catalog, form["task"])
    preset = form["mode"] == "preset"
    body = html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("New sweep"),
                        html.P(
                            "Every method trains at every rate with every seed. Trials that are "
                            "already known are reused, not run again.",
                            className="page-lead",
                        ),
                    ]
                ),
                className="page-head",
            ),
            dcc.Store(id=ids.STUDY, data=study.id if study else None),
            dcc.Store(id=ids.ASKED),
            dcc.Store(id=ids.ANSWERED),
            dcc.Store(id=ids.KEY, data=uuid.uuid4().hex),
            html.Div(
                [
                    html.Div(
                        [
                            _mode(form),
                            html.Div(
                                fields.preset_card(catalog, form),
                                id=ids.PRESET_PART,
                                style=None if preset else {"display": "none"},
                            ),
                            html.Div(
                                [fields.task_card(catalog, form, task), fields.rates_card(form)],
                                id=ids.GRID,
                                className="stack",
                                style={"display": "none"} if preset else None,
                            ),
                            fields.seeds_card(form),
                            fields.options_card(catalog, form),
                        ],
                        className="stack",
                    ),
                    html.Div(_side(study, query.get("name", "")), className="sticky"),
                ],
                className="form-columns",
            ),
        ]
    )
    crumbs = (((study.name, f"/studies/{study.id}"),) if study else ()) + (("New sweep", ""),)
    return View(body, title="New sweep", crumbs=crumbs)


def _mode(form: Mapping[str, Any]) -> Component:
    return dmc.SegmentedControl(
        id=ids.MODE,
        data=[
            {"value": "grid", "label": "Build a grid"},
            {"value": "preset", "label": "Run a preset"},
        ],
        value=form["mode"],
        **{"aria-label": LABELS["mode"]},
    )


def _side(study: StudyRead | None, name: str) -> Component:
    where = (
        html.P(["Into the study ", html.B(study.name)])
        if study
        else dmc.TextInput(
            label="Name of the study",
            id=ids.NAME,
            value=name,
            placeholder="made from what is chosen",
            debounce=True,
            attributes={"input": {"maxLength": 200}},  # what the API takes
            mb=12,
        )
    )
    # The name's field must exist for the callback that submits.
    hidden = [dmc.TextInput(id=ids.NAME, display="none")] if study else []
    return card(
        where,
        *hidden,
        html.Div(forecast.waiting(), id=ids.FORECAST, **{"aria-live": "polite"}),
        html.Div(id=ids.ERROR, role="alert"),
        dmc.Button(
            "Run", id=ids.SUBMIT, fullWidth=True, disabled=True, mt=12, size="md", n_clicks=0
        ),
        title="Forecast",
    )


async def _study(query: Mapping[str, str], form: Mapping[str, Any]) -> StudyRead | None:
    wanted = identifier(str(query.get("study") or form.get("study") or ""))
    if not wanted:
        return None
    study, visitor = await asyncio.gather(ask(calls.study(wanted)), get_visitor())
    return study if may_change(visitor, study) else None  # repeat it in a study of one's own


async def _filled(query: Mapping[str, str], catalog: CatalogRead) -> dict[str, Any]:
    """Return the form's first values."""
    preset = query.get("preset")
    names = [one.name for one in catalog.presets]
    tasks = [task.name for task in catalog.tasks]
    name = query.get("task") or (FIRST_TASK if FIRST_TASK in tasks else next(iter(tasks), None))
    form: dict[str, Any] = dict.fromkeys(FIELDS)
    form |= {
        "mode": "preset" if preset else "grid",
        "preset": next(iter(names), None),
        "task": name,
        "methods": _usual_methods(find_task(catalog, name)),
        "rates_mode": "list" if "lrs" in query else "grid",
        "rate_list": query.get("lrs"),
        "seeds": "" if preset else "3",
        "profile": "text",
        "device": "auto",
    }
    form |= forecast.grid_of(find_task(catalog, name), query.get("profile", "text"))
    if wanted := identifier(query.get("sweep", "")):
        sweep = await ask(calls.sweep(wanted))
        given = form_from_spec(sweep.spec)
        form |= {key: value for key, value in given.items() if value is not None}
        form["study"] = sweep.study_id
    form |= {key: _given(key, query[key]) for key in FIELDS if key in query}
    if form["preset"] not in names:
        form["preset"] = next(iter(names), None)
    return form


def _usual_methods(task: TaskRead | None) -> list[str]:
    """Return the methods to begin with: EB and IB, or the one of them that can train the task."""
    return [one for one in ("eb", "ib") if task is None or one in task.methods]


def _given(name: str, text: str) -> Any:
    """Return a field's value as the address writes it."""
    if name in ("methods", "record", *CHOSEN):
        return [method for method in text.split(",") if method]
    return text == "1" if name == "restart" else text or None


PAGE = Page("/new", "New sweep", layout, navigation="New sweep")
