"""A study: its curve, live; scorecard, trials, notes, and ways to take it elsewhere.

The page's layout and its discussion stand here; its other parts, each with its callbacks, are

| module | what it has |
| --- | --- |
| `header` | name, tags and notes; changing, exporting, sharing, archiving and deleting the study |
| `controls` | what the page can be asked to show, and the address that asks for it |
| `answer` | what the study says: answer, strip, scorecard; testing a gap, measuring a step |
| `curves` | the picture: asked for, drawn, and kept until the study changes |
| `words` | what stands below the picture, and in its place where there is none |
| `progress` | how far the study is, while it runs |
| `sweeps` | the list of sweeps: cancel, retry, run again, copy as a command |
| `trials` | the table of trials, and those behind a point of the picture |
"""

import asyncio
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import MeRead, NoteCreate, NoteRead, StudyRead, SweepRead
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, may_change, may_write, sentence
from dashboard.components import (
    MOST_LANES,
    activity,
    answering,
    button_link,
    card,
    empty_state,
    figure_dialog,
    goes_on,
    identifier,
    link,
    local_time,
    markdown,
    more_numbers,
    plain_elements,
    read_controls,
    scrubber,
    tick_from,
    tick_stores,
    zoom_out,
)
from dashboard.dash_blocks import Component, callback, dcc, html, notice
from dashboard.ids import Discussion
from dashboard.ids import Study as ids
from dashboard.pages.study import header, progress
from dashboard.pages.study.answer import measure_line
from dashboard.pages.study.controls import (
    ALL_VIEWS,
    CONTROLS,
    control_panel,
    metric_of,
    without_common,
)
from dashboard.pages.study.curves import blank
from dashboard.pages.study.sweeps import MOST_SWEEPS, dialogs
from dashboard.pages.study.trials import drawer
from dashboard.router import Page, View
from dashboard.theme import graph_config

__all__ = ["ALL_VIEWS", "PAGE", "layout", "metric_of", "without_common"]

INTERVAL_MS = 1500
SKIP = html.A("Skip to the controls", href=f"#{ids.CONTROLS}", className="skip-link")


async def layout(study_id: str = "0", **query: str) -> View:
    """Return the page of a study."""
    number = _identifier(study_id)
    study, sweeps, visitor = await asyncio.gather(
        ask(calls.study(number)), ask(calls.sweeps(number, limit=MOST_SWEEPS)), get_visitor()
    )
    values = read_controls(CONTROLS, {"view": _fallback(study), **query})
    own = may_change(visitor, study)
    parts = (
        await _with_sweeps(study, sweeps.items, values, own)
        if study.sweep_ids
        else _without_sweeps(study, own)
    )
    body = html.Div(
        [
            dcc.Store(id=ids.ID, data=study.id),
            *parts,
            html.Div(await _team(study.id, visitor), className="two-thirds"),
            header.edit_dialog(),
            header.delete_dialog(),
        ],
        className="stack",
    )
    return View(body, title=study.name, crumbs=((study.name, ""),))


def _fallback(study: StudyRead) -> str:
    """Return the picture of an address that names none: the one a preset was made for."""
    return study.picture or "curves"


def _identifier(text: str) -> int:
    if not (found := identifier(text)):
        raise ApiError(404, "not_found", f"There is no study {text[:40]!r}.")
    return found


async def _with_sweeps(
    study: StudyRead, sweeps: list[SweepRead], values: dict[str, Any], own: bool
) -> list[Component]:
    return [
        *_stores(study, sweeps, values),
        SKIP,
        html.Div(header.head(study, own=own), id=ids.HEAD),
        html.Div(progress.status(study, sweeps), id=ids.STATUS),
        _answer(),
        await _content(study, sweeps, values, own),
        drawer(values["trials"]),
        *dialogs(),
        figure_dialog("study"),
    ]


def _answer() -> Component:
    """Return what stands on top: the answer in words."""
    return card(
        html.H2("Answer", className="visually-hidden"),
        plain_elements(ids.ANSWERS, ids.ANSWER, dmc.Skeleton(h=44)),
        className="answer-card",
    )


def _without_sweeps(study: StudyRead, own: bool) -> list[Component]:
    """Return what an empty study has: no picture, and nothing that waits for one."""
    return [
        html.Div(header.head(study, own=own), id=ids.HEAD),
        empty_state(
            "No sweep yet",
            "A sweep trains a grid of learning rates and seeds. Its curve appears here while it "
            "runs.",
            *([button_link("Add a sweep", f"/new?study={study.id}")] if own else []),
        ),
        _notes(study),
    ]


def _notes(study: StudyRead) -> Component:
    return card(html.Div(header.notes(study), id=ids.NOTES), title="Notes")


def _stores(study: StudyRead, sweeps: list[SweepRead], values: dict[str, Any]) -> list[Component]:
    return [
        dcc.Store(id=ids.VERSION, data=progress.version(study)),
        *tick_stores(ids.TICK),
        dcc.Store(id=ids.SWEEPS_MARK, data=progress.sweeps_mark(sweeps)),
        dcc.Store(id=ids.MARK),
        dcc.Store(id=ids.KEPT),
        dcc.Store(id=ids.SCORED),
        dcc.Store(id=ids.GAPS),
        dcc.Store(id=ids.DRAWN),
        dcc.Store(id=ids.GRID_CURSORS),
        dcc.Store(id=ids.PENDING),
        dcc.Store(id=ids.DONE),
        dcc.Store(id=ids.ZOOM, data=values["zoom"]),
        dcc.Store(id=ids.SELECTED, data=values["trials"]),
        dcc.Interval(id=ids.INTERVAL, interval=INTERVAL_MS, disabled=not goes_on(study)),
    ]


