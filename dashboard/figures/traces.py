"""Traces as plain data: what all figures are made of, and what stands where there is none yet."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dashboard.figures.scale import Floats, Scale
from dashboard.theme import faint

Trace = dict[str, Any]

#: More curves than this in one picture of losses by step could not be told apart.
MOST_OPENED = 20
#: More seeds than this in a picture are drawn as dashes.
MOST_DOTS = 1500
#: Half a dash as a share of the axis of rates; its height, two pixels, as one of the y axis.
HALF_WIDTH, DASH_HEIGHT = 0.004, 0.006
#: What a click on a folded rail opens: the rail.
OPEN_RAIL = "rail"
#: What stands where a picture will be: no axes that mean nothing.
NOTHING_YET: dict[str, Any] = {
    "data": [],
    "layout": {
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    },
}


def scatter(**properties: Any) -> Trace:
    """Return a scatter trace.

    A figure checks what it is given; a `go.Scatter` would be checked before and copied besides,
    which takes half of the time of pictures that follow a slider.
    """
    return {"type": "scatter", **properties}


def opens(trials: Iterable[int]) -> str:
    """Return what a click on a point opens, as the address has it: at most `MOST_OPENED` trials."""
    return ",".join(map(str, islice(trials, MOST_OPENED)))


def dashes(
    dots: Sequence[tuple[float, float]], scale: Scale, colour: str, **properties: Any
) -> list[Trace]:
    """Return dots of (rate, value) as one trace, or none; dashes that touch are one bar.

    Thousands of dots would be thousands of elements of the page, and take a browser half a second
    to draw; the dashes are one. WebGL is no way out: it fails as a whole where it is missing or
    forbidden.
    """
    known = np.array(dots, dtype=np.float32).reshape(-1, 2)
    shown = known[(known[:, 1] <= scale.high) & (known[:, 1] >= scale.low)]
    if not shown.size:
        return []
    rates, lows, highs = _bars(shown, scale)
    half = 10 ** (HALF_WIDTH * (math.log10(rates.max() / rates.min()) or 1.0))
    bottom, top = scale.moved(lows, -DASH_HEIGHT / 2), scale.moved(highs, DASH_HEIGHT / 2)
    left, right, gap = rates / half, rates * half, np.full_like(rates, np.nan)
    trace = scatter(
        # Arrays travel as base64: a third of the text, and nothing to parse number by number.
        x=np.column_stack([left, left, right, right, gap]).ravel(),
        y=np.column_stack([bottom, top, top, bottom, gap]).ravel(),
        # A line with gaps would be an element a stretch; the areas of a fill are one.
        mode="none",
        fill="toself",
        fillcolor=faint(colour, 0.45),
        line={"simplify": False},
        hoverinfo="skip",
        showlegend=False,
        **properties,
    )
    return [trace]


def _bars(dots: Floats, scale: Scale) -> tuple[Floats, Floats, Floats]:
    """Return rate, lowest and highest value of every run of dots that are a dash apart or less."""
    ordered = dots[np.lexsort((dots[:, 1], dots[:, 0]))]
    rates, values = ordered.T
    apart = np.abs(np.diff(scale.shares(values))) > DASH_HEIGHT
    first = np.flatnonzero(np.concatenate([[True], apart | (np.diff(rates) != 0)]))
    last = np.concatenate([first[1:], [len(values)]]) - 1
    return rates[first], values[first], values[last]
