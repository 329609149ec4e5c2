"""Heat maps: loss, or the share that broke, over rate and a setting, or over rate and epoch."""

import math
import textwrap
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from backend.schemas import LearningSeriesRead, ScorecardRow, SeriesRead
from dashboard.figures.families import MOST_PANELS, Naming, Setting, say, setting_over, varied
from dashboard.figures.panels import Grid, columns_for, panel_titles, rate_axis
from dashboard.figures.scale import Scale, choose_scale, step_edges
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import Trace, best_point, scatter
from dashboard.figures.wording import axis_title, caption_words, literal, title_words
from dashboard.theme import BROKEN, PALETTE, number, template

EPOCH = "epoch"
#: Letters of a row's name on a phone.
NARROW_TICK = 12
#: Longer names of rows take room from panels beside each other.
LONG = 8
#: Pixels: a row of a map of settings, a map over epochs, and its legend of colours.
ROW, LEAST, TALL, BAR = 34, 150, 220, 64
#: What is drawn on a cell of any colour: white, on black.
ON_CELLS, UNDER = "#FFFFFF", "rgba(0,0,0,0.55)"
#: Share of broken seeds from which a rate is broken, as in the strip.
BROKEN_FROM = 0.5


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a map.

    Attributes:
        lr: Its rate.
        value: What its colour means; None: not finite.
        broken: Share of its seeds that broke.
    """

    lr: float
    value: float | None
    broken: float


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a map.

    Attributes:
        cells: By ascending rate.
        best: The rate with the best value.
        edge: Where half the seeds break, with its interval; None where it is not known.
    """

    cells: list[Cell]
    best: float | None = None
    edge: tuple[float, float | None, float | None] | None = None


def map_figure(
    series: Sequence[SeriesRead],
    rows: Sequence[ScorecardRow],
    picture: Picture,
    *,
    learning: Mapping[str, LearningSeriesRead] | None = None,
    initial: float | None = None,
) -> go.Figure:
    """Return a map over rate and a setting or, with losses over training, over rate and epoch.

    Args:
        series: The curves.
        rows: Their scorecard rows, for edges and broken seeds.
        picture: How to draw them.
        learning: Losses over training by series' id; None: the map is over a setting.
        initial: The loss before training.
    """
    drawn = [line for line in series if line.points]
    known = {row.id: row for row in rows}
    scale = choose_scale(drawn, picture.metric, picture.scale, initial)
    over = None
    if learning is None:
        over = setting_over(drawn, picture.family.over)
        panels = _over_setting(drawn, known, over, picture)
        ticks = [_tick(over, value, picture) for value in over.values] if over else [""]
        height = max(LEAST, ROW * len(ticks))
        name = over.name.replace("_", " ") if over else ""
    else:
        drawn = [line for line in drawn if line.id in learning]
        panels = [_over_epochs(line, learning[line.id], known, drawn, picture) for line in drawn]
        ticks, height, name = [], TALL, "epoch"
    left, panels = len(panels) - MOST_PANELS, panels[:MOST_PANELS]
    names = [title for title, *_ in panels]
    columns = 1 if picture.narrow else columns_for(names, narrow=False)
    titles = panel_titles(names, narrow=picture.narrow)
    grid = Grid(titles, height, columns, narrow=picture.narrow)
    figure = go.Figure(layout={"template": template(picture.scheme)})
    palette = PALETTE[picture.scheme]
    ink = (palette.text, palette.paper) if picture.family.cell == "broken" else (ON_CELLS, UNDER)
    joined = learning is not None or (over is not None and over.ordered)
    for place, (_, levels, found) in enumerate(panels):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        figure.add_traces(_cells(levels, found, scale, picture, axes, axis=name))
        figure.add_traces(_lines(levels, found, axes, ink, bars=learning is None, joined=joined))
    ends = sorted(end for _, places, _ in panels for end in _bounds(places))
    span = [ends[0], ends[-1]] if joined else [ends[-1], ends[0]]  # names are read downwards
    grid.lay_out(
        figure,
        rate_axis(
            [p.lr for line in drawn for p in line.points],
            narrow=picture.narrow,
            columns=grid.columns + (max(map(len, ticks), default=0) > LONG and grid.columns > 1),
        ),
        {"showgrid": False, "zeroline": False, "range": span}
        | ({"tickvals": list(range(len(ticks))), "ticktext": ticks} if ticks else {}),
        palette,
    )
    what = "share of seeds that broke" if picture.family.cell == "broken" else "mean"
    about = f"{what} over rate and {name}" if name else what
    grid.frame(
        figure,
        title_words(picture.title, about, narrow=picture.narrow),
        [],
        axis="learning rate",
        # Names are long and speak for themselves; the title says what they are.
        side=name if learning is not None or (over and over.ordered) else "",
    )
    grid.say_left(figure, left, palette)
    _add_legend(figure, grid, drawn, scale, picture)
    figure.update_layout(
        meta={
            "label": _spoken(panels, about, [tick.replace("<br>", " ") for tick in ticks]),
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title)
            + (" Line: best rate. Dashed: " if joined else " Dots: best rates. Strokes: ")
            + "where half the seeds break, with its 95 % interval.",
            "rates": False,
        },
        uirevision=picture.revision or "same",
    )
    return figure


