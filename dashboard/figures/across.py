"""Many tasks in one picture: mean ranks, performance profiles, chances, the middle half."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from backend.schemas import AcrossRead, ProfileLineRead, ScorecardRow
from dashboard.figures.panels import LETTER, TITLE, TITLE_LINE, title_place
from dashboard.figures.ranks import (
    Looks,
    Ranks,
    rank_words,
    ranks_heading,
    ranks_height,
    short_name,
)
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import scatter
from dashboard.figures.wording import caption_words, literal, title_lines, title_words
from dashboard.theme import SeriesStyle, counted, number, percent, template

# Pixels
ROW, PROFILES, NAME, HEADING, GAP, FOOT = 24, 250, 15, 34, 22, 44
#: Where the axis of shares ends, in percent.
TOP = 103


#: How far profiles are drawn: behind their last step, and at least.
ROOM_BEHIND, LEAST_FACTOR = 1.25, 2.0
#: Adds traces and axes to a figure, given the number of the axes and where they stand.
Draw = Callable[[go.Figure, str, list[float]], None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the pictures: its heading, its height without it, and what draws it."""

    heading: str
    height: int
    draw: Draw


def across_figure(
    across: AcrossRead, picture: Picture, rows: Sequence[ScorecardRow] = ()
) -> go.Figure:
    """Return mean ranks with their critical difference, profiles, chances and middle halves.

    Args:
        across: What the API found over many tasks.
        picture: How to draw it.
        rows: The series behind it, for the caption.
    """
    looks = Looks(across, picture)
    panels = _panels(across, looks)
    figure = go.Figure(layout={"template": template(picture.scheme)})
    inner = sum(panel.height + HEADING + FOOT for panel in panels) + GAP * (len(panels) - 1)
    top = float(inner)
    for index, panel in enumerate(panels):
        high = top - HEADING
        domain = [(high - panel.height) / inner, high / inner]
        panel.draw(figure, "" if index == 0 else str(index + 1), domain)
        figure.add_annotation(**_heading(panel.heading, top / inner, looks, _left(across, looks)))
        top = high - panel.height - FOOT - GAP
    _lay_out(figure, across, looks, inner, _caption(across, picture, rows, panels))
    return figure


def _caption(
    across: AcrossRead, picture: Picture, rows: Sequence[ScorecardRow], panels: Sequence[Panel]
) -> str:
    compared = {label.partition(", ")[0] for label in across.methods}
    drawn = [row for row in rows if row.method in compared]
    if not drawn:
        return ""
    told = caption_words(drawn, picture.metric, picture.reducer, counted(across.tasks, "task"))
    return f"{told} From the top: {'; '.join(panel.heading for panel in panels)}."


def _panels(across: AcrossRead, looks: Looks) -> list[Panel]:
    found = [
        Panel(
            ranks_heading(one),
            ranks_height(one, narrow=looks.picture.narrow),
            Ranks(one, looks),
        )
        for one in across.ranks
    ]
    if across.profiles:
        height = max(PROFILES, NAME * len(across.profiles) + 44)
        found.append(Panel(PROFILES_HEADING, height, Profiles(across.profiles, looks, height)))
    if any(share > 0 for line in across.times for share in line.shares):
        height = max(PROFILES, NAME * len(across.times) + 44)
        found.append(Panel(TIMES_HEADING, height, Profiles(across.times, looks, height)))
    for heading, dots in (
        (CHANCES_HEADING, _chances(across, looks)),
        (IQM_HEADING, _middle_halves(across, looks)),
    ):
        if dots.dots:
            found.append(Panel(heading, ROW * len(dots.dots) + 12, dots))
    return found


PROFILES_HEADING = "Best loss within a factor of the best method's"
TIMES_HEADING = "Epochs to the target within a factor of the fastest method's"
CHANCES_HEADING = "Chance to be better: same task, rate and seed"
IQM_HEADING = "LR sensitivity, mean of the middle half of the tasks (lower is better)"


def _left(across: AcrossRead, looks: Looks) -> int:
    """Return the pixels that names take beside the panels."""
    pairs = [f"{looks.name(one.first)} vs {looks.name(one.second)}" for one in across.chances]
    longest = LETTER * max(map(len, pairs), default=0) + 24
    return min(max(96, longest), 150) if looks.picture.narrow else 150


