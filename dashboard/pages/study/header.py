"""A study's name, tags and notes; changing, exporting, sharing, archiving and deleting it."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import StudyRead, StudyUpdate
from dashboard import ids as shared
from dashboard.api_client import api_address, ask
from dashboard.components import button_link, figure_from, local_time, markdown, state_badge
from dashboard.dash_blocks import Component, browser_callback, callback, html, notice
from dashboard.ids import Study as ids

#: Lines as lines first; a picture of pixels for where nothing else is taken.
PICTURES = {"pdf": "PDF", "svg": "SVG", "png": "PNG", "print": "Print…"}
EXPORT_LOOK = "button-link"
#: Files that need no server.
PUBLISHED = {"html": "One page, opens offline", "zip": "Data, figures and commands (zip)"}
NUMBERS = ("csv", "json", "parquet")


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
                [*_changes(study, own=own), export_menu(study.id), copy_link()],
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
        *([delete_button()] if study.archived else []),
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


def export_menu(study_id: int) -> Component:
    """Return the menu of everything one can take along."""
    return dmc.Menu(
        [
            # Mantine puts what a screen reader must know on the wrapper, so that is the button.
            dmc.MenuTarget(
                html.Span("Export"),
                boxWrapperProps={"component": "button", "type": "button", "className": EXPORT_LOOK},
            ),
            dmc.MenuDropdown(
                [
                    dmc.MenuLabel("The picture as shown"),
                    *(
                        dmc.MenuItem(words, id=f"study-export-{kind}", n_clicks=0)
                        for kind, words in PICTURES.items()
                    ),
                    dmc.MenuItem("For a paper…", id=ids.FOR_PAPER, n_clicks=0),
                    dmc.MenuDivider(),
                    dmc.MenuLabel("Every trial"),
                    *(
                        dmc.MenuItem(
                            kind.upper() if kind != "parquet" else "Parquet",
                            href=f"{api_address()}/api/studies/{study_id}/export?format={kind}",
                            target="_blank",
                        )
                        for kind in NUMBERS
                    ),
                    dmc.MenuDivider(),
                    dmc.MenuLabel("To publish"),
                    *(
                        dmc.MenuItem(
                            words,
                            href=f"{api_address()}/api/publish?study={study_id}&format={kind}",
                            target="_blank",
                        )
                        for kind, words in PUBLISHED.items()
                    ),
                ]
            ),
        ],
        position="bottom-end",
        keepMounted=True,
    )


figure_from("study", ids.GRAPH, ids.FOR_PAPER)
for _kind in PICTURES:
    browser_callback(
        "function(clicks, study) { if (clicks) { "
        f"window.etascope.exportPicture('{ids.GRAPH}', '{_kind}', 'etascope-study-' + study); "
        "} }",
        Input(f"study-export-{_kind}", "n_clicks"),
        Input(ids.ID, "data"),
        prevent_initial_call=True,
    )


def copy_link() -> Component:
    """Return the button that copies the address of exactly this view."""
    return dmc.Button("Copy link", id=ids.COPY_LINK, variant="default", n_clicks=0)


def delete_button() -> Component:
    """Return the button that asks before it deletes."""
    return dmc.Button("Delete", id=ids.DELETE, variant="default", className="danger", n_clicks=0)


def delete_dialog() -> Component:
    """Return the question before a study is gone."""
    return dmc.Modal(
        [
            html.P(
                "Delete this study for good, with its sweeps, notes and every trial that no other "
                "study holds? This cannot be undone; archiving can."
            ),
            dmc.Group(
                [
                    dmc.Button("Keep it", id=ids.DELETE_NO, variant="default", n_clicks=0),
                    dmc.Button("Delete for good", id=ids.DELETE_YES, color="red", n_clicks=0),
                ],
                justify="end",
            ),
        ],
        id=ids.DELETE_MODAL,
        title="Are you sure?",
        closeButtonProps={"aria-label": "Close"},
    )


browser_callback(
    "function(clicks) { return window.etascope.copyLink(clicks); }",
    Output(ids.COPY_LINK, "title"),
    Input(ids.COPY_LINK, "n_clicks"),
    prevent_initial_call=True,
)
browser_callback(
    "function(clicks) { return Boolean(clicks); }",
    Output(ids.DELETE_MODAL, "opened"),
    Input(ids.DELETE, "n_clicks"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.DELETE_MODAL, "opened", allow_duplicate=True),
    Output(shared.LOCATION, "href", allow_duplicate=True),
    Input(ids.DELETE_YES, "n_clicks"),
    Input(ids.DELETE_NO, "n_clicks"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def delete(_yes: int, _no: int, study_id: int) -> tuple[Any, Any]:
    """Delete what was confirmed, and go back to the history."""
    if dash.ctx.triggered_id != ids.DELETE_YES or not dash.ctx.triggered[0]["value"]:
        return False, no_update
    await ask(calls.delete_study(study_id))
    return False, "/history"
