"""The robustness numbers of a study: value, interval and n, each with its definition."""

import json
from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.schemas import NumberRead, ScorecardRow
from dashboard.callbacks import browser_callback
from dashboard.components.elements import explained, method_swatch
from dashboard.markup import Component, dcc, html
from dashboard.theme import method_style, told_method

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
