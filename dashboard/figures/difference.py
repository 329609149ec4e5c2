"""Two curves seed by seed: the first minus the second, as line and scatter, training and test."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import DifferenceKind, DifferencesRead, PairedPointRead, PairedRead
from dashboard.figures.panels import TITLE_LINE, rate_axis
from dashboard.figures.scale import Scale
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import MOST_DOTS, dashes, scatter
from dashboard.figures.wording import QUANTITY, literal, title_lines, title_words
from dashboard.formats import counted, number, signed
from dashboard.theme import (
    METHOD_STYLE,
    PALETTE,
    Palette,
    SeriesStyle,
    faint,
    series_style,
    template,
)

WORDS: dict[DifferenceKind, str] = {
    "method": "minus EB",
    "clip": "clipped minus unclipped",
    "engine": "an engine minus the one before",
}
PANEL, GAP, TOP, AXIS, LEGEND_ROW = 260, 64, 60, 52, 22
#: The focused scale reaches so many times the difference that this share stays within.
REACH, HELD = 2.5, 0.6
#: Where off-scale pairs are marked, as a share of the scale.
EDGE, LANE = 0.93, 0.13


def difference_figure(
    views: Sequence[DifferencesRead], picture: Picture, *, initial: float | None = None
) -> go.Figure:
    """Return one panel for each view (training, test); below zero the first curve is better.

    Args:
        views: What to draw.
        picture: How to draw it.
        initial: The loss before training: no run that learns is further from another.
    """
    figure = go.Figure(layout={"template": template(picture.scheme)})
    inner = PANEL * len(views) + GAP * (len(views) - 1)
    for row, view in enumerate(views):
        top = 1 - row * (PANEL + GAP) / inner
        _add_panel(
            figure, view, picture, row=row, initial=initial, domain=[top - PANEL / inner, top]
        )
    last = "" if len(views) == 1 else str(len(views))
    rows = len(views[0].items) if picture.narrow else 1
    title = _title(views, picture)
    above = TOP + TITLE_LINE * (title_lines(title) - 1)
    figure.update_layout(
        {
            "height": inner + above + AXIS + LEGEND_ROW * rows,
            "margin": {"l": 72, "r": 16, "t": above, "b": AXIS + LEGEND_ROW * rows},
            "title": {"text": title, "y": 1, "yref": "container"},
            "meta": {"label": _spoken(views, picture)},
            "title_yanchor": "top",
            "title_pad": {"t": 12, "l": 4},
            "legend": {"orientation": "h", "x": 0, "y": -AXIS / inner, "yanchor": "top"},
            "hovermode": "closest",
            "uirevision": picture.revision or "same",
            f"xaxis{last}_title_text": "learning rate",
        }
    )
    return figure


def _add_panel(
    figure: go.Figure,
    view: DifferencesRead,
    picture: Picture,
    *,
    row: int,
    domain: list[float],
    initial: float | None,
) -> None:
    axis = "" if row == 0 else str(row + 1)
    palette: Palette = PALETTE[picture.scheme]
    scale = focus(view, full=picture.scale == "full", initial=initial)
    seen: Counter[tuple[str, bool]] = Counter()
    many = sum(len(item.pairs) for item in view.items) > MOST_DOTS
    for index, item in enumerate(view.items):
        look = (item.first_label.partition(", ")[0], "clip" in item.first_label)
        method, clipped = look
        style = series_style(method, picture.scheme, clipped=clipped, variant=seen[look])
        seen[look] += 1
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": name_of(item)}
        pairs = _pairs(item, style, Scale(-scale, scale), place, many=many)
        figure.add_traces([*_interval(item, style, place), *(pairs if picture.seeds else ())])
        figure.add_trace(_mean(item, style, place, in_legend=row == 0))
        figure.add_traces(list(_edges(item, style, scale, place, lane=index)))
    rates = [point.lr for item in view.items for point in item.points if point.lr]
    figure.update_layout(
        {
            f"xaxis{axis}": {
                **rate_axis(rates, narrow=picture.narrow),
                "anchor": f"y{axis}",
                "matches": "x" if axis else None,
            },
            f"yaxis{axis}": {
                "domain": domain,
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
    """Return what the legend calls a difference."""
    return f"{_short(item.first_label)} − {_short(item.second_label)}"


def _short(label: str) -> str:
    method, comma, rest = label.partition(", ")
    known = METHOD_STYLE.get(method)
    return f"{known.short if known else method}{comma}{rest}"


def _bold(item: PairedRead) -> str:
    return f"<b>{literal(name_of(item))}</b>"


def _interval(item: PairedRead, style: SeriesStyle, place: dict[str, Any]) -> Iterator[Any]:
    edged = [p for p in item.points if p.lr and p.low is not None and p.high is not None]
    if len(edged) < 2:
        return
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
            f"{_bold(item)}<br>learning rate {number(pair.lr)}, seed {pair.seed}<br>"
            f"{signed(pair.difference)}"
            for pair in pairs
        ],
        hoverinfo="text",
        showlegend=False,
        meta="pairs",
        **place,
    )


def _mean(item: PairedRead, style: SeriesStyle, place: dict[str, Any], *, in_legend: bool) -> Any:
    points = [point for point in item.points if point.lr is not None]
    return scatter(
        x=[point.lr for point in points],
        y=[point.mean for point in points],
        mode="lines+markers",
        name=literal(name_of(item)),
        line={"color": style.colour, "dash": style.dash, "width": style.width},
        marker={
            "symbol": style.marker,
            "size": style.size,
            "color": style.colour,
            "line": {"color": style.ink, "width": 1},
        },
        hovertext=[_hover(item, point) for point in points],
        hoverinfo="text",
        showlegend=in_legend,
        meta="mean difference",
        **place,
    )


def off_scale(item: PairedRead, scale: float) -> list[tuple[float, int, int]]:
    """Return per rate how many pairs are off the scale or not finite: (rate, below, above)."""
    found = []
    for point in item.points:
        if point.lr is None:
            continue
        finite = [p.difference for p in item.pairs if p.lr == point.lr and p.difference is not None]
        below = sum(value < -scale for value in finite)
        above = sum(value > scale for value in finite)
        # `lower` and `higher` also count pairs of which one is not finite.
        below += max(0, point.lower - sum(value < 0 for value in finite))
        above += max(0, point.higher - sum(value > 0 for value in finite))
        if below or above:
            found.append((point.lr, below, above))
    return found


def _edges(
    item: PairedRead, style: SeriesStyle, scale: float, place: dict[str, Any], *, lane: int
) -> Iterator[Any]:
    height = scale * (EDGE - LANE * lane)
    found = off_scale(item, scale)
    lower = [(lr, below) for lr, below, _ in found if below]
    higher = [(lr, above) for lr, _, above in found if above]
    for symbol, sign, marked, words in (
        ("triangle-down-open", -1, lower, "lower"),
        ("triangle-up-open", 1, higher, "higher"),
    ):
        if not marked:
            continue
        yield scatter(
            x=[lr for lr, _ in marked],
            y=[sign * height] * len(marked),
            mode="markers+text",
            marker={"symbol": symbol, "size": 10, "color": style.ink},
            text=[str(pairs) for _, pairs in marked],
            textposition="middle right",
            textfont={"size": 11, "color": style.ink},
            hovertext=[
                f"{_bold(item)}<br>learning rate {number(lr)}<br>"
                f"{counted(pairs, 'pair')} {words} than this scale shows, or not finite"
                for lr, pairs in marked
            ],
            hoverinfo="text",
            showlegend=False,
            meta="edge",
            **place,
        )


def _hover(item: PairedRead, point: PairedPointRead) -> str:
    lines = [
        _bold(item),
        f"learning rate {number(point.lr)}",
        f"mean {signed(point.mean)} of {counted(point.n_finite, 'finite pair')} of {point.n}",
    ]
    if point.low is not None and point.high is not None:
        lines.append(f"95 %: {signed(point.low)} to {signed(point.high)}")
    lines.append(f"first better in {point.lower}, worse in {point.higher} pairs")
    if point.wilcoxon_p is not None:
        lines.append(f"Wilcoxon p {number(point.wilcoxon_p)}")
    return "<br>".join(lines)


def focus(view: DifferencesRead, *, full: bool, initial: float | None = None) -> float:
    """Return how far the scale reaches either way: for runs that learn, or for all finite ones."""
    found = sorted(
        abs(pair.difference)
        for item in view.items
        for pair in item.pairs
        if pair.difference is not None
    )
    if not found or not found[-1]:
        return 1.0
    if full:
        return 1.1 * found[-1]
    learning = [value for value in found if initial is None or value <= initial]
    known = learning or found
    middle = REACH * known[min(int(HELD * len(known)), len(known) - 1)]
    reach = known[-1] if not middle or known[-1] <= 2 * middle else middle
    return 1.1 * (reach or found[-1])


def _quantity(view: DifferencesRead) -> str:
    # The API compares accuracies as errors, so that negative means better everywhere.
    return QUANTITY[view.metric].replace("accuracy", "error")


def _title(views: Sequence[DifferencesRead], picture: Picture) -> str:
    words = f"{WORDS[views[0].kind]}, paired by seed; below 0 is better"
    return title_words(picture.title, words, narrow=picture.narrow)


def _spoken(views: Sequence[DifferencesRead], picture: Picture) -> str:
    """Return in a sentence what is drawn, for who does not see it."""
    means = (f"{name_of(one)} {signed(one.overall.mean)} on average" for one in views[0].items)
    drawn = f"Difference of {' and '.join(map(_quantity, views))} against the learning rate"
    title = _title(views, Picture(title="", metric=picture.metric))
    return f"{drawn}, {title}: {', '.join(means)}."