Panel = tuple[str, list[float], list[Row]]


def _tick(over: Setting, value: Any, picture: Picture) -> str:
    text = say(over.name, value).removeprefix(f"{over.name.replace('_', ' ')} ")
    lines = textwrap.wrap(text, NARROW_TICK) if picture.narrow else [text]
    return "<br>".join(literal(line) for line in lines)


def _over_setting(
    series: Sequence[SeriesRead],
    known: Mapping[str, ScorecardRow],
    over: Setting | None,
    picture: Picture,
) -> list[Panel]:
    """Return a panel for every set of the other settings: its title, places and rows."""
    settings = varied(series)
    naming = Naming(settings, frozenset([over.name] if over else []))
    groups: dict[str, list[SeriesRead]] = {}
    for line in series:
        told = naming.of(line) if any(s.name not in naming.without for s in settings) else ""
        groups.setdefault(told, []).append(line)
    panels = []
    for title, lines in groups.items():
        placed = sorted((over.place(line) if over else 0, line.id, line) for line in lines)
        rows = [_row(line, known.get(line.id), picture) for _, _, line in placed]
        panels.append((title, [float(place) for place, _, _ in placed], rows))
    return panels


def _row(line: SeriesRead, row: ScorecardRow | None, picture: Picture) -> Row:
    best = best_point(line, higher_is_better=picture.upwards)
    broke = {cell.lr: cell.broke / max(cell.n, 1) for cell in row.strip.cells} if row else {}
    return Row(
        [Cell(p.lr, p.mean, broke.get(p.lr, p.diverged / max(p.n, 1))) for p in line.points],
        best.lr if best else None,
        _edge(row),
    )


def _edge(row: ScorecardRow | None) -> tuple[float, float | None, float | None] | None:
    edge = row.metrics.get("edge") if row else None
    if edge is None or edge.value is None or edge.censored != "none":
        return None
    return edge.value, edge.low, edge.high


def _over_epochs(
    line: SeriesRead,
    learning: LearningSeriesRead,
    known: Mapping[str, ScorecardRow],
    series: Sequence[SeriesRead],
    picture: Picture,
) -> Panel:
    """Return a series' panel: a row for every evaluation behind the first step."""
    epochs = sorted({epoch for rate in learning.rates for epoch in rate.epochs if epoch > 0})
    by_rate = [(rate, {epoch: i for i, epoch in enumerate(rate.epochs)}) for rate in learning.rates]
    edge = _edge(known.get(line.id))
    rows = []
    for epoch in epochs:
        cells = [
            Cell(rate.lr, rate.mean[at[epoch]], rate.broken[at[epoch]] / max(rate.n, 1))
            for rate, at in by_rate
            if epoch in at
        ]
        finite = [cell for cell in cells if cell.value is not None]
        sign = -1 if picture.upwards else 1
        best = min(finite, key=lambda cell: sign * (cell.value or 0.0), default=None)
        rows.append(Row(cells, best.lr if best else None, edge))
    title = Naming(varied(series)).of(line)
    return title, epochs, rows


