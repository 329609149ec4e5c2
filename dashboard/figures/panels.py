"""How the rail, the curves and the strip share a figure's height, and small multiples its area."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import plotly.graph_objects as go

from dashboard.theme import METHOD_STYLE, RATE_AXIS, Palette, counted

# Pixels
LANE, CROWDED_LANE, CAPTION, MAIN, STRIP, GAP = 22, 32, 17, 330, 64, 14
TITLE, TITLE_LINE, LEGEND_ROW, AXIS = 44, 18, 24, 52
LETTER, TITLE_LETTER, BOLD_LETTER, LEGEND_KEY, LABEL_GAP = 7, 7.8, 8.6, 48, 8
WIDE, PHONE = 640, 270
HEAD, BETWEEN, TICKS = 24, 12, 26
#: A legend of more rows than this stands below the picture, where it meets no title.
MOST_ROWS_ABOVE = 2


@dataclass(frozen=True, slots=True)
class Panels:
    """Three panels on one axis of learning rates.

    Attributes:
        lanes: Curves that have something on the rail.
        captions: Sentences written into the rail.
        legend: Names in the legend.
        narrow: Whether there is a phone's width only; then the legend goes below, as do long ones.
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
    def legend_below(self) -> bool:
        """Whether the legend stands under the picture."""
        return self.narrow or self.legend_rows > MOST_ROWS_ABOVE

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
        top = TITLE + TITLE_LINE * (self.title_lines - 1) + (0 if self.legend_below else legend)
        bottom = AXIS + (legend if self.legend_below else 0)
        figure.update_layout(
            height=inner + top + bottom,
            margin={"l": 60 if self.narrow else 72, "r": 16, "t": top, "b": bottom},
            title=title_place(self.title_lines),
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
            if self.legend_below
            else {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
        )
        return {"orientation": "h", "itemdoubleclick": "toggleothers", **place}


@dataclass(frozen=True, slots=True)
class Grid:
    """Small multiples: panels of one size in rows and columns.

    Attributes:
        titles: One a panel.
        height: Of a panel, in pixels.
        columns: Beside each other.
        apart: Whether every panel has ticks and an axis title of its own.
        narrow: Whether there is a phone's width only.
        first: Number of the first panel's axes.
        above: Pixels above all panels, inside the plotting area, for something else.
    """

    titles: list[str]
    height: int
    columns: int
    apart: bool = False
    narrow: bool = False
    first: int = 1
    above: int = 0

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return math.ceil(len(self.titles) / self.columns)

    @property
    def _step(self) -> int:
        return HEAD + self.height + BETWEEN + (TICKS + 22 if self.apart else 0)

    @property
    def inner(self) -> int:
        """Height of all that is drawn, in pixels."""
        return self.above + self.rows * self._step

    def suffix(self, panel: int) -> str:
        """Return what a panel's axes are called after "x" and "y"."""
        number = self.first + panel
        return "" if number == 1 else str(number)

    def domain(self, panel: int) -> tuple[list[float], list[float]]:
        """Return where a panel lies, as shares of the plotting area, x then y."""
        row, column = divmod(panel, self.columns)
        gap = (0.16 if self.narrow else 0.1) if self.apart else 0.035
        width = (1 - gap * (self.columns - 1)) / self.columns
        left = column * (width + gap)
        top = 1 - (self.above + row * self._step + HEAD) / self.inner
        return [left, left + width], [top - self.height / self.inner, top]

    def lowest(self, panel: int) -> bool:
        """Whether there is no panel below."""
        return panel + self.columns >= len(self.titles)

    def lay_out(
        self, figure: go.Figure, x: dict[str, Any], y: dict[str, Any], palette: Palette
    ) -> None:
        """Set every panel's axes and title; axes are shared where panels are not apart.

        Args:
            figure: What is drawn.
            x: Each x axis.
            y: Each y axis.
            palette: Of the page.
        """
        lead = self.suffix(0)
        for panel, title in enumerate(self.titles):
            own, (across, up) = self.suffix(panel), self.domain(panel)
            left, low = panel % self.columns == 0, self.lowest(panel)
            shared = {} if self.apart or not panel else {"matches": f"x{lead}"}
            tall = {} if self.apart or not panel else {"matches": f"y{lead}"}
            ticks = {"showticklabels": self.apart or low}
            figure.update_layout(
                {
                    f"xaxis{own}": {**x, **shared, **ticks, "domain": across, "anchor": f"y{own}"},
                    f"yaxis{own}": {
                        **y,
                        **tall,
                        "showticklabels": self.apart or left,
                        "domain": up,
                        "anchor": f"x{own}",
                    },
                }
            )
            figure.add_annotation(
                text=title,
                showarrow=False,
                xref="paper",
                yref="paper",
                x=across[0],
                y=up[1],
                xanchor="left",
                yanchor="bottom",
                font={"size": 13, "color": palette.text},
            )

    def frame(
        self,
        figure: go.Figure,
        title: str,
        legend: Sequence[str],
        *,
        axis: str = "",
        side: str = "",
    ) -> None:
        """Set height, margins, title and legend; the latter stands below, once for all panels.

        Args:
            figure: What is drawn.
            title: Of the picture.
            legend: Names in it.
            axis: What stands under all panels.
            side: What stands beside all of them.
        """
        rows = LEGEND_ROW * legend_rows(legend, narrow=self.narrow) if legend else 0
        top = TITLE + TITLE_LINE * title.count("<br>")
        # Panels apart have the room for their ticks and the axis' title within.
        foot = 4 if self.apart else AXIS - BETWEEN
        bottom = (16 if self.apart else AXIS) + rows
        figure.update_layout(
            height=self.inner + top + bottom,
            margin={"l": 60 if self.narrow else 72, "r": 16, "t": top, "b": bottom},
            title={"text": title, **title_place(title.count("<br>") + 1)},
            showlegend=bool(legend),
            legend={
                "orientation": "h",
                "x": 0.02 if self.narrow else 0,
                "xref": "container" if self.narrow else "paper",  # from under the rows' names
                "xanchor": "left",
                "y": -foot / self.inner,
                "yanchor": "top",
                "itemdoubleclick": "toggleothers",
            },
            hovermode="closest",
            clickmode="event",
        )
        words = {"showarrow": False, "xref": "paper", "yref": "paper", "font": {"size": 14}}
        if axis:
            under = (22 if self.apart else BETWEEN - TICKS) / self.inner
            figure.add_annotation(
                text=axis, x=0.5, y=under, xanchor="center", yanchor="top", **words
            )
        if side:
            middle = 0.5 * (1 - self.above / self.inner)
            at = {"x": 0, "xshift": -46 if self.narrow else -56, "y": middle, "yanchor": "middle"}
            figure.add_annotation(text=side, textangle=-90, xanchor="center", **at, **words)

    def say_left(self, figure: go.Figure, left: int, palette: Palette) -> None:
        """Say below all panels how many more there would be, if any."""
        if left > 0:
            figure.add_annotation(
                text=f"{counted(left, 'more panel')} not drawn: choose with “Show only”.",
                showarrow=False, xref="paper", yref="paper", x=1, xanchor="right",
                y=-(32 / self.inner), yanchor="top", font={"size": 12, "color": palette.muted},
            )  # fmt: skip


def title_place(lines: int) -> dict[str, Any]:
    """Return where a title of so many lines stands.

    Plotly puts the top of one line there, but of several the foot of the first.
    """
    pad = {"t": 12 if lines == 1 else 24, "l": 4}
    return {"y": 1, "yref": "container", "yanchor": "top", "pad": pad}


def _columns_wanted(panels: int, *, narrow: bool) -> int:
    return (1 if panels <= 4 else 2) if narrow else 2 if panels <= 4 else 3 if panels <= 12 else 4


def _fitting(names: Sequence[str], *, narrow: bool) -> list[str]:
    """Return names for panels, methods by their short ones where the words would meet."""
    columns = min(len(names), _columns_wanted(len(names), narrow=narrow)) or 1
    room = (PHONE if narrow else WIDE) / columns / BOLD_LETTER
    if all(len(name) <= room for name in names):
        return list(names)
    short = {look.title: look.short for look in METHOD_STYLE.values()}
    parts = [name.partition(", ") for name in names]
    return ["".join((short.get(method, method), comma, rest)) for method, comma, rest in parts]


def columns_for(names: Sequence[str], *, narrow: bool) -> int:
    """Return how many panels stand beside each other: as many as their names leave room for."""
    names = _fitting(names, narrow=narrow)
    most = _columns_wanted(panels := len(names), narrow=narrow)
    longest = LETTER * max(map(len, names), default=0)
    return max(1, min(panels, most, (PHONE if narrow else WIDE) // max(longest, 1)))


def panel_titles(names: Sequence[str], *, narrow: bool) -> list[str]:
    """Return panels' names in bold, as far as a panel is wide; what is cut is the middle."""
    room = (PHONE if narrow else WIDE) / columns_for(names, narrow=narrow)
    half = (most := int(room / TITLE_LETTER)) // 2
    names = _fitting(names, narrow=narrow)
    short = (n if len(n) <= most else f"{n[: half - 1]}…{n[-half:]}" for n in names)
    return [f"<b>{escape(name, quote=False)}</b>" for name in short]


def legend_place(
    names: Sequence[str], inner: int, *, narrow: bool
) -> tuple[dict[str, Any], int, int]:
    """Return a legend, and the pixels it takes above and below a picture.

    Args:
        names: In it.
        inner: Height of the picture.
        narrow: Whether there is a phone's width only; then it stands below, as do long ones.
    """
    rows = legend_rows(names, narrow=narrow)
    below = narrow or rows > MOST_ROWS_ABOVE
    place = {"y": -AXIS / inner, "yanchor": "top"} if below else {"y": 1, "yanchor": "bottom"}
    room = LEGEND_ROW * rows
    legend = {"orientation": "h", "x": 0, "xanchor": "left", **place}
    return legend, 0 if below else room, room if below else 0


def legend_rows(names: Sequence[str], *, narrow: bool) -> int:
    """Return how many rows a legend of these names will take."""
    room = PHONE if narrow else WIDE
    rows, taken = 1, 0
    for name in names:
        width = LETTER * len(name) + LEGEND_KEY
        if taken and taken + width > room:  # it begins the next row, whatever room is left in this
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


def rate_axis(rates: Sequence[float], *, narrow: bool, columns: int = 1) -> dict[str, Any]:
    """Return the axis of learning rates: a tick a decade, or as many as stand level beside it."""
    low, high = rate_range(rates)
    decades = range(math.ceil(low), math.floor(high) + 1)
    label = LETTER * max((len(f"{10.0**power:g}") for power in decades), default=0) + LABEL_GAP
    # Panels beside each other share the room; three of a wide picture are as wide as a phone's.
    room = PHONE / columns if narrow else max(WIDE / columns, PHONE if columns < 4 else 0)
    every = max(1, math.ceil(label * (high - low) / room))
    short = high - low < 1.5 and 4 * LETTER * (high - low) < 0.3 * room  # from 1 to 2
    # Slanted labels would take the room of what stands below. A short range has 2 and 5, too.
    ticks = {"tickangle": 0, "dtick": "D2" if short else every}
    axis = {**RATE_AXIS, "range": [low, high], **ticks}
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
