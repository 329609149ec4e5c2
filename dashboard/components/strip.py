"""The strip: what was tested of every series, on the rate axis of the picture below it.

Spans and marks carry the rates they stand for; the browser puts them where the picture's own axis
has those rates, at every zoom (`strip.js`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Literal

from backend.schemas import NumberRead, RateCellRead, ScorecardRow, StripRead
from dashboard.components.elements import explained, method_swatch
from dashboard.figures import series_name
from dashboard.formats import counted, number
from dashboard.markup import Component, html
from dashboard.theme import method_style, told_method

SpanState = Literal["good", "tested", "broken", "untried"]
#: More lanes than this are folded away: the picture comes first.
MOST_LANES = 8
#: Letters of a name that fit beside a lane; longer ones stand above it.
LONGEST_BESIDE = 8
KEY: tuple[tuple[SpanState, str, str], ...] = (
    ("good", "good", "Every seed sound, and within a tenth of what the best of all gains."),
    ("tested", "not good", "Fewer than half its seeds broke, but the loss is too high to be good."),
    ("broken", "broken", "Half its seeds or more diverged or ended above their initial loss."),
    ("untried", "never tried", "No rate in here was trained. Notches mark those that were."),
)
IN_WORDS: dict[SpanState, str] = {state: words for state, words, _ in KEY}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of rates in one state; None: to the end of the axis."""

    state: SpanState
    low: float | None
    high: float | None


def spans(strip: StripRead) -> list[Span]:
    """Return a lane from left to right, without holes.

    Neighbours in one state are one span, those in different states meet half-way between their
    rates; where the edge is looked for, and beyond the tested rates, nothing was tried.
    """
    cells = strip.cells
    if not cells:
        return [Span("untried", None, None)]
    first, last = _outer_ends(cells)
    found = [Span("untried", None, first)]
    begin = first
    for one, two in pairwise(cells):
        if strip.to_test == (one.lr, two.lr):
            found += [Span(one.state, begin, one.lr), Span("untried", one.lr, two.lr)]
            begin = two.lr
        elif one.state != two.state:
            middle = sqrt(one.lr * two.lr)
            found.append(Span(one.state, begin, middle))
            begin = middle
    return [*found, Span(cells[-1].state, begin, last), Span("untried", last, None)]


def _outer_ends(cells: Sequence[RateCellRead]) -> tuple[float, float]:
    """Half a step beyond the first and the last tested rate, as the picture's steps have them."""
    if len(cells) == 1:
        return cells[0].lr / 1.2, cells[0].lr * 1.2
    half = (cells[-1].lr / cells[0].lr) ** (0.5 / (len(cells) - 1))
    return cells[0].lr / half, cells[-1].lr * half


def strip_lanes(rows: Sequence[ScorecardRow], graph: str) -> list[Component]:
    """Return a lane for every series, and what the looks of a lane mean.

    Args:
        rows: The series.
        graph: The picture whose axis the lanes follow.
    """
    drawn = [row for row in rows if row.strip.cells]
    if not drawn:
        return []
    above = any(len(lane_name(row)) > LONGEST_BESIDE for row in drawn)
    look = "lanes named-above" if above else "lanes"
    lanes = html.Div([_lane(row) for row in drawn], className=look, role="list")
    whole = [_key(), lanes]
    if len(drawn) > MOST_LANES:
        words = f"What was tested, in {counted(len(drawn), 'lane')}"
        whole = [html.Details([html.Summary(words), *whole])]
    return [html.Div(whole, className="strip", **{"data-graph": graph})]


def _key() -> Component:
    states = [
        html.Span(
            [html.Span(className=f"key {state}"), explained(words, meaning)], className="key-item"
        )
        for state, words, meaning in KEY
    ]
    marks = [
        html.Span(
            [
                html.Span(className="key key-edge"),
                explained("edge", "Where half the seeds break, with its 95 % interval."),
            ],
            className="key-item",
        ),
        html.Span(
            [
                html.Span(className="key key-start"),
                explained("start at", "The tested rate to begin with."),
            ],
            className="key-item",
        ),
    ]
    return html.Div([*states, *marks], className="strip-key")


