"""How far a study is, while it runs."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dash import Input, Output, State, no_update

from backend.client import calls
from backend.schemas import Page, StudyRead, SweepRead, WayRead
from dashboard.api_client import (
    MOST_STUDIES,
    Cache,
    ShownVersions,
    ask,
    asked_client,
    get_visitor,
    may_change,
    now_in_steps,
)
from dashboard.components import (
    answering,
    goes_on,
    progress_panel,
    retriable,
    state_badge,
    tick_from,
)
from dashboard.dash_blocks import Component, browser_callback, callback, html
from dashboard.ids import Study as ids
from dashboard.pages.study.sweeps import MOST_SWEEPS, found_so_far, sweep_list
from dashboard.theme import counted

#: A study and its sweeps, as the API told them.
Asked = tuple[StudyRead, Page[SweepRead]]
#: For so long everybody who watches a study is told the same.
SHARED_SECONDS = 1.0
ASKED: Cache[Asked] = Cache(MOST_STUDIES, owner=asked_client)
SHOWN = ShownVersions()

tick_from(ids.INTERVAL, ids.TICK)


# The pulse tells when the study has ended, whatever page is open or hidden by then.
browser_callback(
    "function(paused, study) { return window.etascope.awaitStudy(study, paused); }",
    Output(ids.INTERVAL, "max_intervals"),
    Input(ids.INTERVAL, "disabled"),
    State(ids.ID, "data"),
)


def version(study: StudyRead) -> str:
    """Return a text that changes when the study's results do; while it runs, not too often."""
    counts = sorted(study.progress.items())
    newest = f"{study.sweep_ids} {counts} {study.state}"
    return SHOWN.of(study.id, newest, running=goes_on(study))


@callback(
    Output(ids.STATUS, "children"),
    Output(ids.STATE, "children"),
    Output(ids.SWEEPS, "children"),
    Output(ids.SWEEPS_MARK, "data"),
    Output(ids.VERSION, "data"),
    Output(ids.INTERVAL, "disabled"),
    Input(ids.TICK, "data"),
    Input(ids.DONE, "data"),
    State(ids.ID, "data"),
    State(ids.SWEEPS_MARK, "data"),
    running=answering(ids.TICK),
    prevent_initial_call=True,
)
async def follow(_tick: Any, _done: Any, study_id: int, known: str | None) -> tuple[Any, ...]:
    """Ask how far the study is; pictures follow when the version changed.

    The sweeps' buttons are replaced only when they change: not under somebody's finger. Nothing
    outside the page is changed: Dash would then call this when the page opens, and let the first
    picture wait for it.
    """
    visitor, (study, sweeps) = await asyncio.gather(get_visitor(), _just_now(study_id))
    running = goes_on(study)
    mark = sweeps_mark(sweeps.items)
    own = may_change(visitor, study)
    listed = no_update if mark == known else await sweeps_of(study, sweeps.items, own=own)
    return (
        status(study, sweeps.items, seen=True),
        state_badge(study.state),
        listed,
        mark,
        version(study),
        not running,
    )


async def _just_now(study_id: int) -> Asked:
    """Return a study and its sweeps; those of a running one may be a second old.

    Five people who watch would otherwise ask the same five times a tick, at the worker's expense.
    """

    async def asked() -> Asked:
        study, sweeps = await asyncio.gather(
            ask(calls.study(study_id)), ask(calls.sweeps(study_id, limit=MOST_SWEEPS))
        )
        return study, sweeps

    study, sweeps = await ASKED.get(study_id, now_in_steps(SHARED_SECONDS), asked)
    # One that has ended may just have been taken up again: then a second is too old.
    return (study, sweeps) if goes_on(study) else await asked()


async def sweeps_of(study: StudyRead, sweeps: Sequence[SweepRead], *, own: bool) -> list[Component]:
    """Return a study's sweeps, and how its series were trained."""
    return [*await sweep_list(sweeps, own=own), *trained_how(study.ways)]


def trained_how(ways: Sequence[WayRead]) -> list[Component]:
    """Return how series were trained and why, folded; nothing where there was no choice."""
    if not ways:
        return []
    trials = Counter[str]()
    for one in ways:
        trials[one.way] += one.trials
    short = ", ".join(f"{way}, {counted(number, 'trial')}" for way, number in trials.items())
    several = len({one.task for one in ways}) > 1
    lines = [
        html.Li(
            [
                html.B(f"{one.label} on {one.task}:" if several else f"{one.label}:"),
                f" {one.way}, {counted(one.trials, 'trial')}, because: {one.why}",
            ]
        )
        for one in ways
    ]
    summary = html.Summary(f"How they were trained: {short}", className="history-meta")
    return [html.Details([summary, html.Ul(lines)])]


def sweeps_mark(sweeps: Sequence[SweepRead]) -> str:
    """Return a text that changes whenever the list of sweeps would look different."""
    return str(
        [
            (one.id, str(one.state), one.cancelled, retriable(one.progress), one.reused)
            + ((found_so_far(one.search),) if one.search else ())
            for one in sweeps
        ]
    )


def status(
    study: StudyRead, sweeps: Sequence[SweepRead], *, seen: bool = False
) -> Component | None:
    """Return progress while there is any to report: a finished study needs no bar.

    Args:
        study: Which.
        sweeps: Its sweeps.
        seen: Whether somebody watches it; then the bar stays, filled: were it taken away, the
            picture would jump up from under the pointer.
    """
    if not study.total or (study.state == "completed" and not seen):
        return None
    left = [sweep.eta_seconds for sweep in sweeps if sweep.eta_seconds is not None]
    said = dict.fromkeys(message for sweep in sweeps for message in sweep.messages)
    return progress_panel(
        study.progress, study.total, eta=max(left, default=None), messages=list(said)
    )
