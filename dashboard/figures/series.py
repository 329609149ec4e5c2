"""One curve: its band, its mean, its seeds."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from backend.schemas import RatePointRead, SeriesRead
from dashboard.figures.scale import Scale
from dashboard.figures.traces import MOST_DOTS, dashes, opens, scatter
from dashboard.figures.wording import mean_hover
from dashboard.theme import SeriesStyle, faint, number

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
