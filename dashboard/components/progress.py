"""How far trials are: a bar by state, and the same in words."""

from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc

from dashboard.components.elements import STATE_COLOUR
from dashboard.formats import count, counted, rough
from dashboard.markup import Component, html

#: In the order of the bar, from done to to do.
STATES = ("completed", "diverged", "failed", "cancelled", "running", "queued")
ENDED = ("completed", "diverged", "failed", "cancelled")
UNFINISHED = ("queued", "running")

NEWS = html.Button("Notify me when it ends", className="ask-for-news")


def unfinished(progress: Mapping[str, int]) -> int:
    """Return how many trials are still to end."""
    return sum(progress.get(state, 0) for state in UNFINISHED)


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
