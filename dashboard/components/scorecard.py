"""The robustness numbers of a study, each with its definition, and the advice in words."""

from collections.abc import Sequence

from backend.schemas import MetricRead, ScorecardRow
from dashboard.components.elements import explained, method_swatch
from dashboard.figures import series_name
from dashboard.formats import number, percent
from dashboard.markup import Component, html
from dashboard.theme import method_style

#: Shown in this order; what else the API sends comes after them.
ORDER = (
    "best_lr",
    "best_mean",
    "divergence_rate",
    "headroom",
    "robust_range",
    "largest_stable_lr",
    "lr_sensitivity_normalised",
    "better_than_eb",
)
#: In the API and the exports; too much for a column beside the picture.
LEFT_OUT = (
    "divergence_threshold",
    "divergence_rate_interpolated",
    "robust_low",
    "robust_high",
    "lr_sensitivity",
)
#: Said beside a number's name; that a rate is a rate is in the name already.
UNITS = ("decades", "times")
BOUND = {"above": "≥\u202f", "below": "≤\u202f", "none": ""}


def advice(rows: Sequence[ScorecardRow]) -> list[Component]:
    """Return which learning rates to use, a sentence a curve."""
    return [
        html.P(
            [
                html.Span(_swatch(row)),
                html.Span([html.B(f"{series_name(row, row.label)}: "), row.recommendation]),
            ],
            className="advice",
        )
        for row in rows
        if row.recommendation
    ]


def scorecard_table(rows: Sequence[ScorecardRow]) -> Component:
    """Return the numbers with their intervals, a row each, a column a curve."""
    names = _names(rows)
    head = html.Tr(
        [
            html.Th("", scope="col"),
            *(html.Th([_swatch(row), _short(row)], scope="col") for row in rows),
        ]
    )
    body = [
        html.Tr([_title(name, rows), *(_cell(name, row.metrics.get(name)) for row in rows)])
        for name in names
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


def _names(rows: Sequence[ScorecardRow]) -> list[str]:
    sent = list(dict.fromkeys(name for row in rows for name in row.metrics))
    rest = [name for name in sent if name not in ORDER and name not in LEFT_OUT]
    return [name for name in ORDER if name in sent] + rest


def _swatch(row: ScorecardRow) -> Component:
    return method_swatch(row.method, imported=row.imported, clipped=row.clip is not None)


def _short(row: ScorecardRow) -> str:
    _, _, rest = row.label.partition(", ")
    name = method_style(row.method).short + (" (imported)" if row.imported else "")
    return f"{name}, {rest}" if rest else name


def _title(name: str, rows: Sequence[ScorecardRow]) -> Component:
    metric = next(row.metrics[name] for row in rows if name in row.metrics)
    unit = f" ({metric.unit})" if metric.unit in UNITS else ""
    source = f" Source: {metric.citation}." if metric.citation else ""
    budget = name.removeprefix("expected_best_of_")
    title = f"{metric.title or name.replace('_', ' ')}{unit}".replace("of k", f"of {budget}")
    return html.Th(explained(title, f"{metric.definition}{source}"), scope="row")


def _cell(name: str, metric: MetricRead | None) -> Component:
    """Return a number with its interval below it."""
    if metric is None:
        return html.Td("–")
    if metric.value is None:
        return html.Td(explained("–", metric.note) if metric.note else "–")
    text, interval = _value(name, metric), _interval(metric)
    said = " ".join(filter(None, [f"95 %: {interval}." if interval else "", metric.note]))
    value = explained(text, said) if said else html.Span(text)
    below = [html.Span(interval, className="interval")] if interval else []
    return html.Td([value, *below])


def _value(name: str, metric: MetricRead) -> str:
    if name == "overhead":
        return percent(metric.value)
    if metric.unit.startswith("yes"):
        return "yes" if metric.value else "no"
    return f"{BOUND[metric.censored]}{number(metric.value)}"


def _interval(metric: MetricRead) -> str:
    if metric.low is None and metric.high is None:
        return ""
    low = number(metric.low) if metric.low is not None else "…"
    high = number(metric.high) if metric.high is not None else "…"
    return "" if low == high else f"{low} to {high}"
