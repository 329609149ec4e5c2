"""Small multiples, panels that share their axes: loss against the rate, the best of k rates."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from backend.schemas import BestOfRead, ScorecardRow, SeriesRead
from dashboard.figures.divergence import folded_rail
from dashboard.figures.families import (
    AnyLine,
    Arrangement,
    Naming,
    Setting,
    arrange,
    join_order,
    panels_of,
    styles,
    varied,
)
from dashboard.figures.panels import (
    AXIS,
    PHONE,
    TITLE,
    TITLE_LINE,
    WIDE,
    Grid,
    columns_for,
    ground,
    legend_place,
    panel_titles,
    rate_axis,
    rate_range,
    title_place,
)
from dashboard.figures.scale import Scale
from dashboard.figures.traces import (
    Trace,
    band_traces,
    best_point,
    finite_mean_trace,
    scatter,
    trials_of,
)
from dashboard.figures.wording import (
    PHONE_LETTERS,
    caption_words,
    error_words,
    literal,
    mean_hover,
    only_words,
    series_name,
    series_names,
    title_lines,
    title_words,
)
from dashboard.theme import PALETTE, Palette, SeriesStyle, faint, number, template

if TYPE_CHECKING:
    from dashboard.figures.sensitivity import Picture

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
    span = rate_range(rates := [point.lr for line in series for point in line.points])
    room = (PHONE if narrow else WIDE) / grid.columns
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
        at = scale.lifted(1 + RAIL / 2)
        traces += folded_rail(lines, scale, palette, at=at, span=span, room=room, **axes)
    figure.add_traces(traces)
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
        shade = ground(foot, high, palette.rail)
        figure.add_shape(**{**shade, "x0": across[0], "x1": across[1]})
    return grid


def bands_drawn(series: Sequence[SeriesRead], arrangement: Arrangement) -> bool:
    """Return whether some panel has few enough curves for their bands."""
    return any(len(own) <= MOST_BANDS for _, own in panels_of(series, arrangement.panel))


def _group(line: AnyLine, arrangement: Arrangement) -> str:
    """Return what the legend switches together: all series of one colour."""
    if arrangement.colour is None:
        return line.method
    return f"{arrangement.colour.name} {arrangement.colour.place(line)}"


def _has_lone_mean(line: SeriesRead) -> bool:
    """Return whether a mean has no neighbour to be joined with: a line alone would not show it."""
    known = [False, *(point.mean is not None for point in line.points), False]
    return any(here and not (known[i] or known[i + 2]) for i, here in enumerate(known[1:-1]))


def _entry(line: AnyLine, naming: Naming, arrangement: Arrangement) -> str:
    """Return a line's name in the legend: what its colour tells, and what no panel tells."""
    colour = arrangement.colour.name if arrangement.colour else "method"
    panel = arrangement.panel.names if arrangement.panel else ()
    rest = [s.name for s in naming.settings if s.name not in (colour, *panel)]
    return literal(naming.of(line, colour, *rest))


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
    name, entry = literal(naming.of(line)), _entry(line, naming, arrangement)
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


# --- What a search can expect: the best of k rates against k

BEST_OF = 400
#: More lines than this in one picture, and their bands are one grey; the hover has them.
MOST_INTERVALS = 6


