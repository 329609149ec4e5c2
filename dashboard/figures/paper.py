"""The Paper page's own pictures: clipped minus unclipped, and the UCI tables.

Small curves for its matrix are sparklines; the curves themselves are `sensitivity`'s.
"""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from backend.schemas import (
    ClipPointRead,
    ClipRead,
    MethodNumbersRead,
    PaperRead,
    SeriesRead,
    Spark,
    SparkPoint,
    UciAccuracyRead,
)
from dashboard.figures.panels import rate_axis
from dashboard.figures.traces import scatter
from dashboard.theme import METHOD_STYLE, PALETTE, Scheme, faint, number, template

SPLITS = {"train_loss": "training loss, capped", "test_loss": "test loss"}
SOURCES = {"text": "text profile", "authors": "authors profile", "recorded": "recorded runs"}
#: Pixels of one table in the picture of all of them, and of what surrounds it.
ROW, AROUND = 13, 130
#: Not run, does not agree, agrees.
LETTERS = {"-": 0, "n": 1, "y": 2}
#: Room either side of a difference of 0, as a share of the largest.
ROOM = 1.15


def sparks(series: Sequence[SeriesRead]) -> list[Spark]:
    """Return curves as a sparkline takes them; recorded ones come last, so they are fainter."""
    ordered = sorted(series, key=lambda line: line.imported)
    return [
        Spark(
            method=line.method,
            label=line.label,
            points=[SparkPoint(lr=point.lr, mean=point.mean) for point in line.points],
        )
        for line in ordered
    ]


def edge_lines(rows: Sequence[MethodNumbersRead]) -> list[dict[str, Any]]:
    """Return a vertical line where half the seeds of a method break, as shapes of a figure."""
    return [
        {
            "type": "line",
            "xref": "x",
            "yref": "y domain",
            "x0": row.edge_value,
            "x1": row.edge_value,
            "y0": 0,
            "y1": 1,
            "line": {"color": METHOD_STYLE[row.method].colour, "width": 1.5, "dash": "dot"},
        }
        for row in rows
        if row.edge_value is not None and row.method in METHOD_STYLE
    ]


#: Pixels from the top that a title takes; the legend stands below it.
TITLE_LINE, TITLE_TWO_LINES = 38, 62


def clip_figure(
    found: Sequence[ClipRead], title: str, scheme: Scheme, *, narrow: bool
) -> go.Figure:
    """Return clipped minus unclipped, training and test: means with intervals, a dot a seed."""
    metrics = [name for name in SPLITS if any(one.metric == name for one in found)]
    places = {"rows": len(metrics), "cols": 1} if narrow else {"rows": 1, "cols": len(metrics)}
    figure = make_subplots(
        **places,
        subplot_titles=[SPLITS[name].capitalize() for name in metrics],
        horizontal_spacing=0.12,
        vertical_spacing=0.16,
    )
    rates = [point.lr for one in found for point in one.points]
    for place, metric in enumerate(metrics, 1):
        at = {"row": place, "col": 1} if narrow else {"row": 1, "col": place}
        own = [one for one in found if one.metric == metric]
        for one in own:
            for trace in _clip_traces(one, scheme, legend=place == 1):
                figure.add_trace(trace, **at)
        figure.add_hline(y=0, line={"color": PALETTE[scheme].reference, "width": 1}, **at)
        axis = rate_axis(rates, narrow=True)
        figure.update_xaxes(**axis, title_text="learning rate", **at)
        reach = ROOM * (_reach(own) or 1.0)
        figure.update_yaxes(range=[-reach, reach], tickformat="~g", **at)
    height = 800 if narrow else 420
    figure.update_layout(
        template=template(scheme),
        title={
            "text": title.replace(": ", "<br>") if narrow else title,
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
        },
        height=height,
        margin={"l": 64, "r": 16, "t": 150 if narrow else 110, "b": 56},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1 - (TITLE_TWO_LINES if narrow else TITLE_LINE) / height,
            "yref": "container",
            "yanchor": "top",
            "xanchor": "left",
        },
        meta={"label": f"{title}: {_clip_words(found)}"},
    )
    return figure


def _reach(found: Sequence[ClipRead]) -> float:
    """Return the largest difference, of a seed or in an interval: the axis holds it either way."""
    ends = (
        end
        for one in found
        for point in one.points
        for end in (*point.seeds, point.low, point.high)
    )
    return max((abs(end) for end in ends if end is not None), default=0.0)


def _clip_traces(one: ClipRead, scheme: Scheme, *, legend: bool) -> list[dict[str, Any]]:
    style = METHOD_STYLE[one.method]
    known = [point for point in one.points if point.mean is not None]
    dots = [(point.lr, gap) for point in one.points for gap in point.seeds if gap is not None]
    lost = [point for point in one.points if any(gap is None for gap in point.seeds)]
    return [
        scatter(
            x=[lr for lr, _ in dots],
            y=[gap for _, gap in dots],
            mode="markers",
            marker={"color": faint(style.colour, 0.4), "size": 6, "symbol": style.marker},
            hoverinfo="skip",
            showlegend=False,
        ),
        scatter(
            x=[point.lr for point in known],
            y=[point.mean for point in known],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [_arm(point.high, point.mean) for point in known],
                "arrayminus": [_arm(point.mean, point.low) for point in known],
                "thickness": 1.2,
                "width": 3,
            },
            mode="lines+markers",
            line={"color": style.colour, "dash": style.dash, "width": 2.2},
            marker={
                "color": style.colour,
                "symbol": style.marker,
                "size": 8,
                "line": {"color": style.ink(scheme), "width": 1},
            },
            name=f"{style.short}, clipped minus unclipped",
            text=[_clip_hover(point) for point in known],
            hovertemplate="%{text}<extra></extra>",
            showlegend=legend,
            meta=len(lost),
        ),
    ]


