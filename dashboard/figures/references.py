"""Reference lines, thin and labelled in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from backend.schemas import RatePointRead, SeriesRead
from dashboard.figures.scale import Scale
from dashboard.figures.traces import Trace, scatter
from dashboard.theme import Palette, SeriesStyle, faint, number


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