def _right(across: AcrossRead, looks: Looks) -> int:
    """Return the pixels that the names of profiles' lines take."""
    named = [looks.name(line.label) for line in (*across.profiles, *across.times)]
    return max(24, 20 + LETTER * max(map(len, named), default=0))


def _lay_out(figure: go.Figure, across: AcrossRead, looks: Looks, inner: int, caption: str) -> None:
    picture = looks.picture
    rest = f"{counted(len(across.methods), 'method')} over {counted(across.tasks, 'task')}"
    title = title_words(picture.title, rest, narrow=picture.narrow)
    above = TITLE + TITLE_LINE * (title_lines(title) - 1)
    figure.update_layout(
        height=inner + above + 8,
        margin={"l": _left(across, looks), "r": _right(across, looks), "t": above, "b": 8},
        title={"text": title, **title_place(title_lines(title))},
        showlegend=False,
        hovermode="closest",
        meta={"label": spoken(across), "caption": caption, "rates": False},
        uirevision=picture.revision or "same",
    )


def _heading(text: str, height: float, looks: Looks, left: int) -> dict[str, Any]:
    words = title_words("", text, narrow=looks.picture.narrow)
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "xanchor": "left",
        "xshift": 4 - left,
        "y": height,
        "yanchor": "top",
        "align": "left",
        "text": f"<b>{words}</b>",
        "showarrow": False,
        "font": {"size": 13, "color": looks.palette.text},
    }


class Profiles:
    """The share of tasks by factor, a step line a method."""

    def __init__(self, lines: Sequence[ProfileLineRead], looks: Looks, height: int) -> None:
        self.lines, self.looks, self.height = lines, looks, height

    def __call__(self, figure: go.Figure, axis: str, domain: list[float]) -> None:
        """Add the lines, each with its name at its right end."""
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        for line in self.lines:
            style, name = self.looks.style(line.label), literal(short_name(line.label))
            figure.add_trace(
                scatter(
                    x=line.taus,
                    y=[100 * share for share in line.shares],
                    mode="lines",
                    line={
                        "color": style.colour,
                        "dash": style.dash,
                        "width": style.width,
                        "shape": "hv",
                    },
                    hovertext=[
                        f"<b>{name}</b><br>within {number(tau)} times the best<br>on "
                        f"{percent(share)} of the tasks"
                        for tau, share in zip(line.taus, line.shares, strict=True)
                    ],
                    hoverinfo="text",
                    meta="profile",
                    **place,
                )
            )
        self._name_lines(figure, place)
        figure.update_layout(
            {
                f"xaxis{axis}": {
                    "type": "log",
                    "title": {"text": "factor", "standoff": 4},
                    "tickvals": [1, 1.5, 2, 3, 5, 10, 20, 50, 100],
                    "tickangle": 0,
                    "range": [0, math.log10(_last_factor(self.lines))],
                    "anchor": f"y{axis}",
                },
                f"yaxis{axis}": {
                    "domain": domain,
                    "title": {"text": "share of tasks (%)"},
                    "range": [0, TOP],
                    "anchor": f"x{axis}",
                },
            }
        )

    def _name_lines(self, figure: go.Figure, place: dict[str, str]) -> None:
        """Name the lines at their right ends, outside, as far apart as names are high."""
        last = _last_factor(self.lines)
        ends = {line.label: _share_at(line, last) for line in self.lines}
        ordered = sorted(
            self.lines,
            key=lambda line: (-ends[line.label], -line.shares[0] if line.shares else 0),
        )
        heights = apart([self.height * 100 * ends[line.label] / TOP for line in ordered], NAME)
        for line, height in zip(ordered, heights, strict=True):
            style = self.looks.style(line.label)
            figure.add_annotation(
                xref=f"{place['xaxis']} domain",
                yref=f"{place['yaxis']} domain",
                x=1,
                y=0,
                xanchor="left",
                yanchor="middle",
                xshift=6,
                yshift=height,
                text=self.looks.name(line.label),
                showarrow=False,
                font={"size": 12, "color": style.ink},
            )


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Return falling heights at least so far apart, above zero, moved as little as that takes."""
    placed: list[float] = []
    for height in heights:
        placed.append(min(height, placed[-1] - least) if placed else height)
    floor = least / 2
    for i in reversed(range(len(placed))):
        placed[i] = max(placed[i], floor)
        floor = placed[i] + least
    return placed


def _share_at(line: ProfileLineRead, factor: float) -> float:
    """Return where a line of steps is at a factor."""
    held = [s for tau, s in zip(line.taus, line.shares, strict=True) if tau <= factor]
    return held[-1] if held else 0.0


def _last_factor(lines: Sequence[ProfileLineRead]) -> float:
    """Return a factor beyond which all lines stay as they are: more would be empty."""
    steps = [
        tau
        for line in lines
        for tau, before, share in zip(line.taus[1:], line.shares, line.shares[1:], strict=False)
        if share != before
    ]
    return max(ROOM_BEHIND * max(steps, default=1.0), LEAST_FACTOR)


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its interval, on a line of its own."""

    name: str
    style: SeriesStyle
    value: float | None
    low: float | None
    high: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Dots:
    """Values with intervals below each other.

    Attributes:
        dots: From the top.
        title: Of the x axis.
        axis: How it differs from plotly's.
    """

    dots: list[Dot]
    title: str
    axis: dict[str, Any]

    def __call__(self, figure: go.Figure, axis: str, domain: list[float]) -> None:
        """Add the dots and their names."""
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        last = len(self.dots) - 1
        for index, dot in enumerate(self.dots):
            if dot.value is not None:
                figure.add_trace(_dot_trace(dot, last - index, place))
        figure.update_layout(
            {
                f"xaxis{axis}": {
                    "title": {"text": self.title, "standoff": 4},
                    "anchor": f"y{axis}",
                    **self.axis,
                },
                f"yaxis{axis}": {
                    "domain": domain,
                    "range": [-0.7, last + 0.7],
                    "tickvals": list(range(last + 1)),
                    "ticktext": [dot.name for dot in reversed(self.dots)],
                    "fixedrange": True,
                    "automargin": False,
                    "anchor": f"x{axis}",
                },
            }
        )


