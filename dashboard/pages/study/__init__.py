"""A study: its curve, live; scorecard, trials, notes, and ways to take it elsewhere.

The page's layout stands here; its parts, each with its callbacks, are

| module | what it has |
| --- | --- |
| `header` | name, tags and notes; changing, exporting, sharing, archiving and deleting the study |
| `controls` | what the page can be asked to show, and the address that asks for it |
| `answer` | what the study says: answer, strip, scorecard; testing a gap, measuring a step |
| `curves` | the picture: asked for, drawn, and kept until the study changes |
| `progress` | how far the study is, while it runs |
| `sweeps` | the list of sweeps: cancel, retry, run again, copy as a command |
| `trials` | the table of trials, and those behind a point of the picture |
| `discussion` | what people say about the study, and what they did to it |
"""

import asyncio
from typing import Any

import dash_mantine_components as dmc

from backend.client import ApiError, calls
from backend.schemas import MeRead, StudyRead, SweepRead
from dashboard.api_client import ask, get_visitor, may_change
from dashboard.components import (
    MOST_LANES,
    button_link,
    card,
    empty_state,
    figure_dialog,
    goes_on,
    link,
    more_numbers,
    plain_elements,
    read_controls,
    scrubber,
    tick_stores,
)
from dashboard.dash_blocks import Component, dcc, html
from dashboard.ids import Study as ids
from dashboard.pages.study import discussion, header, progress
from dashboard.pages.study.answer import measure_line
from dashboard.pages.study.controls import (
    CONTROLS,
    control_panel,
    metric_of,
    without_common,
)
from dashboard.pages.study.curves import blank
from dashboard.pages.study.sweeps import MOST_SWEEPS, dialogs, sweep_list
from dashboard.pages.study.trials import drawer
from dashboard.router import Page, View
from dashboard.theme import graph_config

__all__ = ["PAGE", "layout", "metric_of", "without_common"]

INTERVAL_MS = 1500
SKIP = html.A("Skip to the controls", href=f"#{ids.CONTROLS}", className="skip-link")


async def layout(study_id: str = "0", **query: str) -> View:
    """Return the page of a study."""
    number = _identifier(study_id)
    study, sweeps, visitor = await asyncio.gather(
        ask(calls.study(number)), ask(calls.sweeps(number, limit=MOST_SWEEPS)), get_visitor()
    )
    values = read_controls(CONTROLS, query)
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


def _identifier(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**63:
        raise ApiError(404, "not_found", f"There is no study {text!r}.")
    return int(text)


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
    said, done = await asyncio.gather(
        discussion.notes_on(study_id, visitor), discussion.past_of(study_id)
    )
    return [
        card(*said, title="Discussion"),
        card(html.Div(done, id=ids.ACTIVITY), title="Activity"),
    ]


async def _content(
    study: StudyRead, sweeps: list[SweepRead], values: dict[str, Any], own: bool
) -> Component:
    listed, timing = await asyncio.gather(
        sweep_list(sweeps, own=own), ask(calls.step_timing(study.id))
    )
    side = html.Div(
        [
            html.Div(
                card(*control_panel(values, sweeps, study.tasks), className="controls"),
                id=ids.CONTROLS,
                tabIndex=-1,
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
        dmc.Button(
            "Show all again",
            id=ids.ZOOM_OUT,
            variant="default",
            size="compact-sm",
            n_clicks=0,
            ml=8,
            display="none",
        ),
        html.Div(id=ids.CAPTION, className="muted", style={"padding": "0 8px 8px"}),
        className="figure-card",
    )


PAGE = Page("/studies/<study_id>", "Study", layout)
