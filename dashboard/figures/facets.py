"""Loss against learning rate as small multiples: panels that share their axes."""

from collections.abc import Iterator, Sequence

import plotly.graph_objects as go

from backend.schemas import SeriesRead
from dashboard.figures.divergence import RailEntry, rail_entries
from dashboard.figures.families import Arrangement, Naming, Setting, join_order, panels_of, varied
from dashboard.figures.panels import Grid, columns_for, panel_titles, rate_axis
from dashboard.figures.scale import Scale
from dashboard.figures.traces import (
    OPEN_RAIL,
    Trace,
    band_traces,
    best_point,
    finite_mean_trace,
    opens,
    scatter,
    trials_of,
)
from dashboard.figures.wording import literal, mean_hover
from dashboard.theme import Palette, SeriesStyle, counted, number

#: Share of a panel's height that its rail takes.
RAIL = 0.11
PANEL, NARROW_PANEL = 250, 190
#: One row of panels has the height of a picture.
TALL_PANEL = 330
#: With more curves than this in a panel bands would be one grey; the hover has them.
MOST_BANDS = 3
#: With more curves than this in a picture, means are lines without marks, which a browser draws in
#: half the time; the hover and a click find every rate as before.
MOST_MARKED = 24
#: So many curves are named at one mark of a folded rail.
MOST_NAMED = 8


def facets(
    figure: go.Figure,
    series: Sequence[SeriesRead],
    arrangement: Arrangement,
    styles: dict[str, SeriesStyle],
    scale: Scale,
    palette: Palette,
    *,
    band: str,
    higher_is_better: bool,
    narrow: bool,
) -> Grid:
    """Draw the curves into panels; return how these are laid out.

    Args:
        figure: What is drawn into.
        series: All curves.
        arrangement: What panels and colours tell.
        styles: Each curve's look.
        scale: Of the y axis, one for all panels.
        palette: Of the page.
        band: What the shading means.
        higher_is_better: Whether the best value is the highest.
        narrow: Whether it is drawn on a phone.
    """
    panels = panels_of(series, arrangement.panel)
    names = [title for title, _ in panels]
    grid = Grid(
        panel_titles(names, narrow=narrow),
        NARROW_PANEL if narrow else TALL_PANEL if len(panels) <= 2 else PANEL,
        columns_for(names, narrow=narrow),
        narrow=narrow,
    )
    traces: list[Trace] = []
    told: set[str] = set()
    naming = Naming(varied(series))
    marked = len(series) <= MOST_MARKED
    for place, (_, lines) in enumerate(panels):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        for line in lines:
            mode = "lines+markers" if marked or _has_lone_mean(line) else "lines"
            traces += _curve(line, naming, arrangement, styles[line.id], mode, band, axes, told)
            if len(lines) <= MOST_BANDS:
                group = {"legendgroup": _group(line, arrangement), **axes}
                traces[:0] = band_traces(line.points, styles[line.id], scale, group)
        traces += optimum(
            lines, arrangement.colour, styles, palette, higher_is_better=higher_is_better, **axes
        )
        traces += folded_rail(lines, scale, palette, at=scale.lifted(1 + RAIL / 2), **axes)
    figure.add_traces(traces)
    rates = [point.lr for line in series for point in line.points]
    top = scale.lifted(1 + RAIL)
    tall = Scale(scale.low, top, scale.log)
    grid.lay_out(
        figure,
        rate_axis(rates, narrow=narrow, columns=grid.columns),
        {
            "type": "log" if scale.log else "linear",
            "range": tall.range,
            "tickformat": "~g" if scale.log else "",
            "dtick": scale.tick,
            "nticks": 6,
        },
        palette,
    )
    for place in range(len(panels)):
        _, (_low, high) = grid.domain(place)
        across, (low, _) = grid.domain(place)
        foot = low + (high - low) / (1 + RAIL)
        figure.add_shape(
            type="rect",
            xref="paper",
            yref="paper",
            x0=across[0],
            x1=across[1],
            y0=foot,
            y1=high,
            fillcolor=palette.rail,
            line={"width": 0},
            layer="below",
        )
    return grid


def _group(line: SeriesRead, arrangement: Arrangement) -> str:
    """Return what the legend switches together: all series of one colour."""
    if arrangement.colour is None:
        return line.method
    return f"{arrangement.colour.name} {arrangement.colour.place(line)}"


def _has_lone_mean(line: SeriesRead) -> bool:
    """Return whether a mean has no neighbour to be joined with: a line alone would not show it."""
    known = [False, *(point.mean is not None for point in line.points), False]
    return any(here and not (known[i] or known[i + 2]) for i, here in enumerate(known[1:-1]))


