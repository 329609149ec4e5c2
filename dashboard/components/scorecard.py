"""The robustness numbers of a study, and the strip: what was tested of every series.

Spans and marks carry the rates they stand for; the browser puts them where the picture's own axis
has those rates, at every zoom (`strip.js`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Literal

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.schemas import NumberRead, RateCellRead, ScorecardRow, StripRead
from dashboard.components.elements import explained, method_swatch
from dashboard.dash_blocks import Component, browser_callback, dcc, html
from dashboard.figures import series_name
from dashboard.theme import counted, method_style, number, told_method

#: On the short card; the others appear with "More".
SHORT = ("edge", "headroom", "start_at", "best_mean", "price", "lr_sensitivity")
#: Said beside a number's name; that a rate is a rate is in the name already.
UNITS = ("times",)
BETTER = {"higher": ("↑", "higher is better"), "lower": ("↓", "lower is better")}
ON_TEST = "Chosen on test."
ALL = "all"


def scorecard_table(rows: Sequence[ScorecardRow]) -> Component:
    """Return the numbers with their intervals, a row each, a column a curve."""
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    ordered = [name for name in SHORT if name in names]
    ordered += [name for name in names if name not in SHORT]
    head = html.Tr(
        [
            html.Td(""),
            *(html.Th([_swatch(row), column_name(row)], scope="col") for row in rows),
        ]
    )
    body = [
        html.Tr(
            [_title(name, rows), *(_cell(row.metrics.get(name)) for row in rows)],
            className="" if name in SHORT else "further",
        )
        for name in ordered
    ]
    table = html.Table(
        [
            html.Caption("Robustness numbers", className="visually-hidden"),
            html.Thead(head),
            html.Tbody(body),
        ],
        className="table scorecard",
    )
    return html.Div(
        table, className="scroll fading", tabIndex=0, role="region", **{"aria-label": "Scorecard"}
    )


def _swatch(row: ScorecardRow) -> Component:
    return method_swatch(row.method, imported=row.imported, clipped=row.clip is not None)


def column_name(row: ScorecardRow) -> str:
    """Return a series' name in the head of the table."""
    _, _, rest = row.label.partition(", ")
    method = told_method(row.method, row.settings)
    name = method_style(method).short + (" (imported)" if row.imported else "")
    return f"{name}, {rest}" if rest else name


def _title(name: str, rows: Sequence[ScorecardRow]) -> Component:
    metric = next(row.metrics[name] for row in rows if name in row.metrics)
    unit = f" ({metric.unit})" if metric.unit in UNITS else ""
    said = [explained(f"{metric.title}{unit}", metric.definition)]
    if metric.better in BETTER:
        arrow, words = BETTER[metric.better]
        said += [
            html.Span(f" {arrow}", className="direction", **{"aria-hidden": "true"}),
            html.Span(f", {words}", className="visually-hidden"),
        ]
    return html.Th(said, scope="row")


def _cell(metric: NumberRead | None) -> Component:
    """Return a number and how many seeds are behind it; below, in small type, its interval."""
    if metric is None:
        return html.Td("–")
    if metric.value is None:
        text = "not measured" if metric.note.startswith("Not measured") else metric.text or "–"
        note = "" if metric.note.startswith(text.capitalize()) else metric.note
        return html.Td(explained(text, note) if note else text)
    on_test = ON_TEST in metric.note
    note = metric.note.replace(ON_TEST, "").strip()
    value = explained(metric.text, note) if note else html.Span(metric.text)
    beside = html.Span(f" n {metric.n}", className="seeds-behind")
    below = [html.Span(metric.interval, className="interval")] if metric.interval else []
    if on_test:
        below.append(html.Span("chosen on test", className="interval on-test"))
    return html.Td([value, beside, *below])


def more_numbers(chosen: str, button: str, store: str, place: str) -> Component:
    """Return the button that shows all numbers, and the store that the address mirrors.

    Args:
        chosen: What the address says.
        button: Its id.
        store: Of what is chosen.
        place: Id of what holds the table.
    """
    words = "Fewer numbers" if chosen == ALL else "More numbers"
    return html.Div(
        [
            dcc.Store(id=store, data=chosen),
            dmc.Button(
                words,
                id=button,
                variant="subtle",
                size="compact-sm",
                n_clicks=0,
                **{"aria-expanded": str(chosen == ALL).lower(), "aria-controls": place},
            ),
        ]
    )


def show_more_from(button: str, store: str, place: str) -> None:
    """Let a button show and hide what the short card leaves out."""
    short, every = json.dumps("short"), json.dumps(ALL)
    browser_callback(
        f"function(_clicks, now) {{ return now === {every} ? {short} : {every}; }}",
        Output(store, "data"),
        Input(button, "n_clicks"),
        State(store, "data"),
        prevent_initial_call=True,
    )
    browser_callback(
        f"function(now) {{ const all = now === {every};"
        " return ['filled plain-elements ' + (all ? 'all-numbers' : 'short-numbers'),"
        " all ? 'Fewer numbers' : 'More numbers', String(all)]; }",
        Output(place, "className"),
        Output(button, "children"),
        Output(button, "aria-expanded"),
        Input(store, "data"),
    )


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