def _bounds(places: Sequence[float]) -> list[float]:
    """Return where each place's row begins and ends, half-way to its neighbours."""
    middles = [(a + b) / 2 for a, b in pairwise(places)]
    half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
    last = (places[-1] - places[-2]) / 2 if len(places) > 1 else 0.5
    return [places[0] - half, *middles, places[-1] + last]


def _cells(
    places: Sequence[float],
    rows: Sequence[Row],
    scale: Scale,
    picture: Picture,
    axes: dict[str, str],
    *,
    axis: str,
) -> list[Trace]:
    """Return a panel's cells; rows with other rates have cells of other widths."""
    edges = [step_edges([cell.lr for cell in row.cells]) for row in rows]
    across = sorted({float(f"{edge:.10g}") for own in edges for edge in own})
    middles = [math.sqrt(a * b) for a, b in pairwise(across)]
    colours: list[list[float | None]] = []
    lost: list[list[float | None]] = []
    told: list[list[list[Any]]] = []
    for row, own in zip(rows, edges, strict=True):
        cells = [_cell_at(row, own, lr) for lr in middles]
        share = picture.family.cell == "broken"
        colours.append([_colour(cell, scale, share=share) for cell in cells])
        lost.append([1.0 if _is_broken(cell) and not share else None for cell in cells])
        told.append([_told(cell) for cell in cells])
    common = {"x": across, "y": _bounds(places), "customdata": told, **axes}
    hover = (
        "learning rate %{customdata[0]}<br>"
        + (f"{axis} %{{y}}<br>" if axis == EPOCH else "")
        + "mean %{customdata[1]}<br>%{customdata[2]} of the seeds broke<extra></extra>"
    )
    found: list[Trace] = [
        {"type": "heatmap", "z": colours, "coloraxis": "coloraxis", "hovertemplate": hover,
         "hoverongaps": False, "meta": "cells", **common},
    ]  # fmt: skip
    if any(one for row in lost for one in row):
        look = {"colorscale": [[0, BROKEN], [1, BROKEN]], "showscale": False}
        found.append(
            {"type": "heatmap", "z": lost, "hovertemplate": hover, "hoverongaps": False,
             "meta": "broken", **look, **common}
        )  # fmt: skip
    return found


def _cell_at(row: Row, edges: Sequence[float], lr: float) -> Cell | None:
    place = bisect_right(edges, lr) - 1
    return row.cells[place] if 0 <= place < len(row.cells) else None


def _is_broken(cell: Cell | None) -> bool:
    return cell is not None and (cell.value is None or cell.broken >= BROKEN_FROM)


def _colour(cell: Cell | None, scale: Scale, *, share: bool) -> float | None:
    if cell is None or (_is_broken(cell) and not share):
        return None
    if share:
        return cell.broken
    value = min(cell.value or 0.0, scale.high)
    return math.log10(max(value, scale.low)) if scale.log else value


def _told(cell: Cell | None) -> list[Any]:
    if cell is None:
        return ["", "", ""]
    mean = "not finite" if cell.value is None else number(cell.value)
    return [number(cell.lr), mean, f"{round(100 * cell.broken)} %"]