def _lane(row: ScorecardRow) -> Component:
    parts = [
        *(_span(one) for one in spans(row.strip)),
        *_edge(row.metrics.get("edge")),
        *(_notch(cell) for cell in row.strip.cells),
        *_start(row.metrics.get("start_at")),
    ]
    name = series_name(row, row.label)
    label = html.Span(
        [_swatch(row), html.Span(lane_name(row), className="lane-name")],
        className="lane-label",
        title=name,
    )
    track = html.Div(parts, className="track", role="img", **{"aria-label": spoken(row)})
    return html.Div([label, track], className="lane", role="listitem")


def lane_name(row: ScorecardRow) -> str:
    """Return a series' name, short enough for the room beside the picture."""
    _, _, rest = row.label.partition(", ")
    name = method_style(told_method(row.method, row.settings)).short
    return f"{name}, {rest}" if rest else name


def _swatch(row: ScorecardRow) -> Component:
    return method_swatch(row.method, imported=row.imported, clipped=row.clip is not None)


def _span(span: Span) -> Component:
    low, high = ("" if end is None else repr(end) for end in (span.low, span.high))
    return html.Span(className=f"span {span.state}", **{"data-from": low, "data-to": high})


def _notch(cell: RateCellRead) -> Component:
    seeds = counted(cell.n, "seed")
    words = f"{number(cell.lr)}: {IN_WORDS[cell.state]}, {cell.broke} of {seeds} broke"
    return html.Span(className="notch", **{"data-at": repr(cell.lr), "data-explanation": words})


def _edge(edge: NumberRead | None) -> list[Component]:
    if edge is None or edge.value is None:
        return []
    low = edge.low if edge.censored != "below" else None
    high = edge.high if edge.censored != "above" else None
    low, high = (
        edge.value if low is None and edge.censored == "above" else low,
        edge.value if high is None and edge.censored == "below" else high,
    )
    found = []
    if low is not None or high is not None:
        ends = {
            "data-from": "" if low is None else repr(low),
            "data-to": "" if high is None else repr(high),
        }
        found.append(html.Span(className="whisker", **ends))
    if edge.censored == "none":
        words = f"edge {edge.text} ({edge.interval})" if edge.interval else f"edge {edge.text}"
        at = {"data-at": repr(edge.value), "data-explanation": words}
        found.append(html.Span(className="edge", **at))
    return found


def _start(start: NumberRead | None) -> list[Component]:
    if start is None or start.value is None:
        return []
    at = {"data-at": repr(start.value), "data-explanation": f"start at {start.text}"}
    return [html.Span(className="start", **at)]


def spoken(row: ScorecardRow) -> str:
    """Return a lane in words, for who does not see it."""
    told = [f"{IN_WORDS[state]} at {rates}" for state, rates in _rates_by_state(row.strip)]
    if row.strip.to_test:
        low, high = row.strip.to_test
        told.append(f"never tried between {number(low)} and {number(high)}")
    for name in ("edge", "start_at"):
        one = row.metrics.get(name)
        if one is not None and one.value is not None:
            interval = f" ({one.interval})" if one.interval else ""
            told.append(f"{one.title.lower()} {one.text}{interval}")
    return f"{series_name(row, row.label)}: {'; '.join(told)}."


def _rates_by_state(strip: StripRead) -> list[tuple[SpanState, str]]:
    found: list[tuple[SpanState, str]] = []
    states: tuple[SpanState, ...] = ("good", "tested", "broken")
    for state in states:
        rates = [number(cell.lr) for cell in strip.cells if cell.state == state]
        if rates:
            found.append((state, ", ".join(rates)))
    return found