def _dot_trace(dot: Dot, height: int, place: dict[str, str]) -> Any:
    value = dot.value or 0.0
    low, high = (value if end is None else end for end in (dot.low, dot.high))
    return scatter(
        x=[dot.value],
        y=[height],
        mode="markers",
        marker={
            "symbol": dot.style.marker,
            "size": 10,
            "color": dot.style.colour,
            "line": {"color": dot.style.ink, "width": 1},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - value],
            "arrayminus": [value - low],
            "color": dot.style.ink,
            "thickness": 1.6,
            "width": 4,
        },
        hovertext=dot.words,
        hoverinfo="text",
        meta="across dot",
        **place,
    )


def _chances(across: AcrossRead, looks: Looks) -> Dots:
    """Return how often one ends lower than the other, an axis from 0 to 100."""
    found = []
    for one in across.chances:
        first, second = short_name(one.first), short_name(one.second)
        ends = (None if end is None else 100 * end for end in (one.value, one.low, one.high))
        value, low, high = ends
        words = (
            f"<b>{literal(first)}</b> ends lower than {literal(second)} in {percent(one.value)}"
            f"<br>95 %: {percent(one.low)} to {percent(one.high)}<br>{counted(one.n, 'task')}"
        )
        name = f"{looks.name(one.first)} vs {looks.name(one.second)}"
        found.append(Dot(name, looks.style(one.first), value, low, high, words))
    axis = {"range": [0, 100], "tickvals": [0, 25, 50, 75, 100], "zeroline": False}
    return Dots(found, "how often the first ends lower (%)", axis)


def _middle_halves(across: AcrossRead, looks: Looks) -> Dots:
    """Return every method's interquartile mean, the best on top."""
    known = [one for one in across.iqm if one.value is not None]
    found = []
    for one in sorted(known, key=lambda one: one.value or 0.0):
        words = (
            f"<b>{literal(short_name(one.label))}</b><br>{number(one.value)}<br>95 %: "
            f"{number(one.low)} to {number(one.high)}<br>{counted(one.n, 'task')}"
        )
        name, style = looks.name(one.label), looks.style(one.label)
        found.append(Dot(name, style, one.value, one.low, one.high, words))
    return Dots(found, "LR sensitivity", {"rangemode": "tozero"})


def spoken(across: AcrossRead) -> str:
    """Return in sentences what the picture shows, for who does not see it."""
    parts = [rank_words(one) for one in across.ranks]
    parts += [
        f"{short_name(one.first)} ends lower than {short_name(one.second)} in {percent(one.value)}"
        for one in across.chances
    ]
    return f"{counted(len(across.methods), 'method')} over {counted(across.tasks, 'task')}. " + (
        ". ".join(parts) + "."
    )
