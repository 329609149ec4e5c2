"""The picture this product exists for: a value against the learning rate, nothing dropped."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from backend.schemas import Metric, Reducer, SeriesKey, SeriesRead
from dashboard.figures.divergence import (
    RailEntry,
    folded_rail,
    rail_entries,
    rail_traces,
)
from dashboard.figures.facets import bands_drawn, facets, optimum
from dashboard.figures.families import Arrangement, Family, arrange, styles
from dashboard.figures.panels import PHONE, WIDE, Panels, rate_axis, rate_range
from dashboard.figures.scale import Scale, ScaleName, choose_scale, step_edges
from dashboard.figures.traces import (
    best_marker,
    best_point,
    curve_traces,
    draw_references,
    eb_curve,
    references,
    scatter,
    seeds_look,
)
from dashboard.figures.wording import (
    BAND_WORDS,
    axis_title,
    caption_words,
    diverged_hover,
    literal,
    network_words,
    only_words,
    seeds_words,
    series_name,
    spoken,
    title_lines,
    title_words,
)
from dashboard.theme import PALETTE, Palette, Scheme, SeriesStyle, faint, template

#: With more curves than this, intervals in the strip would be one grey; the hover has them.
MOST_BANDS = 3
#: More lanes than this are folded into one line until somebody opens them.
MOST_LANES = 6
#: With more curves than this in one panel bands and seeds would hide the curves.
MOST_SHADED = 12


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
        family: What colours and panels tell, and which series are wanted.
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
    family: Family = field(default_factory=Family)

    @property
    def upwards(self) -> bool:
        """Whether higher is better."""
        return self.metric.endswith("accuracy")

    def of(self, lines: Sequence[SeriesKey]) -> "Picture":
        """Return the same with a title that is true of the networks drawn."""
        return replace(self, title=network_words(self.title, lines))


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
    picture = picture.of(drawn)
    palette = PALETTE[picture.scheme]
    scale = choose_scale(drawn, picture.metric, picture.scale, initial)
    arrangement = arrange(drawn, picture.family)
    looks = styles(drawn, arrangement, picture.scheme)
    if arrangement.panel is not None:
        return _in_panels(drawn, picture, arrangement, looks, scale)
    rails = {line.id: rail_entries(line, scale) for line in drawn}
    lanes = sum(1 for found in rails.values() if found)
    folded = lanes > MOST_LANES and picture.family.rail != "open"
    curves = list(_curves(drawn, picture, scale, {} if folded else rails, looks))
    if folded:
        span, room = rate_range(_rates(drawn)), PHONE if picture.narrow else WIDE
        rail = folded_rail(drawn, scale, palette, at=0, span=span, room=room, xaxis="x", yaxis="y2")
        curves += rail
    if arrangement.ramp:
        curves += optimum(
            drawn, arrangement.colour, looks, palette,
            higher_is_better=picture.upwards, xaxis="x", yaxis="y",
        )  # fmt: skip
    figure = go.Figure(curves, {"template": template(picture.scheme)})
    unseen = _add_references(figure, drawn, picture, scale, looks, threshold, initial)
    _add_rail_legend(figure, rails, palette)
    title = _title(drawn, picture, shaded=len(drawn) <= MOST_SHADED)
    panels = Panels(
        lanes=1 if folded else lanes,
        captions=_captions(unseen, nothing=not any(rails.values())),
        legend=[trace.name for trace in figure.data if trace.showlegend is not False],
        narrow=picture.narrow,
        crowded=not folded and any(entry.crowded for found in rails.values() for entry in found),
        title_lines=title_lines(title),
    )
    panels.lay_out(figure, palette)
    figure.update_layout(
        title={"text": title},
        meta={
            "label": _spoken(drawn, picture),
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title),
        },
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


def _in_panels(
    series: Sequence[SeriesRead],
    picture: Picture,
    arrangement: Arrangement,
    looks: dict[str, SeriesStyle],
    scale: Scale,
) -> go.Figure:
    """Return the curves as small multiples."""
    figure = go.Figure(layout={"template": template(picture.scheme)})
    grid = facets(
        figure,
        series,
        arrangement,
        looks,
        scale,
        PALETTE[picture.scheme],
        band=picture.band,
        higher_is_better=picture.upwards,
        narrow=picture.narrow,
    )
    legend = [trace.name for trace in figure.data if trace.showlegend and trace.name]
    axis = axis_title(series, picture.metric, picture.reducer)
    title = _title(series, picture, shaded=bands_drawn(series, arrangement))
    grid.frame(figure, title, legend, axis="learning rate", side=axis)
    caption = caption_words(series, picture.metric, picture.reducer, picture.title)
    figure.update_layout(
        meta={"label": _spoken(series, picture), "caption": caption, "rates": False},
        uirevision=picture.revision or "same",
    )
    return figure


def _curves(
    series: Sequence[SeriesRead],
    picture: Picture,
    scale: Scale,
    rails: dict[str, list[RailEntry]],
    looks: dict[str, SeriesStyle],
) -> Iterator[Any]:
    lane = sum(1 for entries in rails.values() if entries)
    shaded = len(series) <= MOST_SHADED
    seeds = seeds_look(series, wanted=picture.seeds and shaded)
    few = len(series) <= MOST_BANDS
    low, high = rate_range(_rates(series))
    decades = high - low
    for line in series:
        name = literal(series_name(line, line.label, narrow=picture.narrow))
        style = looks[line.id]
        if not shaded:
            style = replace(style, width=1.6, size=5.5)
        yield from curve_traces(
            line, name, style, scale, band=picture.band, seeds=seeds, shaded=shaded
        )
        yield from strip_traces(line, name, style, band=few)
        if rails.get(line.id):
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
    looks: dict[str, SeriesStyle],
    threshold: float | None,
    initial: float | None,
) -> list[str]:
    upwards = picture.upwards
    eb = eb_curve(series)
    best = best_point(eb, higher_is_better=upwards)
    if picture.metric == "seconds":
        return []
    if eb is not None and best is not None and scale.holds(best.mean or math.inf):
        figure.add_trace(best_marker(eb, best, looks[eb.id]))
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


def _title(series: Sequence[SeriesRead], picture: Picture, *, shaded: bool) -> str:
    told = _spread(series, picture, shaded=shaded)
    only = only_words(picture.family.only)
    words = f"{told}, only {only}" if only else told
    return title_words(picture.title, words, narrow=picture.narrow)


def _spread(series: Sequence[SeriesRead], picture: Picture, *, shaded: bool) -> str:
    """Return what is averaged, and what the shading means if there is any."""
    seeds = seeds_words(series)
    band = f"{BAND_WORDS[picture.band]} " if shaded else ""
    return seeds if seeds == "1 seed" else f"mean {band}of {seeds}"


def _spoken(series: Sequence[SeriesRead], picture: Picture) -> str:
    about = _spread(series, picture, shaded=False)
    title = f"{picture.title}, {about}" if picture.title else about
    upwards = picture.upwards
    best = [best_point(line, higher_is_better=upwards) for line in series]
    return spoken(series, title, axis_title(series, picture.metric, picture.reducer), best)


def _captions(unseen: Sequence[str], *, nothing: bool) -> list[str]:
    """Return what is written into the rail: what is above the scale, or that nothing is."""
    first = ["no seed diverged or left the scale"] if nothing else []
    return first + [f"{text} ↑" for text in unseen]


def strip_traces(
    line: SeriesRead, name: str, style: SeriesStyle, *, band: bool = True
) -> Iterator[Any]:
    """Yield a curve's divergence probability and its Wilson band, as steps around each rate."""
    points = line.points
    if not points:
        return
    group = {"legendgroup": line.id, "showlegend": False, "xaxis": "x", "yaxis": "y3"}
    edges = step_edges([point.lr for point in points])
    rates = [edge for pair in pairwise(edges) for edge in pair]
    if band:
        lows = [low for point in points for low in (point.diverged_low,) * 2]
        highs = [high for point in points for high in (point.diverged_high,) * 2]
        yield scatter(
            x=[*rates, *reversed(rates)],
            y=[*lows, *reversed(highs)],
            fill="toself",
            fillcolor=faint(style.colour, 0.07),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            meta="strip band",
            **group,
        )
    yield scatter(
        x=rates,
        y=[share for point in points for share in (point.diverged / max(point.n, 1),) * 2],
        mode="lines",
        line={"color": style.colour, "dash": style.dash, "width": 0.8 * style.width},
        hoverinfo="skip",
        meta="strip line",
        **group,
    )
    yield scatter(
        x=[point.lr for point in points],
        y=[point.diverged / max(point.n, 1) for point in points],
        mode="markers",
        marker={"size": 14, "color": "rgba(0,0,0,0)"},
        hovertext=[diverged_hover(name, point) for point in points],
        hoverinfo="text",
        meta="strip hover",
        **group,
    )
