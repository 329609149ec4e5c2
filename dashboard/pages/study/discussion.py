"""What people say about a study, with author and time; and what they did to it."""

from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import MeRead, NoteCreate, NoteRead
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, may_write, sentence
from dashboard.components import activity, local_time, markdown
from dashboard.dash_blocks import Component, callback, html, notice
from dashboard.ids import Discussion as ids
from dashboard.ids import Study

MOST_SHOWN = 50
#: Of what was done to a study: so many are in sight, and so many are there at all.
MOST_IN_SIGHT, MOST_KEPT = 5, 100


async def notes_on(study_id: int, visitor: MeRead) -> list[Component]:
    """Return what was said, the newest first, and a place to say more."""
    form = [
        dmc.Textarea(
            id=ids.TEXT,
            autosize=True,
            minRows=2,
            placeholder="Markdown",
            label="Add a note",
            mt=12,
        ),
        dmc.Button("Add", id=ids.ADD, size="compact-sm", mt=8, mb=8, n_clicks=0),
    ]
    found = await ask(calls.notes(study_id, limit=MOST_SHOWN))
    entries = html.Div(_entries(found.items, visitor), id=ids.LIST)
    return [*(form if may_write(visitor) else []), entries]


def _entries(notes: list[NoteRead], visitor: MeRead) -> list[Component]:
    return [_entry(note, visitor) for note in notes]


def _entry(note: NoteRead, visitor: MeRead) -> Component:
    author = [html.B(note.author), " · "] if note.author else []
    own = visitor.role == "admin" or (may_write(visitor) and note.author == visitor.username)
    delete = dmc.Button(
        "Delete",
        id=shared.part("note-delete", note.id),
        size="compact-xs",
        variant="subtle",
        color="gray",
        n_clicks=0,
        **{"aria-label": f"Delete the note of {note.author or 'yours'}"},
    )
    head = html.Div(
        [
            html.Span([*author, local_time(note.created_at)], className="history-meta"),
            *([delete] if own else []),
        ],
        className="entry-head",
    )
    return html.Div([head, markdown(note.text)], className="discussion-note")


@callback(
    Output(ids.LIST, "children"),
    Output(ids.TEXT, "value"),
    Output(shared.NOTICES, "sendNotifications", allow_duplicate=True),
    Input(ids.ADD, "n_clicks"),
    State(ids.TEXT, "value"),
    State(Study.ID, "data"),
    prevent_initial_call=True,
)
async def add(clicks: int, text: str | None, study_id: int) -> tuple[Any, Any, Any]:
    """Store a note, or say why not."""
    if not clicks or not (text or "").strip():
        return no_update, no_update, no_update
    try:
        await ask(calls.add_note(study_id, NoteCreate(text=text or "")))
    except ValidationError:
        return no_update, no_update, [notice("A note has at most 10,000 characters.", bad=True)]
    except ApiError as error:
        return no_update, no_update, [notice(sentence(error), bad=True)]
    return await _fresh(study_id), "", no_update


@callback(
    Output(ids.LIST, "children", allow_duplicate=True),
    Input(shared.part("note-delete", ALL), "n_clicks"),
    State(Study.ID, "data"),
    prevent_initial_call=True,
)
async def delete(_clicks: list[int], study_id: int) -> Any:
    """Delete a note of one's own."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    await ask(calls.delete_note(pressed["key"]))
    return await _fresh(study_id)


async def _fresh(study_id: int) -> list[Component]:
    found = await ask(calls.notes(study_id, limit=MOST_SHOWN))
    return _entries(found.items, await get_visitor())


async def past_of(study_id: int) -> Component:
    """Return what was done to a study; all but the newest few are folded away."""
    entries = (await ask(calls.audit(study_id=study_id, limit=MOST_KEPT))).items
    if len(entries) <= MOST_IN_SIGHT + 1:
        return activity(entries)
    older = html.Details(
        [
            html.Summary(f"{len(entries) - MOST_IN_SIGHT} earlier", className="history-meta"),
            activity(entries[MOST_IN_SIGHT:]),
        ]
    )
    return html.Div([activity(entries[:MOST_IN_SIGHT]), older], className="activity")
