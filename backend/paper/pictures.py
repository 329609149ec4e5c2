"""The report's pictures, in every variant a reader may need: light and dark, wide and narrow."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from backend.schemas import SeriesRead
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.theme import METHOD_STYLE, PALETTE, Scheme, template
from ib_core.metrics import MetricValue
from ib_core.reproduction import TableNumbers

SCHEMES: tuple[Scheme, ...] = ("light", "dark")
#: By scheme, then by width: plotly's JSON without the template, which all share.
Variants = dict[str, dict[str, Any]]
#: Six digits draw the same picture in half the bytes.
DIGITS = 6


def curve_picture(
    series: Sequence[SeriesRead], title: str, *, initial: float | None = None
) -> Variants:
    """Return loss against learning rate, as the Study page draws it."""
    threshold = next((line.threshold for line in series if line.threshold is not None), None)

    def draw(scheme: Scheme, narrow: bool) -> go.Figure:
        picture = Picture(title=title, scheme=scheme, narrow=narrow, seeds=True)
        return sensitivity_figure(series, picture, threshold=threshold, initial=initial)

    return _variants(draw)


def tables_picture(rows: Sequence[TableNumbers]) -> Variants:
    """Return every method's robust range and headroom over all UCI tables."""
    return _variants(lambda scheme, narrow: _tables_figure(rows, scheme, narrow))


def templates() -> dict[str, Any]:
    """Return what all pictures of a scheme share."""
    return {scheme: _plain(template(scheme).to_plotly_json()) for scheme in SCHEMES}


def _variants(draw: Callable[[Scheme, bool], go.Figure]) -> Variants:
    return {
        scheme: {width: _lean(draw(scheme, width == "narrow")) for width in ("wide", "narrow")}
        for scheme in SCHEMES
    }


def _lean(figure: go.Figure) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(figure.to_json())
    content["layout"].pop("template", None)
    for trace in content["data"]:  # what only the dashboard's clicks need
        trace.pop("customdata", None)
        trace.pop("meta", None)
    found: dict[str, Any] = _rounded(content)
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda item: item.to_plotly_json()))


def methods_of(rows: Sequence[TableNumbers]) -> list[str]:
    """Return the methods in the order every picture shows them."""
    return [name for name in METHOD_STYLE if any(row.method == name for row in rows)]


#: Ticks as the grid of rates goes, 1 and 3 a decade: headroom is a ratio of two of them.
_ONE_AND_THREE = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 3)]


def _tables_figure(rows: Sequence[TableNumbers], scheme: Scheme, narrow: bool) -> go.Figure:
    palette = PALETTE[scheme]
    titles = ("Robust range, decades of rate", "Headroom over EB, times")
    grid = {"rows": 2, "cols": 1} if narrow else {"rows": 1, "cols": 2}
    figure = make_subplots(**grid, subplot_titles=titles, vertical_spacing=0.16)
    for method in methods_of(rows):
        own = [row for row in rows if row.method == method]
        ranges, times = [row.robust_range for row in own], [row.headroom for row in own]
        figure.add_trace(_box(own, ranges, method, scheme), row=1, col=1)
        if method != "eb":
            place = {"row": 2, "col": 1} if narrow else {"row": 1, "col": 2}
            figure.add_trace(_box(own, times, method, scheme), **place)
    figure.update_layout(
        template=template(scheme),
        showlegend=False,
        height=760 if narrow else 460,
        margin={"t": 48, "l": 48, "r": 16, "b": 48},
        yaxis2={"type": "log", "tickvals": _ONE_AND_THREE, "tickformat": "~g"},
    )
    figure.update_annotations(font={"size": 14, "color": palette.text})
    return figure


def _box(
    rows: Sequence[TableNumbers], values: Sequence[MetricValue], method: str, scheme: Scheme
) -> go.Box:
    """Return one method's box with a dot a table; a bound is drawn at its value and says so."""
    style = METHOD_STYLE[method]
    known = [
        (row, value) for row, value in zip(rows, values, strict=True) if value.value is not None
    ]
    return go.Box(
        y=[value.value for _, value in known],
        x=[style.short] * len(known),
        name=style.short,
        text=[f"{row.dataset}: {value.text}" for row, value in known],
        hovertemplate="%{text}<extra></extra>",
        boxpoints="all",
        jitter=0.6,
        pointpos=0,
        marker={"color": style.colour, "size": 4, "opacity": 0.5},
        line={"color": style.ink(scheme), "width": 1.6},
        fillcolor="rgba(0,0,0,0)",
        showlegend=False,
    )
