"""One click runs an experiment: a study, its preset, and off to the curves."""

import asyncio
import uuid
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, no_update

from backend.client import calls
from backend.schemas import StudyCreate, SweepCreate
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, sentence
from dashboard.callbacks import callback
from dashboard.catalog import get_catalog
from dashboard.ids import Paper as ids
from dashboard.markup import Component, html
from dashboard.visitor import get_visitor, may_change

PREFIX = "paper/"


def messages() -> Component:
    """Return where it is said why an experiment cannot be run."""
    return html.Div(id=ids.ERROR, role="alert")


@callback(
    Output(shared.LOCATION, "href", allow_duplicate=True),
    Output(ids.ERROR, "children"),
    Input(shared.part(ids.RUN, ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def run(clicks: list[int | None]) -> tuple[Any, Any]:
    """Submit the experiment whose button was pressed, and go to its study."""
    pressed = dash.ctx.triggered_id
    if not any(clicks) or not isinstance(pressed, dict):
        return no_update, no_update
    profile, _, experiment = str(pressed["key"]).partition("|")
    try:
        study_id = await _submit(experiment, profile)
    except Trouble as error:
        return no_update, dmc.Alert(sentence(error), color="red", mb=12)
    return f"/studies/{study_id}", None


async def _submit(experiment: str, profile: str) -> int:
    """Put the experiment's sweeps into its study, a new one unless there is one to go on with."""
    page, visitor = await asyncio.gather(
        ask(calls.studies(tag=experiment, limit=20)), get_visitor()
    )
    own = [
        study
        for study in page.items
        if ("authors" in study.tags) == (profile == "authors") and may_change(visitor, study)
    ]
    body = SweepCreate.model_validate({"preset": PREFIX + experiment, "profile": profile})
    key = f"paper-{uuid.uuid4()}"
    if own:
        call = calls.submit(own[0].id, body, idempotency_key=key)
    else:
        presets = {one.name: one.title for one in (await get_catalog()).presets}
        name = f"{presets.get(PREFIX + experiment, experiment)} ({profile} profile)"
        made = StudyCreate(name=name, tags=["paper", profile, experiment])
        call = calls.submit_into(made, body, idempotency_key=key)
    return (await ask(call)).study_id