def _lines(
    places: Sequence[float],
    rows: Sequence[Row],
    axes: dict[str, str],
    ink: tuple[str, str],
    *,
    bars: bool,
    joined: bool,
) -> list[Trace]:
    """Return the optimum and the edge with its interval, as lines if the rows have an order."""
    best = [(row.best, place) for place, row in zip(places, rows, strict=True) if row.best]
    edge = [(row.edge, place) for place, row in zip(places, rows, strict=True) if row.edge]
    look = {"hoverinfo": "skip", "showlegend": False, **axes}
    xs, ys = [at for (at, _, _), _ in edge], [place for _, place in edge]
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [(high or at) - at for (at, _, high), _ in edge],
        "arrayminus": [at - (low or at) for (at, low, _), _ in edge],
        "color": ink[0],
        "thickness": 1.4,
        "width": 4,
        "visible": bars,
    }
    wide, thin = {"color": ink[1], "width": 5}, {"color": ink[0], "width": 2}
    plain, marked = ("lines", "lines+markers") if joined else ("markers", "markers")
    stroke = {"symbol": "line-ns-open", "size": 15, "color": ink[0], "line": {"width": 2}}
    dotted, ends = {**thin, "dash": "dot"}, {"marker": stroke, "error_x": whiskers}
    found = [
        scatter(x=xs, y=ys, mode="lines", line=wide, meta="edge ground", **look),
        scatter(x=xs, y=ys, mode=plain, line=dotted, meta="edge", **ends, **look),
    ]
    xs, ys = [lr for lr, _ in best], [place for _, place in best]
    mark = {"size": 8, "color": ink[0], "line": {"color": ink[1], "width": 1}}
    found = [
        *(found if edge else []),
        scatter(x=xs, y=ys, mode="lines", line=wide, meta="best ground", **look),
        scatter(x=xs, y=ys, mode=marked, line=thin, marker=mark, meta="best", **look),
    ]
    return [one for one in found if joined or "ground" not in one["meta"]]


def _add_legend(
    figure: go.Figure, grid: Grid, series: Sequence[SeriesRead], scale: Scale, picture: Picture
) -> None:
    """Say what the colours mean, below all panels."""
    share = picture.family.cell == "broken"
    title = "share broken" if share else axis_title(series, picture.metric, picture.reducer)
    low, high = (0.0, 1.0) if share else tuple(scale.range)
    ticks: dict[str, Any] = {}
    if scale.log and not share:
        powers = range(math.ceil(low), math.floor(high) + 1)
        ends = [low, high] if len(powers) < 2 else list(powers)
        ticks = {"tickvals": ends, "ticktext": [number(10**end) for end in ends]}
    palette = PALETTE[picture.scheme]
    turned = not picture.upwards
    colours = [[0, palette.rail], [1, BROKEN]] if share else "Viridis"
    room = BAR + (24 if picture.narrow else 0)
    margin = figure.layout.margin.b + room
    figure.update_layout(
        height=figure.layout.height + room,
        margin={"b": margin},
        coloraxis={
            "colorscale": colours,
            "reversescale": turned and not share,
            "cmin": low,
            "cmax": high,
            "colorbar": {
                "orientation": "h",
                "thickness": 12,
                "len": 0.9 if picture.narrow else 0.55,
                "x": 0,
                "xanchor": "left",
                "y": -(margin - room + 4) / grid.inner,
                "yanchor": "top",
                "title": {"text": title, "side": "bottom", "font": {"size": 12}},
                "outlinewidth": 0,
                **ticks,
            },
        },
    )
    if not share:
        figure.add_annotation(
            text=f"<span style='color:{BROKEN}'>■</span> broken: half its seeds, or no mean",
            showarrow=False,
            xref="paper",
            yref="paper",
            x=1,
            xanchor="right",
            y=-(margin - room + 4) / grid.inner,
            yanchor="top",
            yshift=-58 if picture.narrow else 0,
            name="broken",
            font={"size": 12},
        )


def _spoken(panels: Sequence[Panel], about: str, ticks: Sequence[str]) -> str:
    told = []
    for title, places, rows in panels:
        named = [
            f"{ticks[int(place)] if ticks else number(place)} best at {number(row.best)}"
            for place, row in zip(places, rows, strict=True)
            if row.best is not None
        ]
        told.append(f"{title or 'all'}: {', '.join(named[:12]) or 'no finite mean'}")
    return f"Map, {about}. {'; '.join(told)}."
