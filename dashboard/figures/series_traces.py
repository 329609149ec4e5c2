"""One curve: its band, its mean, its seeds."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import RatePointRead, SeedRead, SeriesRead
from dashboard.figures.scale import Scale
from dashboard.figures.wording import mean_hover
from dashboard.formats import number
from dashboard.theme import SeriesStyle, faint

#: More seeds than this are drawn as dashes of one path: thousands of dots would be thousands of
#: elements. WebGL is no way out: it fails as a whole where it is missing or forbidden.
MOST_DOTS = 2000
#: Half a dash, as a share of the axis of rates.
HALF_DASH = 0.004


def curve_traces(
    line: SeriesRead, name: str, style: SeriesStyle, scale: Scale, *, band: str, seeds: bool
) -> Iterator[Any]:
    """Yield a curve's traces, bottom to top; the legend switches all of them together."""
    group = {"legendgroup": line.id, "xaxis": "x", "yaxis": "y"}
    yield from band_traces(line.points, style, scale, group)
    if seeds:
        yield from seed_traces(line, name, style, scale, group)
    yield from finite_mean_trace(line, name, style, band, group)
    yield go.Scatter(
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


def trials_of(point: RatePointRead) -> list[int]:
    """Return the trials behind a point: what a click on it opens."""
    return [seed.trial_id for seed in point.seeds]


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
        yield go.Scatter(
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
    if len(shown) > MOST_DOTS:
        yield _dashes(shown, style, group)
        return
    for outcome, symbol in (("completed", "circle-open"), ("diverged", "x-thin-open")):
        own = [(lr, seed) for lr, seed in shown if seed.outcome == outcome]
        if not own:
            continue
        yield go.Scatter(
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
            customdata=[[seed.trial_id] for _, seed in own],
            showlegend=False,
            meta=f"seeds {outcome}",
            **group,
        )


def _dashes(
    dots: Sequence[tuple[float, SeedRead]], style: SeriesStyle, group: dict[str, Any]
) -> Any:
    """Return seeds as short dashes, all in one line with gaps."""
    logs = [math.log10(lr) for lr, _ in dots]
    half = 10 ** (HALF_DASH * ((max(logs) - min(logs)) or 1.0))
    return go.Scatter(
        x=[x for lr, _ in dots for x in (lr / half, lr * half, None)],
        y=[y for _, seed in dots for y in (seed.value, seed.value, None)],
        mode="lines",
        line={"color": style.ink, "width": 1, "simplify": False},
        opacity=0.5,
        hoverinfo="skip",
        showlegend=False,
        meta="seeds dashes",
        **group,
    )


def finite_mean_trace(
    line: SeriesRead, name: str, style: SeriesStyle, band: str, group: dict[str, Any]
) -> Iterator[Any]:
    """Yield the means of the finite seeds where the mean itself is no number."""
    points = [p for p in line.points if p.mean is None and p.finite_mean is not None]
    if not points:
        return
    yield go.Scatter(
        x=[point.lr for point in points],
        y=[point.finite_mean for point in points],
        mode="markers",
        marker={
            "symbol": f"{style.marker.removesuffix('-open')}-open-dot",
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
