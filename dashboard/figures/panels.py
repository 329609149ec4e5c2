"""How the rail, the curves and the strip share a figure's height."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from dashboard.theme import RATE_AXIS, Palette

# Pixels
LANE, CROWDED_LANE, CAPTION, MAIN, STRIP, GAP = 22, 32, 17, 330, 64, 14
TITLE, TITLE_LINE, LEGEND_ROW, AXIS = 44, 18, 24, 52
LETTER, LEGEND_KEY, LABEL_GAP = 7, 48, 8
WIDE, PHONE = 640, 270


@dataclass(frozen=True, slots=True)
class Panels:
    """Three panels on one axis of learning rates.

    Attributes:
        lanes: Curves that have something on the rail.
        captions: Sentences written into the rail.
        legend: Names in the legend.
        narrow: Whether there is a phone's width only; then the legend goes below.
        crowded: Whether some lane has two markers above each other.
        title_lines: Of the title.
    """

    lanes: int
    captions: list[str] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)
    narrow: bool = False
    crowded: bool = False
    title_lines: int = 1

    @property
    def caption_lines(self) -> list[str]:
        """The captions by line."""
        together = [" · ".join(self.captions)] if self.captions else []
        return self.captions if self.narrow else together

    @property
    def legend_rows(self) -> int:
        """How many rows the legend will take."""
        return legend_rows(self.legend, narrow=self.narrow)

    @property
    def rail(self) -> int:
        """Height of the rail in pixels."""
        lanes = max(self.lanes, 0 if self.captions else 1)
        return self._lane * lanes + self._caption_height + 6

    @property
    def _lane(self) -> int:
        return CROWDED_LANE if self.crowded else LANE

    @property
    def _caption_height(self) -> int:
        return CAPTION * len(self.caption_lines)

    @property
    def inner(self) -> int:
        """Height of all panels together."""
        return self.rail + MAIN + GAP + STRIP

    def lay_out(self, figure: go.Figure, palette: Palette) -> None:
        """Set a figure's axes, margins, legend and rail."""
        inner = self.inner
        strip_top, main_low = STRIP / inner, (STRIP + GAP) / inner
        main_top = (STRIP + GAP + MAIN) / inner
        lanes = max(self.lanes, 1)
        above = self._caption_height / self._lane if self.lanes else 0
        legend = LEGEND_ROW * self.legend_rows
        top = TITLE + TITLE_LINE * (self.title_lines - 1) + (0 if self.narrow else legend)
        bottom = AXIS + (legend if self.narrow else 0)
        figure.update_layout(
            height=inner + top + bottom,
            margin={"l": 60 if self.narrow else 72, "r": 16, "t": top, "b": bottom},
            title={"y": 1, "yanchor": "top", "yref": "container", "pad": {"t": 12, "l": 4}},
            legend=self._legend(inner),
            hovermode="closest",
            clickmode="event",
            xaxis={"title": {"text": "learning rate"}, "anchor": "y3"},
            yaxis={"domain": [main_low, main_top], "anchor": "x"},
            yaxis2={
                "domain": [main_top, 1],
                "range": [-0.6, lanes - 0.4 + above],
                "fixedrange": True,
                "visible": False,
                "anchor": "x",
            },
            yaxis3={
                "domain": [0, strip_top],
                "range": [-0.04, 1.04],
                "tickvals": [0, 1],
                "title": {"text": "P(div.)", "font": {"size": 12}},
                "fixedrange": True,
                "anchor": "x",
                "showgrid": False,
            },
        )
        figure.add_shape(**ground(main_top, 1, palette.rail))
        if self.captions:
            figure.add_annotation(**_caption(self.caption_lines, palette))

    def _legend(self, inner: int) -> dict[str, Any]:
        place = (
            {"x": 0, "xanchor": "left", "y": -AXIS / inner, "yanchor": "top"}
            if self.narrow
            else {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
        )
        return {"orientation": "h", "itemdoubleclick": "toggleothers", **place}


def legend_rows(names: Sequence[str], *, narrow: bool) -> int:
    """Return how many rows a legend of these names will take."""
    if narrow:
        return len(names)
    rows, taken = 1, 0
    for name in names:
        width = LETTER * len(name) + LEGEND_KEY
        if taken and taken + width > WIDE:  # it begins the next row, whatever room is left in this
            rows, taken = rows + 1, 0
        taken += width
    return rows


def rate_range(rates: Sequence[float]) -> list[float]:
    """Return the ends of the axis of learning rates, as powers of ten."""
    logs = [math.log10(rate) for rate in rates]
    if not logs:
        return [-2.0, 2.0]
    margin = max(0.06 * (max(logs) - min(logs)), 0.15)
    return [min(logs) - margin, max(logs) + margin]


def rate_axis(rates: Sequence[float], *, narrow: bool) -> dict[str, Any]:
    """Return the axis of learning rates: a tick a decade, or as many as stand level beside it.

    Slanted, their labels would take the room of what stands below.
    """
    low, high = rate_range(rates)
    decades = range(math.ceil(low), math.floor(high) + 1)
    label = LETTER * max((len(f"{10.0**power:g}") for power in decades), default=0) + LABEL_GAP
    every = max(1, math.ceil(label * (high - low) / (PHONE if narrow else WIDE)))
    axis = {**RATE_AXIS, "range": [low, high], "tickangle": 0, "dtick": every}
    if every > 1:
        between = {"dtick": 1, "tick0": decades[-1]}
        axis |= {"tick0": decades[-1], "minor": {**RATE_AXIS["minor"], **between}}
    return axis


def ground(low: float, high: float, colour: str) -> dict[str, Any]:
    """Return the shade behind a rail, between two shares of the figure's height."""
    paper = {"xref": "paper", "yref": "paper", "x0": 0, "x1": 1, "y0": low, "y1": high}
    return {"type": "rect", **paper, "fillcolor": colour, "line": {"width": 0}, "layer": "below"}


def _caption(lines: Sequence[str], palette: Palette) -> dict[str, Any]:
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 0.005,
        "y": 1,
        "xanchor": "left",
        "yanchor": "top",
        "align": "left",
        "text": "<br>".join(lines),
        "showarrow": False,
        "font": {"size": 11, "color": palette.muted},
    }