def best_of_figure(rows: Sequence[ScorecardRow], picture: "Picture") -> go.Figure:
    """Return the expected best of k = 1 to 20 rates of every series, with its band if they are few.

    Args:
        rows: The series, in the order of the legend.
        picture: How to draw them.
    """
    drawn = [row for row in rows if _known(row)]
    picture = picture.of(drawn)
    arrangement = arrange(drawn, picture.family)
    looks = styles(drawn, arrangement, picture.scheme)
    naming, names = Naming(varied(drawn)), series_names(drawn)
    panels = panels_of(drawn, arrangement.panel)
    most = MOST_INTERVALS if len(panels) == 1 else MOST_BANDS
    banded = any(len(own) <= most for _, own in panels)
    told = "expected best of k rates" + (", with its 95 % interval" if banded else "")
    only = only_words(picture.family.only)
    words = f"{told}, only {only}" if only else told
    title = title_words(picture.title, words, narrow=picture.narrow)
    tall = NARROW_PANEL if picture.narrow else TALL_PANEL if len(panels) <= 2 else PANEL
    titles = [one for one, _ in panels]
    columns = columns_for(titles, narrow=picture.narrow)
    grid = Grid(panel_titles(titles, narrow=picture.narrow), tall, columns, narrow=picture.narrow)
    figure = go.Figure(layout={"template": template(picture.scheme)})
    seen: set[str] = set()
    for place, (_, own) in enumerate(panels):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        for row in own:
            entry, group = _entry(row, naming, arrangement), _group(row, arrangement)
            long = picture.narrow and len(names[row.id]) > PHONE_LETTERS
            name = literal(series_name(row, row.label, narrow=True) if long else names[row.id])
            if arrangement.panel is None:
                entry, group = name, row.id
            look = {"legendgroup": group, "showlegend": entry not in seen, **axes}
            few = len(own) <= most
            figure.add_traces(list(_expected(row, looks[row.id], name, entry, look, banded=few)))
            seen.add(entry)
    legend = [trace.name for trace in figure.data if trace.showlegend]
    across = {"tickvals": [1, 5, 10, 15, 20], "range": [0.5, 20.5]}
    axis, side = "k, rates tried at random", f"expected best {error_words(picture.metric)}"
    if arrangement.panel is None:
        _lay_out_one(figure, legend, title, picture.narrow)
        figure.update_layout(
            xaxis={"title": {"text": axis}, **across},
            yaxis={"title": {"text": side}, **_up(drawn, picture)},
        )
    else:
        values = [y for one in figure.data for y in one.y if y is not None]
        up = {"nticks": 6, "range": [0, 1.05 * max(values)], **_up(drawn, picture)}
        grid.lay_out(figure, across, up, PALETTE[picture.scheme])
        grid.frame(figure, title, legend, axis=axis, side=side)
    figure.update_layout(
        meta={
            "label": _spoken(drawn, picture),
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title)
            + f" Drawn: {told}; the rates are tried at random.",
            "rates": False,
        },
        uirevision=picture.revision or "same",
    )
    return figure


def _lay_out_one(figure: go.Figure, legend: Sequence[str], title: str, narrow: bool) -> None:
    """Give one panel its room, title and legend."""
    place, above, below = legend_place(legend, BEST_OF, narrow=narrow)
    above += TITLE + TITLE_LINE * (title_lines(title) - 1)
    below += AXIS
    figure.update_layout(
        height=BEST_OF + above + below,
        margin={"l": 60 if narrow else 72, "r": 16, "t": above, "b": below},
        title={"text": title, **title_place(title_lines(title))},
        legend=place,
        hovermode="closest",
    )


def _up(rows: Sequence[ScorecardRow], picture: "Picture") -> dict[str, Any]:
    values = [one.value for row in rows for one in _known(row) if one.value is not None]
    if picture.scale == "log" and values and min(values) > 0:
        low, high = math.log10(min(values)), math.log10(max(values))
        margin = 0.08 * (high - low) or 0.1
        tick = 1 if high - low > 1 else "D2"
        return {
            "type": "log", "tickformat": "~g", "dtick": tick, "range": [low - margin, high + margin]
        }  # fmt: skip
    return {"rangemode": "tozero"} if picture.scale == "full" else {}


def _known(row: ScorecardRow) -> list[BestOfRead]:
    return [one for one in row.best_of if one.value is not None]


def _expected(
    row: ScorecardRow,
    style: SeriesStyle,
    name: str,
    entry: str,
    look: dict[str, Any],
    *,
    banded: bool,
) -> Iterator[Trace]:
    found = _known(row)
    sure = [one for one in found if one.low is not None and one.high is not None]
    if banded and len(sure) > 1:
        ks = [one.k for one in sure]
        yield scatter(
            x=[*ks, *reversed(ks)],
            y=[*(one.low for one in sure), *(one.high for one in reversed(sure))],
            fill="toself",
            fillcolor=faint(style.colour, 0.16),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            meta="band",
            **{**look, "showlegend": False},
        )
    yield scatter(
        x=[one.k for one in found],
        y=[one.value for one in found],
        mode="lines+markers",
        name=entry,
        line={"color": style.colour, "dash": style.dash, "width": min(style.width, 2)},
        marker={"symbol": style.marker, "size": 5.5, "color": style.colour},
        hovertext=[_best_hover(name, one) for one in found],
        hoverinfo="text",
        meta="best of k",
        **look,
    )


def _best_hover(name: str, one: BestOfRead) -> str:
    lines = [f"<b>{name}</b>", f"best of {one.k}: {number(one.value)}"]
    if one.low is not None and one.high is not None:
        lines.append(f"95 %: {number(one.low)} to {number(one.high)}")
    return "<br>".join(lines)


def _spoken(rows: Sequence[ScorecardRow], picture: "Picture") -> str:
    told = []
    for row in rows:
        by_k = {one.k: number(one.value) for one in _known(row)}
        said = ", ".join(f"best of {k} {by_k[k]}" for k in (1, 3, 10, 20) if k in by_k)
        told.append(f"{series_name(row, row.label)}, {said}")
    return (
        f"Expected best {error_words(picture.metric)} of k rates: {'; '.join(told) or 'no curve'}."
    )