def _curve(
    line: SeriesRead,
    naming: Naming,
    arrangement: Arrangement,
    style: SeriesStyle,
    mode: str,
    band: str,
    axes: dict[str, str],
    told: set[str],
) -> Iterator[Trace]:
    name = literal(naming.of(line))
    colour = arrangement.colour.name if arrangement.colour else "method"
    panel = arrangement.panel.names if arrangement.panel else ()
    key = literal(naming.of(line, colour))
    # What neither colour nor panel tells the legend has to: a series of its own each.
    rest = [s.name for s in naming.settings if s.name not in (colour, *panel)]
    entry = literal(naming.of(line, colour, *rest)) if rest else key
    group = {"legendgroup": _group(line, arrangement), **axes}
    yield from finite_mean_trace(line, name, style, band, group)
    yield scatter(
        x=[point.lr for point in line.points],
        y=[point.mean for point in line.points],
        mode=mode,
        name=entry,
        showlegend=entry not in told,
        legendrank=1000 + (arrangement.colour.place(line) if arrangement.colour else 0),
        line={"color": style.colour, "dash": style.dash, "width": min(style.width, 2)},
        marker={"symbol": style.marker, "size": 5.5, "color": style.colour},
        hovertext=[mean_hover(name, point, band) for point in line.points],
        hoverinfo="text",
        customdata=[trials_of(point) for point in line.points],
        meta="mean",
        **group,
    )
    told.add(entry)


def optimum(
    lines: Sequence[SeriesRead],
    along: Setting | None,
    styles: dict[str, SeriesStyle],
    palette: Palette,
    *,
    higher_is_better: bool,
    **axes: str,
) -> Iterator[Trace]:
    """Yield a ring around every curve's best rate, joined along an ordered setting."""
    groups = join_order(lines, along) if along and along.ordered else [[line] for line in lines]
    for group in groups:
        found = [(line, best_point(line, higher_is_better=higher_is_better)) for line in group]
        best = [(line, point) for line, point in found if point is not None]
        if not best:
            continue
        joined = len(best) > 1
        yield scatter(
            x=[point.lr for _, point in best],
            y=[point.mean for _, point in best],
            mode="lines+markers" if joined else "markers",
            line={"color": palette.text, "width": 1.4, "dash": "dot"},
            marker={
                "symbol": "circle-open",
                "size": 11,
                "color": [styles[line.id].ink if not joined else palette.text for line, _ in best],
                "line": {"width": 1.4},
            },
            hoverinfo="skip",
            showlegend=False,
            meta="best",
            **axes,
        )


def folded_rail(
    lines: Sequence[SeriesRead], scale: Scale, palette: Palette, *, at: float, **axes: str
) -> Iterator[Trace]:
    """Yield one line of marks for all curves: how many of their seeds broke or left the scale."""
    by_rate: dict[float, list[tuple[SeriesRead, RailEntry]]] = {}
    seeds: dict[float, int] = {}
    for line in lines:
        for entry in rail_entries(line, scale):
            by_rate.setdefault(entry.point.lr, []).append((line, entry))
        for point in line.points:
            seeds[point.lr] = seeds.get(point.lr, 0) + point.n
    if not by_rate:
        return
    rates = sorted(by_rate)
    gone = {lr: sum(e.diverged + len(e.off_scale) for _, e in by_rate[lr]) for lr in rates}
    yield scatter(
        x=rates,
        y=[at] * len(rates),
        mode="markers",
        marker={
            "symbol": "triangle-up",
            "size": [6 + 7 * gone[lr] / seeds[lr] for lr in rates],
            "color": palette.muted,
        },
        hovertext=[_rail_words(lr, gone[lr], seeds[lr], by_rate[lr]) for lr in rates],
        hoverinfo="text",
        customdata=[
            OPEN_RAIL if len(lines) > 1 else opens(_lost(by_rate[lr][0][1])) for lr in rates
        ],
        showlegend=False,
        cliponaxis=False,
        meta="rail folded",
        **axes,
    )


def _lost(entry: RailEntry) -> list[int]:
    diverged = [one.trial_id for one in entry.point.seeds if one.outcome == "diverged"]
    return [*diverged, *entry.off_scale]


def _rail_words(
    lr: float, gone: int, seeds: int, entries: Sequence[tuple[SeriesRead, RailEntry]]
) -> str:
    naming = Naming(varied([line for line, _ in entries]))
    told = [
        f"{literal(naming.of(line))}: {entry.diverged} diverged"
        + (f", {len(entry.off_scale)} off scale" if entry.off_scale else "")
        for line, entry in entries[:MOST_NAMED]
    ]
    more = len(entries) - MOST_NAMED
    rest = [f"and {counted(more, 'more curve')}"] if more > 0 else []
    words = f"<b>{gone} of {counted(seeds, 'seed')} diverged or off scale</b>"
    return "<br>".join([words, f"learning rate {number(lr)}", *told, *rest])
