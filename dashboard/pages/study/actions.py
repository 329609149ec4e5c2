"""What changes a study's work: cancel, retry, archive; and a sweep as a command."""

import json
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls
from backend.schemas import StudyUpdate, SweepCreate, SweepRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import browser_callback, callback, notice, say
from dashboard.components.copy_as import copy_tabs
from dashboard.ids import Study as ids
from dashboard.markup import Component, html
from dashboard.pages.study.notes import head
from ib_core.sweep.request import body_of

QUESTIONS = {
    "cancel": "Cancel sweep {id}? Trials that have not ended stop within seconds; those that "
    "have stay. You can retry the rest later.",
    "rerun": "Train sweep {id} again with the present engine? Its trials stay as they are, and the "
    "picture “Engines” will show what changed.",
    "retry": "Run the failed and cancelled trials of sweep {id} again? Nothing else is repeated.",
}
DONE = {"cancel": "is being cancelled", "retry": "runs again", "rerun": "has been submitted"}


def dialogs() -> list[Component]:
    """Return the confirmation and the copy dialog."""
    return [
        dmc.Modal(
            [
                html.P(id=ids.CONFIRM_WORDS),
                dmc.Group(
                    [
                        dmc.Button("No", id=ids.CONFIRM_NO, variant="default", n_clicks=0),
                        dmc.Button("Yes", id=ids.CONFIRM_YES, n_clicks=0),
                    ],
                    justify="end",
                ),
            ],
            id=ids.CONFIRM,
            title="Are you sure?",
            closeButtonProps={"aria-label": "Close"},
        ),
        dmc.Modal(
            html.Div(id=ids.COPY_BODY),
            id=ids.COPY_MODAL,
            title="The sweep as a command",
            size="xl",
            closeButtonProps={"aria-label": "Close"},
        ),
    ]


# In the browser, because the list of sweeps is redrawn while it runs: a click that has to be
# answered by the server can be overtaken by a redraw of the button, and its answer thrown away.
browser_callback(
    f"function() {{ return window.etascope.askFirst({json.dumps(QUESTIONS)}); }}",
    Output(ids.CONFIRM, "opened"),
    Output(ids.CONFIRM_WORDS, "children"),
    Output(ids.PENDING, "data"),
    Input(shared.part("sweep-cancel", ALL), "n_clicks"),
    Input(shared.part("sweep-retry", ALL), "n_clicks"),
    Input(shared.part("sweep-rerun", ALL), "n_clicks"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.CONFIRM, "opened", allow_duplicate=True),
    Output(ids.PENDING, "data", allow_duplicate=True),
    Output(ids.DONE, "data"),
    Input(ids.CONFIRM_YES, "n_clicks"),
    Input(ids.CONFIRM_NO, "n_clicks"),
    State(ids.PENDING, "data"),
    prevent_initial_call=True,
)
async def act(yes: int, _no: int, pending: dict[str, Any] | None) -> tuple[Any, ...]:
    """Do what was confirmed."""
    if dash.ctx.triggered_id != ids.CONFIRM_YES or not pending:
        return False, None, no_update
    if pending["do"] == "rerun":
        sweep = await _rerun(pending["sweep"])
    else:
        call = calls.cancel if pending["do"] == "cancel" else calls.retry
        sweep = await ask(call(pending["sweep"]))
    say(f"Sweep {sweep.id} {DONE[pending['do']]}.")
    return False, None, yes


async def _rerun(sweep_id: int) -> SweepRead:
    """Submit a sweep's grid once more; its trials have other fingerprints by now."""
    old = await ask(calls.sweep(sweep_id))
    return await ask(calls.submit(old.study_id, SweepCreate.model_validate(body_of(old.spec))))


@callback(
    Output(ids.HEAD, "children", allow_duplicate=True),
    Output(shared.NOTICES, "sendNotifications", allow_duplicate=True),
    Input(ids.ARCHIVE, "n_clicks"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def archive(clicks: int, study_id: int) -> tuple[Any, Any]:
    """Hide the study from the history, or show it again: the same button undoes it."""
    if not clicks:
        return no_update, no_update
    before = await ask(calls.study(study_id))
    study = await ask(calls.update_study(study_id, StudyUpdate(archived=not before.archived)))
    words = "Archived. Restore brings it back." if study.archived else "Back in the history."
    return head(study), [notice(words)]


@callback(
    Output(ids.COPY_MODAL, "opened"),
    Output(ids.COPY_BODY, "children"),
    Input(shared.part("sweep-copy", ALL), "n_clicks"),
    State(shared.LOCATION, "href"),
    prevent_initial_call=True,
)
async def copy(_clicks: list[int], href: str) -> tuple[Any, Any]:
    """Show a sweep as curl, Python and command line."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update, no_update
    sweep = await ask(calls.sweep(pressed["key"]))
    return True, copy_tabs(sweep, href)
