"""A study's name, tags and notes, and changing them."""

from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import StudyRead, StudyUpdate
from dashboard.api_client import ask
from dashboard.callbacks import callback
from dashboard.components.elements import button_link, state_badge
from dashboard.components.times import local_time
from dashboard.ids import Study as ids
from dashboard.markup import Component, html
from dashboard.pages.study import sharing
from dashboard.pages.study.exports import export_menu
from dashboard.pages.study.markdown import markdown


def head(study: StudyRead, *, own: bool = True) -> Component:
    """Return name, state, tags and what one can do with the study.

    Args:
        study: Which.
        own: Whether it is the visitor's to change.
    """
    tags = [dmc.Badge(tag, variant="outline", color="gray", tt="none") for tag in study.tags]
    archived = [dmc.Badge("archived", color="gray", tt="none")] if study.archived else []
    owner = [f"by {study.owner}, "] if study.owner else []
    return html.Div(
        [
            html.Div(
                [
                    html.H1(study.name),
                    html.Div(
                        [
                            html.Span(state_badge(study.state), id=ids.STATE),
                            *archived,
                            *tags,
                            html.Span(
                                [*owner, "created ", local_time(study.created_at)],
                                className="history-meta",
                            ),
                        ],
                        className="row",
                        style={"marginTop": "8px"},
                    ),
                ]
            ),
            html.Div(
                [*_changes(study, own=own), export_menu(study.id), sharing.copy_link()],
                className="actions",
            ),
        ],
        className="page-head",
    )


def _changes(study: StudyRead, *, own: bool) -> list[Component]:
    """Return what only the study's owner can do; deleting comes after archiving."""
    if not own:
        return []
    archive = dmc.Button(
        "Restore" if study.archived else "Archive",
        id=ids.ARCHIVE,
        variant="default",
        n_clicks=0,
    )
    return [
        button_link("Add a sweep", f"/new?study={study.id}"),
        dmc.Button("Edit", id=ids.EDIT, variant="default", n_clicks=0),
        archive,
        *([sharing.delete_button()] if study.archived else []),
    ]


def notes(study: StudyRead) -> Component:
    """Return the notes; markdown only, so that nobody's HTML runs in anybody's browser."""
    if not study.notes.strip():
        return html.P("No notes. Edit the study to add some.", className="muted")
    return markdown(study.notes)


def edit_dialog() -> Component:
    """Return the dialog that changes name, tags and notes."""
    return dmc.Modal(
        [
            dmc.TextInput(label="Name", id=ids.EDIT_NAME, required=True),
            dmc.TagsInput(label="Tags", id=ids.EDIT_TAGS, mt=12, description="Enter adds one."),
            dmc.Textarea(
                label="Notes",
                id=ids.EDIT_NOTES,
                autosize=True,
                minRows=6,
                mt=12,
                description="Markdown; HTML is shown as text.",
            ),
            html.Div(id=ids.EDIT_ERROR, role="alert"),
            dmc.Group([dmc.Button("Save", id=ids.EDIT_SAVE, n_clicks=0)], justify="end", mt=16),
        ],
        id=ids.EDIT_MODAL,
        title="Edit the study",
        size="lg",
        closeButtonProps={"aria-label": "Close"},
    )


@callback(
    Output(ids.EDIT_MODAL, "opened"),
    Output(ids.EDIT_NAME, "value"),
    Output(ids.EDIT_TAGS, "value"),
    Output(ids.EDIT_NOTES, "value"),
    Output(ids.EDIT_ERROR, "children"),
    Input(ids.EDIT, "n_clicks"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def edit(clicks: int, study_id: int) -> tuple[Any, ...]:
    """Open the dialog with what the study has now."""
    if not clicks:
        return (no_update,) * 5
    study = await ask(calls.study(study_id))
    return True, study.name, study.tags, study.notes, None


@callback(
    Output(ids.HEAD, "children"),
    Output(ids.NOTES, "children"),
    Output(ids.EDIT_MODAL, "opened", allow_duplicate=True),
    Output(ids.EDIT_ERROR, "children", allow_duplicate=True),
    Input(ids.EDIT_SAVE, "n_clicks"),
    State(ids.EDIT_NAME, "value"),
    State(ids.EDIT_TAGS, "value"),
    State(ids.EDIT_NOTES, "value"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def save(
    clicks: int, name: str, tags: list[str], text: str, study_id: int
) -> tuple[Any, ...]:
    """Store the changes, or say in the dialog why not."""
    if not clicks:
        return (no_update,) * 4
    try:
        changes = StudyUpdate(name=name, tags=tags or [], notes=text or "")
        study = await ask(calls.update_study(study_id, changes))
    except ApiError as error:
        return no_update, no_update, True, dmc.Text(error.message, c="red", mt=8)
    except ValidationError as error:
        return no_update, no_update, True, dmc.Text(_first(error), c="red", mt=8)
    return head(study), notes(study), False, None


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    return f"{found['loc'][0]}: {found['msg']}."
