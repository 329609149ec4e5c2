"""The strip below: the share of diverged seeds against the learning rate, with its interval."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from backend.schemas import SeriesRead
from dashboard.figures.traces import scatter
from dashboard.figures.wording import diverged_words
from dashboard.formats import number
from dashboard.theme import SeriesStyle, faint


def strip_traces(
    line: SeriesRead, name: str, style: SeriesStyle, *, band: bool = True
) -> Iterator[Any]:
    """Yield a curve's divergence probability and its Wilson band, as steps around each rate."""
    points = line.points
    if not points:
        return
    group = {"legendgroup": line.id, "showlegend": False, "xaxis": "x", "yaxis": "y3"}
    edges = step_edges([point.lr for point in points])
    rates = [edge for pair in pairwise(edges) for edge in pair]
    if band:
        lows = [low for point in points for low in (point.diverged_low,) * 2]
        highs = [high for point in points for high in (point.diverged_high,) * 2]
        yield scatter(
            x=[*rates, *reversed(rates)],
            y=[*lows, *reversed(highs)],
            fill="toself",
            fillcolor=faint(style.colour, 0.07),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            meta="strip band",
            **group,
        )
    yield scatter(
        x=rates,
        y=[share for point in points for share in (point.diverged / max(point.n, 1),) * 2],
        mode="lines",
        line={"color": style.colour, "dash": style.dash, "width": 0.8 * style.width},
        hoverinfo="skip",
        meta="strip line",
        **group,
    )
    yield scatter(
        x=[point.lr for point in points],
        y=[point.diverged / max(point.n, 1) for point in points],
        mode="markers",
        marker={"size": 14, "color": "rgba(0,0,0,0)"},
        hovertext=[
            f"<b>{name}</b><br>learning rate {number(point.lr)}<br>{diverged_words(point)}"
            for point in points
        ],
        hoverinfo="text",
        meta="strip hover",
        **group,
    )


def step_edges(rates: Sequence[float]) -> list[float]:
    """Return where each rate's step begins and ends: half way to its neighbours in log rate."""
    logs = [math.log10(rate) for rate in rates]
    half = 0.25 if len(logs) < 2 else (logs[-1] - logs[0]) / (len(logs) - 1) / 2
    middles = [(left + right) / 2 for left, right in pairwise(logs)]
    return [10**edge for edge in (logs[0] - half, *middles, logs[-1] + half)]
