"""Two curves seed by seed: the first minus the second, as line and scatter, training and test."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from backend.schemas import (
    DifferenceKind,
    DifferencesRead,
    PairedPointRead,
    PairedRead,
    ScorecardRow,
)
from dashboard.figures.divergence import (
    SIDES,
    Lane,
    folded,
    height_of,
    off_scale,
    pair_rail_traces,
    rail_axis,
    rail_legend,
)
from dashboard.figures.panels import (
    AXIS,
    TITLE,
    TITLE_LINE,
    ground,
    legend_place,
    rate_axis,
    title_place,
)
from dashboard.figures.scale import Scale, focus
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import MOST_DOTS, dashes, scatter
from dashboard.figures.wording import (
    NARROW_LETTERS,
    QUANTITY,
    caption_words,
    lane_names,
    literal,
    title_lines,
    title_words,
)
from dashboard.theme import (
    METHOD_STYLE,
    PALETTE,
    Palette,
    SeriesStyle,
    counted,
    faint,
    number,
    series_style,
    signed,
    template,
)

WORDS: dict[DifferenceKind, str] = {
    "method": "minus EB",
    "clip": "clipped minus unclipped",
    "engine": "an engine minus the one before",
}
PANEL, GAP = 260, 64


@dataclass(frozen=True, slots=True)
class _Panel:
    """One view of the figure: its rails, and its place.

    Attributes:
        view: What it shows.
        scale: How far its axis reaches either way.
        styles: Of its differences, in their order.
        higher: What is on the rail above.
        lower: What is on the rail below.
    """

    view: DifferencesRead
    scale: float
    styles: list[SeriesStyle]
    higher: list[Lane]
    lower: list[Lane]

    @property
    def height(self) -> int:
        return height_of(self.higher) + PANEL + height_of(self.lower)


def difference_figure(
    views: Sequence[DifferencesRead],
    picture: Picture,
    *,
    initial: float | None = None,
    rows: Sequence[ScorecardRow] = (),
) -> go.Figure:
    """Return one panel for each view (training, test); below zero the first curve is better.

    Args:
        views: What to draw.
        picture: How to draw it.
        initial: The loss before training: no run that learns is further from another.
        rows: The series of the study, for the caption.
    """
    picture = picture.of(rows)
    figure = go.Figure(layout={"template": template(picture.scheme)})
    panels = [_panel(view, picture, initial) for view in views]
    inner = sum(panel.height for panel in panels) + GAP * (len(panels) - 1)
    top = float(inner)
    for row, panel in enumerate(panels):
        _add_panel(figure, panel, picture, row=row, top=top, inner=inner, of=len(panels))
        top -= panel.height + GAP
    for side in SIDES:
        if any(getattr(panel, side) for panel in panels):
            figure.add_trace(rail_legend(side, PALETTE[picture.scheme].muted))
    _lay_out(figure, views, picture, inner, rows)
    return figure


def _caption(
    views: Sequence[DifferencesRead], picture: Picture, rows: Sequence[ScorecardRow]
) -> str:
    compared = {id for view in views for item in view.items for id in (item.first, item.second)}
    drawn = [row for row in rows if row.id in compared]
    if not drawn:
        return ""
    told = caption_words(drawn, views[0].metric, picture.reducer, picture.title)
    return (
        f"{told} Drawn: {WORDS[views[0].kind]}, {_quantity(*views)}, paired by seed; below 0 is "
        "better. Band: 95 % bootstrap interval of the mean."
    )


def _lay_out(
    figure: go.Figure,
    views: Sequence[DifferencesRead],
    picture: Picture,
    inner: int,
    rows: Sequence[ScorecardRow],
) -> None:
    """Give room to title and legend."""
    named = [trace.name for trace in figure.data if trace.showlegend is not False]
    legend, above, below = legend_place(named, inner, narrow=picture.narrow)
    title = _title(views, picture)
    above += TITLE + TITLE_LINE * (title_lines(title) - 1)
    below += AXIS
    last = "" if len(views) == 1 else str(len(views))
    figure.update_layout(
        {
            "height": inner + above + below,
            "margin": {"l": 72, "r": 16, "t": above, "b": below},
            "title": {"text": title, **title_place(title_lines(title))},
            "meta": {"label": _spoken(views, picture), "caption": _caption(views, picture, rows)},
            "legend": legend,
            "hovermode": "closest",
            "uirevision": picture.revision or "same",
            f"xaxis{last}_title_text": "learning rate",
        }
    )


def _panel(view: DifferencesRead, picture: Picture, initial: float | None) -> _Panel:
    scale = focus(view, full=picture.scale == "full", initial=initial)
    styles = _styles(view, picture)
    found = [off_scale(item, scale) for item in view.items]
    higher = [[(lr, above) for lr, _, above in own if above] for own in found]
    lower = [[(lr, below) for lr, below, _ in own if below] for own in found]
    sides = [_lanes(view, styles, marks) for marks in (higher, lower)]
    if picture.family.rail != "open":
        sides = [folded(lanes, PALETTE[picture.scheme].muted) for lanes in sides]
    return _Panel(view, scale, styles, *sides)


def _lanes(
    view: DifferencesRead, styles: Sequence[SeriesStyle], marks: list[list[tuple[float, int]]]
) -> list[Lane]:
    names = lane_names([_short(item.first_label) for item in view.items])
    return [
        Lane(literal(name), literal(name_of(item)), style, marked, name_of(item))
        for name, item, style, marked in zip(names, view.items, styles, marks, strict=True)
        if marked
    ]


def _styles(view: DifferencesRead, picture: Picture) -> list[SeriesStyle]:
    seen: Counter[tuple[str, bool]] = Counter()
    styles = []
    for item in view.items:
        look = (item.first_label.partition(", ")[0], "clip" in item.first_label)
        method, clipped = look
        styles.append(series_style(method, picture.scheme, clipped=clipped, variant=seen[look]))
        seen[look] += 1
    return styles


def _add_panel(
    figure: go.Figure,
    panel: _Panel,
    picture: Picture,
    *,
    row: int,
    top: float,
    inner: int,
    of: int,
) -> None:
    axis = "" if row == 0 else str(row + 1)
    view, scale = panel.view, panel.scale
    many = sum(len(item.pairs) for item in view.items) > MOST_DOTS
    for item, style in zip(view.items, panel.styles, strict=True):
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": name_of(item)}
        pairs = _pairs(item, style, Scale(-scale, scale), place, many=many)
        bands = _interval(item, style, scale, place)
        figure.add_traces([*bands, *(pairs if picture.seeds else ())])
        look = {"in_legend": row == 0, "narrow": picture.narrow}
        figure.add_trace(_mean(item, style, scale, place, **look))
    rates = [point.lr for item in view.items for point in item.points if point.lr]
    x_axis = rate_axis(rates, narrow=picture.narrow)
    low, high = x_axis["range"]
    main = top - height_of(panel.higher)
    bottom = main - PANEL - height_of(panel.lower)
    palette: Palette = PALETTE[picture.scheme]
    edges = {"higher": (main, top), "lower": (bottom, main - PANEL)}
    anchor = f"y{axis}"
    for index, side in enumerate(SIDES):
        lanes = getattr(panel, side)
        if not lanes:
            continue
        rail = of + 2 * row + index + 1
        domain = [edge / inner for edge in edges[side]]
        place = {"xaxis": f"x{axis}", "yaxis": f"y{rail}"}
        narrow = picture.narrow
        figure.add_traces(
            list(pair_rail_traces(lanes, side, place, decades=high - low, narrow=narrow))
        )
        figure.update_layout({f"yaxis{rail}": rail_axis(lanes, domain, f"x{axis}")})
        figure.add_shape(**ground(domain[0], domain[1], palette.rail))
        anchor = f"y{rail}" if side == "lower" else anchor
    figure.update_layout(
        {
            f"xaxis{axis}": {**x_axis, "anchor": anchor, "matches": "x" if axis else None},
            f"yaxis{axis}": {
                "domain": [(main - PANEL) / inner, main / inner],
                "anchor": f"x{axis}",
                "range": [-scale, scale],
                "title": {"text": f"difference of {_quantity(view)}"},
                "zeroline": True,
                "zerolinecolor": palette.axis,
                "zerolinewidth": 1.5,
            },
        }
    )


def name_of(item: PairedRead) -> str:
    """Return what the legend calls a difference; what both have in common it says once."""
    first, second = _short(item.first_label), _short(item.second_label)
    one, _, rest = first.partition(", ")
    other, _, same = second.partition(", ")
    return f"{one} − {other}, {rest}" if rest and rest == same else f"{first} − {second}"


def _short(label: str) -> str:
    method, comma, rest = label.partition(", ")
    known = METHOD_STYLE.get(method)
    return f"{known.short if known else method}{comma}{rest}"


def _within(point: PairedPointRead, scale: float) -> bool:
    return point.mean is not None and abs(point.mean) <= scale


def _interval(
    item: PairedRead, style: SeriesStyle, scale: float, place: dict[str, Any]
) -> Iterator[Any]:
    """Yield the bands between neighbours on the scale: to one far off it a band is a stripe."""
    for within, points in groupby(item.points, key=lambda point: _within(point, scale)):
        edged = [p for p in points if p.lr and p.low is not None and p.high is not None]
        if not within or len(edged) < 2:
            continue
        yield scatter(
            x=[p.lr for p in edged] + [p.lr for p in reversed(edged)],
            y=[p.low for p in edged] + [p.high for p in reversed(edged)],
            fill="toself",
            fillcolor=faint(style.colour, 0.14),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            meta="interval",
            **place,
        )


def _pairs(
    item: PairedRead, style: SeriesStyle, scale: Scale, place: dict[str, Any], *, many: bool
) -> Iterator[Any]:
    pairs = [pair for pair in item.pairs if pair.difference is not None]
    if many:
        dots = [(one.lr, one.difference) for one in pairs if one.difference is not None]
        yield from dashes(dots, scale, style.ink, meta="pairs", **place)
        return
    yield scatter(
        x=[pair.lr for pair in pairs],
        y=[pair.difference for pair in pairs],
        mode="markers",
        marker={"symbol": "circle-open", "size": 6, "color": style.ink},
        opacity=0.75,
        hovertext=[
            f"<b>{literal(name_of(item))}</b><br>learning rate {number(pair.lr)}, "
            f"seed {pair.seed}<br>{signed(pair.difference)}"
            for pair in pairs
        ],
        hoverinfo="text",
        showlegend=False,
        meta="pairs",
        **place,
    )


def on_scale(points: Sequence[PairedPointRead], scale: float) -> list[PairedPointRead | None]:
    """Return a line's points with a gap (None) between neighbours that are both off the scale.

    A line from one point far above to one far below would cross the panel and mean nothing there.
    """
    drawn: list[PairedPointRead | None] = []
    for point in points:
        if drawn and drawn[-1] and not _within(point, scale) and not _within(drawn[-1], scale):
            drawn.append(None)
        drawn.append(point)
    return drawn


def _mean(
    item: PairedRead,
    style: SeriesStyle,
    scale: float,
    place: dict[str, Any],
    *,
    in_legend: bool,
    narrow: bool,
) -> Any:
    points = on_scale([point for point in item.points if point.lr is not None], scale)
    told = textwrap.wrap(name_of(item), NARROW_LETTERS) if narrow else [name_of(item)]
    name = "<br>".join(literal(line) for line in told)
    return scatter(
        x=[point and point.lr for point in points],
        y=[point and point.mean for point in points],
        mode="lines+markers",
        name=name,
        line={"color": style.colour, "dash": style.dash, "width": style.width},
        marker={
            "symbol": style.marker,
            "size": style.size,
            "color": style.colour,
            "line": {"color": style.ink, "width": 1},
        },
        hovertext=[_hover(item, point) if point else "" for point in points],
        hoverinfo="text",
        showlegend=in_legend,
        meta="mean difference",
        **place,
    )


def _hover(item: PairedRead, point: PairedPointRead) -> str:
    lines = [
        f"<b>{literal(name_of(item))}</b>",
        f"learning rate {number(point.lr)}",
        f"mean {signed(point.mean)} of {counted(point.n_finite, 'finite pair')} of {point.n}",
    ]
    if point.low is not None and point.high is not None:
        lines.append(f"95 %: {signed(point.low)} to {signed(point.high)}")
    lines.append(f"first better in {point.lower}, worse in {point.higher} pairs")
    if point.wilcoxon_p is not None:
        lines.append(f"Wilcoxon p {number(point.wilcoxon_p)}")
    return "<br>".join(lines)


def _quantity(*views: DifferencesRead) -> str:
    # The API compares accuracies as errors, so that negative means better everywhere.
    return " and ".join(QUANTITY[view.metric].replace("accuracy", "error") for view in views)


def _title(views: Sequence[DifferencesRead], picture: Picture) -> str:
    words = f"{WORDS[views[0].kind]}, paired by seed; below 0 is better"
    return title_words(picture.title, words, narrow=picture.narrow)


def _spoken(views: Sequence[DifferencesRead], picture: Picture) -> str:
    """Return in a sentence what is drawn, for who does not see it."""
    means = (f"{name_of(one)} {signed(one.overall.mean)} on average" for one in views[0].items)
    title = _title(views, Picture(title="", metric=picture.metric))
    drawn = f"Difference of {_quantity(*views)} against the learning rate"
    return f"{drawn}, {title}: {', '.join(means)}."
