"""The picture this product exists for: a value against the learning rate, nothing dropped."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from backend.schemas import Metric, Reducer, ScorecardRow, SeriesRead
from dashboard.figures.divergence import RailEntry, rail_entries, rail_traces, strip_traces
from dashboard.figures.panels import Panels, rate_axis, rate_range
from dashboard.figures.references import (
    best_marker,
    best_point,
    draw_references,
    eb_curve,
    references,
)
from dashboard.figures.scale import Scale, ScaleName, choose_scale
from dashboard.figures.series import curve_traces, seeds_look
from dashboard.figures.traces import scatter
from dashboard.figures.wording import (
    BAND_WORDS,
    axis_title,
    literal,
    seeds_words,
    series_name,
    spoken,
    title_lines,
    title_words,
)
from dashboard.theme import PALETTE, Palette, Scheme, SeriesStyle, series_style, template

#: With more curves than this, intervals in the strip would be one grey; the hover has them.
MOST_BANDS = 3


@dataclass(frozen=True, slots=True)
class Picture:
    """How a person wants to see curves.

    Attributes:
        title: What is learnt; stands in bold before what is averaged.
        metric: What is drawn.
        reducer: Of a trial's losses.
        band: What the shading means.
        scale: Of the y axis.
        seeds: Whether single seeds are drawn.
        scheme: Light or dark.
        narrow: Whether it is drawn on a phone.
        revision: As long as it stays the same, so does the zoom.
    """

    title: str = ""
    metric: Metric = "train_loss"
    reducer: Reducer = "final"
    band: str = "std"
    scale: ScaleName = "focus"
    seeds: bool = True
    scheme: Scheme = "light"
    narrow: bool = False
    revision: str = ""


def sensitivity_figure(
    series: Sequence[SeriesRead],
    picture: Picture,
    *,
    threshold: float | None = None,
    initial: float | None = None,
) -> go.Figure:
    """Return mean and spread against the rate, the rail above, divergence probability below.

    Args:
        series: The curves, in the order of the legend.
        picture: How to draw them.
        threshold: The paper's divergence threshold.
        initial: The loss before training.
    """
    drawn = [line for line in series if line.points]
    palette = PALETTE[picture.scheme]
    scale = choose_scale(drawn, picture.metric, picture.scale, initial)
    rails = {line.id: rail_entries(line, scale) for line in drawn}
    curves = list(_curves(drawn, picture, scale, rails))
    figure = go.Figure(curves, {"template": template(picture.scheme)})
    unseen = _add_references(figure, drawn, picture, scale, threshold, initial)
    _add_rail_legend(figure, rails, palette)
    title = _title(drawn, picture)
    panels = Panels(
        lanes=sum(1 for found in rails.values() if found),
        captions=_captions(unseen, nothing=not any(rails.values())),
        legend=[trace.name for trace in figure.data if trace.showlegend is not False],
        narrow=picture.narrow,
        crowded=any(entry.crowded for found in rails.values() for entry in found),
        title_lines=title_lines(title),
    )
    panels.lay_out(figure, palette)
    figure.update_layout(
        title={"text": title},
        meta={"label": _spoken(drawn, picture)},
        uirevision=picture.revision or "same",
        xaxis=rate_axis(_rates(drawn), narrow=picture.narrow),
        yaxis={
            "title": {"text": axis_title(drawn, picture.metric, picture.reducer)},
            "type": "log" if scale.log else "linear",
            "range": scale.range,
            "tickformat": "~g" if scale.log else "",
            "dtick": scale.tick,
        },
    )
    return figure


def styles_of(
    series: Sequence[SeriesRead | ScorecardRow], scheme: Scheme
) -> dict[str, SeriesStyle]:
    """Return each curve's style; curves that would look alike get other markers and dashes."""
    seen: Counter[tuple[str, bool, bool]] = Counter()
    styles = {}
    for line in series:
        look = (line.method, line.clip is not None, line.imported)
        styles[line.id] = series_style(
            line.method,
            scheme,
            clipped=line.clip is not None,
            imported=line.imported,
            variant=seen[look],
        )
        seen[look] += 1
    return styles


def _curves(
    series: Sequence[SeriesRead],
    picture: Picture,
    scale: Scale,
    rails: dict[str, list[RailEntry]],
) -> Iterator[Any]:
    styles = styles_of(series, picture.scheme)
    lane = sum(1 for entries in rails.values() if entries)
    seeds = seeds_look(series, wanted=picture.seeds)
    few = len(series) <= MOST_BANDS
    low, high = rate_range(_rates(series))
    decades = high - low
    for line in series:
        name, style = literal(series_name(line, line.label)), styles[line.id]
        yield from curve_traces(line, name, style, scale, band=picture.band, seeds=seeds)
        yield from strip_traces(line, name, style, band=few)
        if rails[line.id]:
            lane -= 1
            own, short = rails[line.id], picture.narrow
            yield from rail_traces(line, name, style, own, lane=lane, decades=decades, short=short)


def _rates(series: Sequence[SeriesRead]) -> list[float]:
    return [point.lr for line in series for point in line.points]


def _add_references(
    figure: go.Figure,
    series: Sequence[SeriesRead],
    picture: Picture,
    scale: Scale,
    threshold: float | None,
    initial: float | None,
) -> list[str]:
    upwards = picture.metric.endswith("accuracy")
    eb = eb_curve(series)
    best = best_point(eb, higher_is_better=upwards)
    if picture.metric == "seconds":
        return []
    if eb is not None and best is not None and scale.holds(best.mean or math.inf):
        figure.add_trace(best_marker(eb, best, styles_of(series, picture.scheme)[eb.id]))
    lines = references(series, threshold=threshold, initial=initial, higher_is_better=upwards)
    palette = PALETTE[picture.scheme]
    return draw_references(figure, lines, series, scale, palette, narrow=picture.narrow)


def _add_rail_legend(
    figure: go.Figure, rails: dict[str, list[RailEntry]], palette: Palette
) -> None:
    """Explain the rail's markers, those that are there."""
    entries = [entry for found in rails.values() for entry in found]
    kinds = (
        ("diverged seeds", "triangle-up", any(entry.diverged for entry in entries)),
        ("seeds off scale", "arrow-bar-up-open", any(entry.off_scale for entry in entries)),
    )
    for name, symbol, present in kinds:
        if present:
            marker = {"symbol": symbol, "size": 10, "color": palette.muted}
            figure.add_trace(
                scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, meta="legend")
            )


def _title(series: Sequence[SeriesRead], picture: Picture) -> str:
    return title_words(picture.title, _spread(series, picture), narrow=picture.narrow)


def _spread(series: Sequence[SeriesRead], picture: Picture) -> str:
    return f"mean {BAND_WORDS[picture.band]} of {seeds_words(series)}"


def _spoken(series: Sequence[SeriesRead], picture: Picture) -> str:
    about = _spread(series, picture)
    title = f"{picture.title}, {about}" if picture.title else about
    upwards = picture.metric.endswith("accuracy")
    best = [best_point(line, higher_is_better=upwards) for line in series]
    return spoken(series, title, axis_title(series, picture.metric, picture.reducer), best)


def _captions(unseen: Sequence[str], *, nothing: bool) -> list[str]:
    """Return what is written into the rail: what is above the scale, or that nothing is."""
    first = ["no seed diverged or left the scale"] if nothing else []
    return first + [f"{text} ↑" for text in unseen]
