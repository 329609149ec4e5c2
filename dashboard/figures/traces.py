"""Traces as plain data: a curve's band, mean and seeds, lines to compare it with, nothing yet."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from backend.schemas import RatePointRead, SeriesRead
from dashboard.figures.scale import Floats, Scale
from dashboard.figures.wording import mean_hover
from dashboard.theme import Palette, SeriesStyle, faint, number

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


# --- One curve: its band, its mean, its seeds


SeedsLook = Literal["none", "dots", "dashes"]


def seeds_look(series: Sequence[SeriesRead], *, wanted: bool) -> SeedsLook:
    """Return how the seeds of a picture are drawn."""
    count = sum(len(point.seeds) for line in series for point in line.points)
    return "none" if not wanted else "dots" if count <= MOST_DOTS else "dashes"


def curve_traces(
    line: SeriesRead,
    name: str,
    style: SeriesStyle,
    scale: Scale,
    *,
    band: str,
    seeds: SeedsLook,
    shaded: bool = True,
) -> Iterator[Any]:
    """Yield a curve's traces, bottom to top; the legend switches all of them together."""
    group = {"legendgroup": line.id, "xaxis": "x", "yaxis": "y"}
    if shaded:
        yield from band_traces(line.points, style, scale, group)
    if seeds == "dots":
        yield from seed_traces(line, name, style, scale, group)
    elif seeds == "dashes":
        dots = [(p.lr, s.value) for p in line.points for s in p.seeds if s.value is not None]
        yield from dashes(dots, scale, style.ink, meta="seeds dashes", **group)
    yield from finite_mean_trace(line, name, style, band, group)
    yield scatter(
        x=[point.lr for point in line.points],
        y=[point.mean for point in line.points],
        mode="lines+markers",
        name=name,
        line={"color": style.colour, "dash": style.dash, "width": style.width},
        marker={
            "symbol": style.marker,
            "size": style.size,
            "color": style.colour,
            "line": {"color": style.ink, "width": 1.2 if "open" in style.marker else 0.6},
        },
        connectgaps=False,
        hovertext=[mean_hover(name, point, band) for point in line.points],
        hoverinfo="text",
        customdata=[trials_of(point) for point in line.points],
        meta="mean",
        **group,
    )


def trials_of(point: RatePointRead) -> str:
    """Return the trials behind a point: what a click on it opens."""
    return opens(seed.trial_id for seed in point.seeds)


def finite_stretches(points: Sequence[RatePointRead]) -> Iterator[list[RatePointRead]]:
    """Yield runs of neighbouring rates that have a band; a gap inside a polygon would break it."""
    stretch: list[RatePointRead] = []
    for point in points:
        if point.low is not None and point.high is not None:
            stretch.append(point)
            continue
        if stretch:
            yield stretch
        stretch = []
    if stretch:
        yield stretch


def band_traces(
    points: Sequence[RatePointRead], style: SeriesStyle, scale: Scale, group: dict[str, Any]
) -> Iterator[Any]:
    """Yield one polygon a stretch of rates; on a logarithmic axis none reaches zero."""
    floor = scale.low / 10 if scale.log else float("-inf")
    for stretch in finite_stretches(points):
        if len(stretch) < 2:
            continue
        rates = [point.lr for point in stretch]
        lows = [max(point.low or 0.0, floor) for point in stretch]
        highs = [max(point.high or 0.0, floor) for point in stretch]
        yield scatter(
            x=[*rates, *reversed(rates)],
            y=[*lows, *reversed(highs)],
            fill="toself",
            fillcolor=faint(style.colour, 0.16),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            meta="band",
            **group,
        )


def seed_traces(
    line: SeriesRead, name: str, style: SeriesStyle, scale: Scale, group: dict[str, Any]
) -> Iterator[Any]:
    """Yield the seeds that are on the scale: open dots, crosses for finite diverged ones."""
    dots = [(point.lr, seed) for point in line.points for seed in point.seeds]
    shown = [(lr, s) for lr, s in dots if s.value is not None and scale.holds(s.value)]
    for outcome, symbol in (("completed", "circle-open"), ("diverged", "x-thin-open")):
        own = [(lr, seed) for lr, seed in shown if seed.outcome == outcome]
        if not own:
            continue
        yield scatter(
            x=[lr for lr, _ in own],
            y=[seed.value for _, seed in own],
            mode="markers",
            marker={"symbol": symbol, "size": 6, "color": style.ink, "line": {"width": 1}},
            opacity=0.75,
            hovertext=[
                f"<b>{name}</b><br>learning rate {number(lr)}, seed {seed.seed}<br>"
                f"{number(seed.value)}, {seed.outcome}"
                for lr, seed in own
            ],
            hoverinfo="text",
            customdata=[opens([seed.trial_id]) for _, seed in own],
            showlegend=False,
            meta=f"seeds {outcome}",
            **group,
        )


def finite_mean_trace(
    line: SeriesRead, name: str, style: SeriesStyle, band: str, group: dict[str, Any]
) -> Iterator[Any]:
    """Yield the means of the finite seeds where the mean itself is no number."""
    points = [p for p in line.points if p.mean is None and p.finite_mean is not None]
    if not points:
        return
    yield scatter(
        x=[point.lr for point in points],
        y=[point.finite_mean for point in points],
        mode="markers",
        marker={
            "symbol": _dotted(style.marker),
            "size": style.size,
            "color": style.ink,
        },
        hovertext=[mean_hover(name, point, band) for point in points],
        hoverinfo="text",
        customdata=[trials_of(point) for point in points],
        showlegend=False,
        meta="finite mean",
        **group,
    )