def _arm(one: float | None, two: float | None) -> float:
    return 0.0 if one is None or two is None else one - two


def _clip_hover(point: ClipPointRead) -> str:
    text = f"rate {number(point.lr)}: {number(point.mean)}"
    if point.low is not None and point.high is not None:
        text += f" ({number(point.low)} to {number(point.high)})"
    lost = sum(gap is None for gap in point.seeds)
    return text + f", {point.n} seeds" + (f", {lost} not finite" if lost else "")


def _clip_words(found: Sequence[ClipRead]) -> str:
    return "; ".join(
        f"{METHOD_STYLE[one.method].short}, {SPLITS[one.metric]}, at "
        + ", ".join(f"{number(point.lr)}: {number(point.mean)}" for point in one.points)
        for one in found
    )


def accuracy_figure(found: UciAccuracyRead, scheme: Scheme, *, narrow: bool) -> go.Figure:
    """Return a dot a table: EB's test accuracy against IB's, each at its best rate."""
    palette = PALETTE[scheme]
    names, ebs, ibs = zip(*found.tables, strict=True)
    figure = go.Figure(
        [
            scatter(
                x=[0, 100],
                y=[0, 100],
                mode="lines",
                line={"color": palette.reference, "dash": "dot", "width": 1},
                hoverinfo="skip",
                showlegend=False,
            ),
            scatter(
                x=ebs,
                y=ibs,
                mode="markers",
                marker={
                    "color": faint(METHOD_STYLE["ib"].colour, 0.55),
                    "size": 8,
                    "line": {"color": METHOD_STYLE["ib"].ink(scheme), "width": 1},
                },
                text=[
                    f"{name}: EB {eb:.1f} %, IB {ib:.1f} %"
                    for name, eb, ib in zip(names, ebs, ibs, strict=True)
                ],
                hovertemplate="%{text}<extra></extra>",
                showlegend=False,
            ),
        ]
    )
    low = 5 * math.floor(min(*ebs, *ibs) / 5) - 2
    above, below = (
        sum(ib > eb for eb, ib in zip(ebs, ibs, strict=True)),
        sum(ib < eb for eb, ib in zip(ebs, ibs, strict=True)),
    )
    words = f"IB higher on {above}, EB on {below}, equal on {len(ebs) - above - below}"
    figure.update_layout(
        template=template(scheme),
        title={"text": f"Test accuracy by table, {SOURCES[found.source]}<br><sub>{words}</sub>"},
        height=380 if narrow else 440,
        margin={"l": 56, "r": 16, "t": 72, "b": 52},
        xaxis={"title": {"text": "EB, %"}, "range": [low, 102]},
        yaxis={"title": {"text": "IB, %"}, "range": [low, 102]},
        meta={"label": f"Test accuracy of {len(ebs)} tables, EB against IB: {words}."},
    )
    return figure


def agreement_figure(paper: PaperRead, scheme: Scheme, *, narrow: bool) -> go.Figure:
    """Return every printed UCI loss, coloured by whether ours agrees: a row a table."""
    palette = PALETTE[scheme]
    rates = [number(row.lr) for row in paper.uci_cells]
    names = [table.dataset for table in paper.uci_tables]
    figure = make_subplots(
        rows=1,
        cols=2,
        shared_yaxes=True,
        subplot_titles=("EB", "IB"),
        horizontal_spacing=0.02,
    )
    colours = [[0, palette.grid], [0.5, "#d55e00"], [1, METHOD_STYLE["ib"].colour]]
    said = {0: "not run", 1: "does not agree", 2: "agrees"}
    for place, method in enumerate(("eb", "ib"), 1):
        values = [[LETTERS[one] for one in getattr(row, method)] for row in paper.uci_tables]
        figure.add_trace(
            go.Heatmap(
                z=values,
                x=rates,
                y=names,
                zmin=0,
                zmax=2,
                colorscale=colours,
                showscale=False,
                xgap=1,
                ygap=1,
                text=[[said[one] for one in row] for row in values],
                hovertemplate="%{y}, rate %{x}: %{text}<extra></extra>",
            ),
            row=1,
            col=place,
        )
    figure.update_xaxes(type="category", side="top", tickfont={"size": 10}, tickangle=-90)
    figure.update_yaxes(
        type="category", autorange="reversed", tickfont={"size": 9 if narrow else 10}, dtick=1
    )
    figure.update_annotations(y=1.0, yshift=44, font={"size": 13, "color": palette.text})
    agreeing = sum(row.agreeing for row in paper.uci_cells)
    figure.update_layout(
        template=template(scheme),
        height=ROW * len(names) + AROUND,
        margin={"l": 110 if narrow else 190, "r": 8, "t": 84, "b": 16},
        meta={
            "label": f"{agreeing} of {sum(row.cells for row in paper.uci_cells)} printed losses "
            f"on {len(names)} tables are met."
        },
    )
    return figure