async def _team(study_id: int, visitor: MeRead) -> list[Component]:
    """Return what people say about a study, and what they did to it."""
    said, done = await asyncio.gather(notes_on(study_id, visitor), past_of(study_id))
    return [
        card(*said, title="Discussion"),
        card(html.Div(done, id=ids.ACTIVITY), title="Activity"),
    ]


async def _content(
    study: StudyRead, sweeps: list[SweepRead], values: dict[str, Any], own: bool
) -> Component:
    listed, timing = await asyncio.gather(
        progress.sweeps_of(study, sweeps, own=own), ask(calls.step_timing(study.id))
    )
    side = html.Div(
        [
            html.Div(
                card(*control_panel(values, sweeps, study.tasks), className="controls"),
                id=ids.CONTROLS,
                tabIndex=-1,
                disable_n_clicks=True,
                **{"data-fallback": _fallback(study)},
            ),
            card(
                plain_elements(ids.SCORES, ids.SCORECARD, dmc.Skeleton(h=280)),
                html.Div(
                    [
                        more_numbers(values["numbers"], ids.MORE, ids.NUMBERS, ids.SCORECARD),
                        link("What does this mean?", "/guide/numbers", size="sm"),
                    ],
                    className="row",
                ),
                measure_line(timing, own=own),
                title="Scorecard",
            ),
        ],
        className="stack side",
    )
    work = html.Div(
        [
            card(html.Div(listed, id=ids.SWEEPS), title="Sweeps"),
            _notes(study),
        ],
        className="pair work",
    )
    return html.Div(
        [
            # First for the keyboard, beside the picture for the eye.
            side,
            html.Div(_figure(_lanes(sweeps)), className="picture"),
            work,
            html.Div(
                card(html.Div(dmc.Skeleton(h=480), id=ids.TRIALS), title="Trials"),
                className="trials",
            ),
        ],
        className="two-thirds study-grid",
    )


def _lanes(sweeps: list[SweepRead]) -> int:
    """Return how many lanes the strip will have, about: so much room is kept for it."""
    methods = {
        (sweep.spec.get("task"), m) for sweep in sweeps for m in sweep.spec.get("methods", ())
    }
    return min(len(methods), MOST_LANES)


def _figure(lanes: int) -> Component:
    return card(
        plain_elements(ids.LANES, ids.STRIP, dmc.Skeleton(h=24 + 20 * lanes, mx=8)),
        html.Div(dmc.Skeleton(h=22), id=ids.GAP_OFFERS, className="gaps"),
        html.Div(
            dcc.Graph(
                id=ids.GRAPH,
                figure=blank("Drawing…"),
                config=graph_config("etascope-study", own_zoom=True),
                responsive=True,
                style={"height": "560px"},
            ),
            id=ids.FIGURE,
        ),
        scrubber(ids),
        zoom_out(ids),
        html.Div(id=ids.CAPTION, className="muted", style={"padding": "0 8px 8px"}),
        className="figure-card",
    )


# --- What people say about a study, with author and time; and what they did to it


MOST_SHOWN = 50
#: So long a colleague's note may take to come, in milliseconds: also when all trials have ended.
NOTES_MS = 15_000
tick_from(Discussion.INTERVAL, Discussion.TICK)
#: Of what was done to a study: so many are in sight, and so many are there at all.
MOST_IN_SIGHT, MOST_KEPT = 5, 100


async def notes_on(study_id: int, visitor: MeRead) -> list[Component]:
    """Return what was said, the newest first, and a place to say more."""
    form = [
        dmc.Textarea(
            id=Discussion.TEXT,
            autosize=True,
            minRows=2,
            placeholder="Markdown",
            label="Add a note",
            mt=12,
        ),
        dmc.Button("Add", id=Discussion.ADD, size="compact-sm", mt=8, mb=8, n_clicks=0),
    ]
    found = await ask(calls.notes(study_id, limit=MOST_SHOWN))
    entries = html.Div(_entries(found.items, visitor), id=Discussion.LIST)
    ticking = [
        dcc.Interval(id=Discussion.INTERVAL, interval=NOTES_MS),
        *tick_stores(Discussion.TICK),
        dcc.Store(id=Discussion.SEEN, data=[note.id for note in found.items]),
    ]
    return [*(form if may_write(visitor) else []), entries, *ticking]


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
    Output(Discussion.LIST, "children"),
    Output(Discussion.TEXT, "value"),
    Output(shared.NOTICES, "sendNotifications", allow_duplicate=True),
    Input(Discussion.ADD, "n_clicks"),
    State(Discussion.TEXT, "value"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def add_note(clicks: int, text: str | None, study_id: int) -> tuple[Any, Any, Any]:
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
    Output(Discussion.LIST, "children", allow_duplicate=True),
    Input(shared.part("note-delete", ALL), "n_clicks"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def delete_note(_clicks: list[int], study_id: int) -> Any:
    """Delete a note of one's own."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    await ask(calls.delete_note(pressed["key"]))
    return await _fresh(study_id)


@callback(
    Output(Discussion.LIST, "children", allow_duplicate=True),
    Output(Discussion.SEEN, "data"),
    Input(Discussion.TICK, "data"),
    State(Discussion.SEEN, "data"),
    State(ids.ID, "data"),
    running=answering(Discussion.TICK),
    prevent_initial_call=True,
)
async def follow_notes(_tick: Any, seen: list[int] | None, study_id: int) -> tuple[Any, Any]:
    """Show what others have said meanwhile, or taken back; nothing moves where nothing changed."""
    found = await ask(calls.notes(study_id, limit=MOST_SHOWN))
    now = [note.id for note in found.items]
    if now == seen:
        return no_update, no_update
    return _entries(found.items, await get_visitor()), now


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


PAGE = Page("/studies/<study_id>", "Study", layout)
