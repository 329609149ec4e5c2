"""Thousands of seeds in one picture: short dashes, all of them one element of the page.

Thousands of dots would be thousands of elements, and take a browser half a second to draw. WebGL
is no way out: it fails as a whole where it is missing or forbidden.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dashboard.figures.scale import Floats, Scale
from dashboard.figures.traces import Trace, scatter
from dashboard.theme import faint

#: More seeds than this in a picture are drawn as dashes.
MOST_DOTS = 1500
#: Half a dash as a share of the axis of rates; its height, two pixels, as one of the y axis.
HALF_WIDTH, HEIGHT = 0.004, 0.006


def dashes(
    dots: Sequence[tuple[float, float]], scale: Scale, colour: str, **properties: Any
) -> list[Trace]:
    """Return dots of (rate, value) as one trace, or none; dashes that touch are one bar."""
    known = np.array(dots, dtype=np.float32).reshape(-1, 2)
    shown = known[(known[:, 1] <= scale.high) & (known[:, 1] >= scale.low)]
    if not shown.size:
        return []
    rates, lows, highs = _bars(shown, scale)
    half = 10 ** (HALF_WIDTH * (math.log10(rates.max() / rates.min()) or 1.0))
    bottom, top = scale.moved(lows, -HEIGHT / 2), scale.moved(highs, HEIGHT / 2)
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
    apart = np.abs(np.diff(scale.shares(values))) > HEIGHT
    first = np.flatnonzero(np.concatenate([[True], apart | (np.diff(rates) != 0)]))
    last = np.concatenate([first[1:], [len(values)]]) - 1
    return rates[first], values[first], values[last]
