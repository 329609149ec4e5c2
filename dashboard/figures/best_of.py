"""What a search can expect: the best of k rates drawn at random, against k."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import BestOfRead, ScorecardRow
from dashboard.figures.panels import AXIS, LEGEND_ROW, TITLE, TITLE_LINE, legend_rows
from dashboard.figures.sensitivity import Picture, styles_of
from dashboard.figures.traces import scatter
from dashboard.figures.wording import (
    QUANTITY,
    literal,
    series_name,
    title_lines,
    title_words,
)
from dashboard.formats import number
from dashboard.theme import SeriesStyle, faint, template

PANEL = 400
DRAWN = "expected best of k rates, with its 95 % interval"


def best_of_figure(rows: Sequence[ScorecardRow], picture: Picture) -> go.Figure:
    """Return the expected best of k = 1 to 20 rates of every series, with its band.

    Args:
        rows: The series, in the order of the legend.
        picture: How to draw them.
    """
    drawn = [row for row in rows if _known(row)]
    figure = go.Figure(layout={"template": template(picture.scheme)})
    styles = styles_of(drawn, picture.scheme, picture.family)
    for row in drawn:
        figure.add_traces(list(_traces(row, styles[row.id])))
    title = title_words(picture.title, DRAWN, narrow=picture.narrow)
    legend = LEGEND_ROW * legend_rows(
        [trace.name for trace in figure.data if trace.showlegend is not False],
        narrow=picture.narrow,
    )
    above = TITLE + TITLE_LINE * (title_lines(title) - 1) + (0 if picture.narrow else legend)
    below = AXIS + (legend if picture.narrow else 0)
    place = {"y": -AXIS / PANEL, "yanchor": "top"} if picture.narrow else {"yanchor": "bottom"}
    figure.update_layout(
        height=PANEL + above + below,
        margin={"l": 60 if picture.narrow else 72, "r": 16, "t": above, "b": below},
        title={"text": title, "y": 1, "yref": "container", "yanchor": "top"},
        title_pad={"t": 12, "l": 4},
        legend={"orientation": "h", "x": 0, "y": 1, **place},
        hovermode="closest",
        meta={"label": _spoken(drawn, picture), "rates": False},
        uirevision=picture.revision or "same",
        xaxis={
            "title": {"text": "k, rates tried at random"},
            "tickvals": [1, 5, 10, 15, 20],
            "range": [0.5, 20.5],
        },
        yaxis=_y_axis(drawn, picture),
    )
    return figure


def quantity_words(picture: Picture) -> str:
    """Return what is lower if better: a loss, or what an accuracy lacks to 1."""
    return QUANTITY[picture.metric].replace("accuracy", "error")


def _y_axis(rows: Sequence[ScorecardRow], picture: Picture) -> dict[str, Any]:
    title = {"text": f"expected best {quantity_words(picture)}"}
    values = [one.value for row in rows for one in _known(row) if one.value is not None]
    if picture.scale == "log" and values and min(values) > 0:
        low, high = math.log10(min(values)), math.log10(max(values))
        margin = 0.08 * (high - low) or 0.1
        tick = 1 if high - low > 1 else "D2"
        ends = [low - margin, high + margin]
        return {"title": title, "type": "log", "tickformat": "~g", "dtick": tick, "range": ends}
    return {"title": title, "rangemode": "tozero" if picture.scale == "full" else "normal"}


def _known(row: ScorecardRow) -> list[BestOfRead]:
    return [one for one in row.best_of if one.value is not None]


def _traces(row: ScorecardRow, style: SeriesStyle) -> Iterator[Any]:
    found = _known(row)
    name = literal(series_name(row, row.label))
    banded = [one for one in found if one.low is not None and one.high is not None]
    if len(banded) > 1:
        ks = [one.k for one in banded]
        yield scatter(
            x=[*ks, *reversed(ks)],
            y=[*(one.low for one in banded), *(one.high for one in reversed(banded))],
            fill="toself",
            fillcolor=faint(style.colour, 0.16),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=row.id,
            meta="band",
        )
    yield scatter(
        x=[one.k for one in found],
        y=[one.value for one in found],
        mode="lines+markers",
        name=name,
        line={"color": style.colour, "dash": style.dash, "width": style.width},
        marker={"symbol": style.marker, "size": 6, "color": style.colour},
        hovertext=[_hover(name, one) for one in found],
        hoverinfo="text",
        legendgroup=row.id,
        meta="best of k",
    )


def _hover(name: str, one: BestOfRead) -> str:
    lines = [f"<b>{name}</b>", f"best of {one.k}: {number(one.value)}"]
    if one.low is not None and one.high is not None:
        lines.append(f"95 %: {number(one.low)} to {number(one.high)}")
    return "<br>".join(lines)


def _spoken(rows: Sequence[ScorecardRow], picture: Picture) -> str:
    told = []
    for row in rows:
        by_k = {one.k: number(one.value) for one in _known(row)}
        said = ", ".join(f"best of {k} {by_k[k]}" for k in (1, 3, 10, 20) if k in by_k)
        told.append(f"{series_name(row, row.label)}, {said}")
    return f"Expected best {quantity_words(picture)} of k rates: {'; '.join(told) or 'no curve'}."