def _dotted(marker: str) -> str:
    """Return a marker open, with a dot inside where plotly has such."""
    plain = marker.removesuffix("-open")
    return f"{plain}-open" if plain in ("bowtie", "hourglass") else f"{plain}-open-dot"


# --- Reference lines, thin and labelled in words


@dataclass(frozen=True, slots=True)
class Reference:
    """A horizontal line."""

    value: float
    words: str
    dash: str


def references(
    series: Sequence[SeriesRead],
    *,
    threshold: float | None,
    initial: float | None,
    higher_is_better: bool,
) -> list[Reference]:
    """Return the lines that mean something in a picture, on its scale or not."""
    found: list[Reference] = []
    best = best_point(eb_curve(series), higher_is_better=higher_is_better)
    if best is not None and best.mean is not None:
        words = f"EB's best mean {number(best.mean)} at {number(best.lr)}"
        found.append(Reference(best.mean, words, "dash"))
    if threshold is not None:
        words = f"divergence threshold {number(threshold)}"
        found.append(Reference(threshold, words, "longdash"))
    if initial is not None:
        found.append(Reference(initial, f"initial loss {number(initial)}", "dot"))
    return found


def eb_curve(series: Sequence[SeriesRead]) -> SeriesRead | None:
    """Return the plain EB curve, the one everything is compared to."""
    plain = [line for line in series if line.method == "eb" and not line.imported and line.points]
    return min(plain, key=lambda line: line.clip is not None, default=None)


def best_point(line: SeriesRead | None, *, higher_is_better: bool) -> RatePointRead | None:
    """Return the rate with the best mean, the lowest such rate if several tie."""
    points = [] if line is None else [point for point in line.points if point.mean is not None]
    sign = -1 if higher_is_better else 1
    return min(points, key=lambda point: sign * (point.mean or 0.0), default=None)


def best_marker(line: SeriesRead, point: RatePointRead, style: SeriesStyle) -> Trace:
    """Return a ring around a curve's best rate."""
    return scatter(
        x=[point.lr],
        y=[point.mean],
        mode="markers",
        marker={
            "symbol": "circle-open",
            "size": style.size + 10,
            "color": style.ink,
            "line": {"width": 1.4},
        },
        hoverinfo="skip",
        showlegend=False,
        legendgroup=line.id,
        xaxis="x",
        yaxis="y",
        meta="best",
    )


def draw_references(
    figure: go.Figure,
    lines: Sequence[Reference],
    series: Sequence[SeriesRead],
    scale: Scale,
    palette: Palette,
    *,
    narrow: bool = False,
) -> list[str]:
    """Draw the lines that are on the scale; return the words of those that are not."""
    off_scale, taken = [], _dots(series, scale)
    for line in lines:
        if not scale.low <= line.value <= scale.high:
            off_scale.append(line.words)
            continue
        figure.add_shape(
            type="line",
            xref="paper",
            x0=0,
            x1=1,
            yref="y",
            y0=line.value,
            y1=line.value,
            line={"color": palette.reference, "width": 1, "dash": line.dash},
            layer="below",
        )
        right, above = _freest_corner(scale.share(line.value), taken, 0.6 if narrow else 0.3)
        taken += [(0.9 if right else 0.1, scale.share(line.value) + (0.03 if above else -0.03))] * 9
        figure.add_annotation(**_label(line, scale, palette, right=right, above=above))
    return off_scale


def _dots(series: Sequence[SeriesRead], scale: Scale) -> list[tuple[float, float]]:
    """Return where means and bands lie, as shares of the panel's width and height."""
    rates = [math.log10(point.lr) for line in series for point in line.points] or [0.0]
    width = (max(rates) - min(rates)) or 1.0
    return [
        ((math.log10(point.lr) - min(rates)) / width, scale.share(value))
        for line in series
        for point in line.points
        for value in (point.mean, point.low, point.high)
        if value is not None and scale.low <= value <= scale.high
    ]


def _freest_corner(
    height: float, taken: Sequence[tuple[float, float]], width: float
) -> tuple[bool, bool]:
    """Return whether a label stands best at the right end, and whether above its line."""

    def crowd(right: bool, above: bool) -> tuple[float, bool, bool]:
        middle = height + (0.03 if above else -0.03)
        inside = sum(
            1
            for x, y in taken
            if (x > 1 - width if right else x < width) and abs(y - middle) < 0.045
        )
        beyond = 100 if not 0.02 < middle < 0.98 else 0
        return (inside + beyond, right, above)

    _, right, above = min(crowd(right, above) for right in (False, True) for above in (False, True))
    return right, above


def _label(
    line: Reference, scale: Scale, palette: Palette, *, right: bool, above: bool
) -> dict[str, Any]:
    return {
        "xref": "paper",
        "x": 0.995 if right else 0.005,
        "xanchor": "right" if right else "left",
        "yref": "y",
        "y": math.log10(line.value) if scale.log else line.value,
        "yanchor": "bottom" if above else "top",
        "text": line.words,
        "showarrow": False,
        "font": {"size": 11, "color": palette.muted},
        "bgcolor": faint(palette.paper, 0.7),
        "borderpad": 1,
    }
