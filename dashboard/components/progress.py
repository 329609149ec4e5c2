"""How far trials are, in a bar and in words; and pages that follow them: when they ask again."""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.schemas import StudyRead
from dashboard.callbacks import browser_callback
from dashboard.components.elements import STATE_COLOUR
from dashboard.formats import count, counted, rough
from dashboard.markup import Component, dcc, html

#: In the order of the bar, from done to to do.
STATES = ("completed", "diverged", "failed", "cancelled", "running", "queued")
ENDED = ("completed", "diverged", "failed", "cancelled")
UNFINISHED = ("queued", "running")

NEWS = html.Button("Notify me when it ends", className="ask-for-news")


def unfinished(progress: Mapping[str, int]) -> int:
    """Return how many trials are still to end."""
    return sum(progress.get(state, 0) for state in UNFINISHED)


def goes_on(study: StudyRead) -> bool:
    """Return whether more will happen in a study: trials to end, or rounds of a search to come."""
    return unfinished(study.progress) > 0 or study.state == "running"


def ended(progress: Mapping[str, int]) -> int:
    """Return how many trials have ended, however they did."""
    return sum(progress.get(state, 0) for state in ENDED)


def retriable(progress: Mapping[str, int]) -> int:
    """Return how many trials could be run again."""
    return progress.get("failed", 0) + progress.get("cancelled", 0)


def progress_bar(progress: Mapping[str, int], total: int, *, size: str = "md") -> Component:
    """Return a bar whose sections are the states; its name says the same."""
    return dmc.ProgressRoot(
        [
            dmc.ProgressSection(
                value=100 * progress[state] / total,
                color=STATE_COLOUR[state],
                animated=state == "running",
                striped=state == "running",
                **{"aria-label": f"{progress[state]} {state}"},
            )
            for state in STATES[:-1]
            if progress.get(state) and total
        ],
        size=size,
        **{"aria-label": progress_words(progress, total)},
    )


def progress_words(progress: Mapping[str, int], total: int) -> str:
    """Return progress as a sentence."""
    done = f"{count(ended(progress))} of {counted(total, 'trial')} ended"
    told = [f"{count(progress[state])} {state}" for state in STATES[1:] if progress.get(state)]
    return ", ".join([done, *told])


def progress_panel(
    progress: Mapping[str, int],
    total: int,
    *,
    eta: float | None = None,
    messages: Sequence[str] = (),
) -> Component:
    """Return bar, words, the time that is left and what is in the way."""
    left = [html.Span(f"about {rough(eta)} left")] if eta is not None else []
    return html.Div(
        [
            progress_bar(progress, total),
            html.Div(
                [
                    html.Span(progress_words(progress, total)),
                    *left,
                    *(html.Span(message) for message in messages),
                    *([NEWS] if unfinished(progress) else []),
                ],
                className="progress-words",
            ),
        ],
        role="status",
    )


def busy_id(tick: str) -> str:
    """Return the id of what holds whether the answer to a tick is still to come."""
    return f"{tick}-busy"


def tick_stores(tick: str) -> list[Component]:
    """Return what a page that ticks keeps: the last tick, and whether its answer is to come."""
    return [dcc.Store(id=tick), dcc.Store(id=busy_id(tick))]


def tick_from(interval: str, tick: str) -> None:
    """Let a page tick with an interval, while it is looked at and nobody waits for an answer.

    Dash throws an answer away when the same question is asked again before it is there: where
    answers take longer than the interval, none would ever be shown.
    """
    browser_callback(
        "function(count, busy, asked) { return window.etascope.nextTick(count, busy, asked); }",
        Output(tick, "data"),
        Input(interval, "n_intervals"),
        State(busy_id(tick), "data"),
        State(tick, "data"),
        prevent_initial_call=True,
    )


def answering(tick: str) -> list[tuple[Any, bool, bool]]:
    """Return the `running` of the callback that answers the ticks."""
    return [(Output(busy_id(tick), "data"), True, False)]
