"""A page that follows something: how often it asks, and that it waits for the answer."""

from typing import Any

from dash import Input, Output, State

from dashboard.callbacks import browser_callback
from dashboard.markup import Component, dcc


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
