"""Thousands of seeds in one picture: short dashes, all of them one element of the page.

Thousands of dots would be thousands of elements, and take a browser half a second to draw. WebGL
is no way out: it fails as a whole where it is missing or forbidden.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dashboard.figures.scale import Scale
from dashboard.figures.traces import Trace, scatter
from dashboard.theme import faint

#: More seeds than this in a picture are drawn as dashes.
MOST_DOTS = 1500
#: Half a dash as a share of the axis of rates; a pixel, also half its height, of the y axis.
HALF_WIDTH, PIXEL = 0.005, 0.006


def dashes(
    dots: Sequence[tuple[float, float]], scale: Scale, colour: str, **properties: Any
) -> list[Trace]:
    """Return dots of (rate, value) as one trace, or none; dots within a pixel share a dash."""
    known = np.array(dots, dtype=np.float32).reshape(-1, 2)
    shown = known[(known[:, 1] <= scale.high) & (known[:, 1] >= scale.low)]
    if not shown.size:
        return []
    places = np.column_stack([shown[:, 0], np.round(scale.shares(shown[:, 1]) / PIXEL)])
    rates, values = shown[np.unique(places, axis=0, return_index=True)[1]].T
    half = 10 ** (HALF_WIDTH * (math.log10(rates.max() / rates.min()) or 1.0))
    above, below = scale.moved(values, PIXEL), scale.moved(values, -PIXEL)
    gap = np.full_like(rates, np.nan)
    trace = scatter(
        # Arrays travel as base64: a third of the text, and nothing to parse number by number.
        x=np.column_stack([rates / half, rates, rates * half, rates, gap]).ravel(),
        y=np.column_stack([values, above, values, below, gap]).ravel(),
        # A line with gaps would be an element a stretch; the areas of a fill are one.
        mode="none",
        fill="toself",
        fillcolor=faint(colour, 0.55),
        line={"simplify": False},
        hoverinfo="skip",
        showlegend=False,
        **properties,
    )
    return [trace]
