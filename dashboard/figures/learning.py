"""Learning curves: losses over training, one rate lit; App. C's average, against steps.

The browser lights up what it has already: a drag must not wait for anybody (`scrubber.js`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import (
    LearningRateRead,
    LearningSeriesRead,
    SeriesRead,
    TheoremLine,
    TheoremRead,
)
from dashboard.figures.families import Naming, arrange, ramp, styles, varied
from dashboard.figures.panels import Grid, columns_for, panel_titles, rate_axis
from dashboard.figures.scale import Scale, choose_scale
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import Trace, best_point, scatter
from dashboard.figures.wording import QUANTITY, caption_words, title_words
from dashboard.theme import PALETTE, Scheme, SeriesStyle, counted, method_style, number, template

#: More panels than this no screen holds; the first ones are drawn.
MOST_PANELS = 12
#: Of series that are not all drawn so many curves, in so many panels at least: for twice as many a
#: person would wait.
MOST_CURVES, LEAST_PANELS = 120, 6
#: Pixels: the overview on top, the room below it, a panel.
OVERVIEW, BELOW, PANEL, NARROW_PANEL = 150, 64, 210, 180
#: Room above the first loss, which all curves begin with.
HEADROOM = 1.12


def learning_figure(
    series: Sequence[SeriesRead],
    learning: Mapping[str, LearningSeriesRead],
    picture: Picture,
    *,
    initial: float | None = None,
) -> go.Figure:
    """Return loss against rate on top, with the line one drags, and learning curves below.

    Args:
        series: The curves.
        learning: Losses over training, by series' id.
        picture: How to draw them.
        initial: The loss before training.
    """
    drawn = [line for line in series if line.points and line.id in learning]
    shown = drawn[: _panels(drawn)]
    settings = varied(drawn)
    naming = Naming(settings)
    rates = sorted({rate.lr for line in shown for rate in learning[line.id].rates})
    colours = dict(zip(rates, ramp(len(rates), picture.scheme, "Plasma"), strict=True))
    names = [naming.of(line) for line in shown]
    grid = Grid(
        panel_titles(names, narrow=picture.narrow),
        NARROW_PANEL if picture.narrow else PANEL,
        columns_for(names, narrow=picture.narrow),
        narrow=picture.narrow,
        first=2,
        above=OVERVIEW + BELOW,
    )
    scale = choose_scale(drawn, picture.metric, picture.scale, initial)
    traces = list(_overview(drawn, len(shown), picture, colours))
    for place, line in enumerate(shown):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        traces += [_rate(rate, colours[rate.lr], axes) for rate in learning[line.id].rates]
        traces.append(_lit(axes))
    figure = go.Figure(traces, {"template": template(picture.scheme)})
    _lay_out(figure, grid, drawn, learning, scale, picture, rates)
    figure.update_layout(
        meta={
            "label": _spoken(shown, learning, picture),
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title)
            + " Curves over training are coloured by learning rate, dark is low.",
            "scrub": {
                "rates": rates,
                "colours": [colours[rate] for rate in rates],
                "words": [f"learning rate {number(rate)}" for rate in rates],
                "chosen": rate_shown(drawn, picture),
            },
        },
        uirevision=picture.revision or "same",
        showlegend=False,
    )
    return figure


def _panels(series: Sequence[SeriesRead]) -> int:
    """Return how many series have a panel."""
    if len(series) <= MOST_PANELS:
        return len(series)
    rates = max(len(line.points) for line in series)
    return min(MOST_PANELS, max(LEAST_PANELS, MOST_CURVES // rates))


def _overview(
    series: Sequence[SeriesRead], panels: int, picture: Picture, colours: Mapping[float, str]
) -> Iterator[Trace]:
    """Yield loss against rate; its dots have the rates' colours, and so are their legend."""
    palette = PALETTE[picture.scheme]
    looks: dict[str, SeriesStyle] = styles(series, arrange(series, picture.family), picture.scheme)
    # Series of one look are one line with gaps: a browser takes longer for sixty of them than for
    # what is in them. For as many marks, too: those of series without a panel are no legend.
    alike: dict[tuple[str, str, bool], list[SeriesRead]] = {}
    for place, line in enumerate(series):
        look = looks[line.id]
        marked = place < panels or len(line.points) == 1
        alike.setdefault((look.dash, look.marker, marked), []).append(line)
    for (dash, marker, marked), lines in alike.items():
        points = [point for line in lines for point in [*line.points, None]][:-1]
        shades = [colours.get(one.lr if one else 0.0, palette.muted) for one in points]
        yield scatter(
            x=[None if one is None else one.lr for one in points],
            y=[None if one is None else one.mean for one in points],
            mode="lines+markers" if marked else "lines",
            line={"color": palette.muted, "dash": dash, "width": 1},
            connectgaps=False,
            **({"marker": {"size": 7, "symbol": marker, "color": shades}} if marked else {}),
            hoverinfo="skip",
            xaxis="x",
            yaxis="y",
            meta="overview",
        )


def _rate(rate: LearningRateRead, colour: str, axes: dict[str, str]) -> Trace:
    """Return one rate's curves, all of its seeds as one line with gaps."""
    x: list[float | None] = []
    y: list[float | None] = []
    for values in [seed.values for seed in rate.seeds] or [rate.mean]:
        x += [*rate.epochs, None]
        y += [*values, None]
    return scatter(
        x=x[:-1],
        y=y[:-1],
        mode="lines",
        line={"color": colour, "width": 1},
        opacity=0.75,
        connectgaps=False,
        hovertemplate=f"learning rate {number(rate.lr)}<br>epoch %{{x:.3g}}<br>%{{y:.3g}}"
        "<extra></extra>",
        meta={"lr": rate.lr},
        **axes,
    )


def _lit(axes: dict[str, str]) -> Trace:
    """Return what lights up: filled by the browser with the chosen rate's curves."""
    return scatter(
        x=[],
        y=[],
        mode="lines+markers",
        line={"width": 2.6},
        marker={"size": 5},
        connectgaps=False,
        hoverinfo="skip",
        meta={"lit": True},
        **axes,
    )


def _lay_out(
    figure: go.Figure,
    grid: Grid,
    series: Sequence[SeriesRead],
    learning: Mapping[str, LearningSeriesRead],
    scale: Scale,
    picture: Picture,
    rates: Sequence[float],
) -> None:
    palette = PALETTE[picture.scheme]
    quantity = QUANTITY[picture.metric]
    firsts = [
        rate.mean[0]
        for line in series
        for rate in learning[line.id].rates
        if rate.mean and rate.mean[0] is not None
    ]
    starts = [one for one in firsts if one is not None and one > 0]
    low = min([scale.low, *starts])
    high = max([scale.high, *(HEADROOM * one for one in starts)])
    tall = Scale(max(low, 1e-12) if scale.log else low, high, scale.log)
    kind = "log" if scale.log else "linear"
    ticks = {"type": kind, "tickformat": "~g" if scale.log else "", "nticks": 5}
    grid.lay_out(
        figure, {"rangemode": "tozero"}, {**ticks, "range": tall.range, "dtick": tall.tick}, palette
    )
    every = [p.lr for line in series for p in line.points]
    figure.update_layout(
        xaxis={
            **rate_axis(every, narrow=picture.narrow),
            "domain": [0, 1],
            "anchor": "y",
            "fixedrange": True,
            "title": {"text": "learning rate (drag the line)"},
        },
        yaxis={
            **ticks,
            "range": scale.range,
            "dtick": scale.tick,
            "domain": [1 - OVERVIEW / grid.inner, 1],
            "anchor": "x",
            "fixedrange": True,
        },
    )
    counts = {rate.n for one in learning.values() for rate in one.rates} or {0}
    low, most = min(counts), max(counts)
    seeds = counted(most, "seed") if low == most else f"{low} to {most} seeds"
    whole = any(rate.seeds for one in learning.values() for rate in one.rates)
    about = f"{quantity} over training, " + (
        f"every trial of {seeds}" if whole else f"mean of {seeds}"
    )
    if picture.family.smooth > 1:
        about += f", averaged over {picture.family.smooth} evaluations"
    title = title_words(picture.title, about, narrow=picture.narrow)
    grid.frame(figure, title, [], axis="epoch", side=quantity)
    grid.say_left(figure, len(series) - len(grid.titles), palette)


def _spoken(
    series: Sequence[SeriesRead], learning: Mapping[str, LearningSeriesRead], picture: Picture
) -> str:
    naming = Naming(varied(series))
    told = []
    for line in series:
        ends = [(r.lr, r.mean[-1]) for r in learning[line.id].rates if r.mean]
        finite = [(lr, end) for lr, end in ends if end is not None]
        sign = -1 if picture.upwards else 1
        best = min(finite, key=lambda one: sign * one[1], default=None)
        words = f"ends best, at {number(best[1])}, with rate {number(best[0])}" if best else "broke"
        told.append(f"{naming.of(line)} {words}")
    return f"{QUANTITY[picture.metric].capitalize()} over training by rate: {'; '.join(told)}."


def rates_of(series: Sequence[SeriesRead]) -> dict[str, Any]:
    """Return the rates a slider runs over."""
    rates = sorted({point.lr for line in series for point in line.points})
    return {"rates": rates, "words": [f"learning rate {number(rate)}" for rate in rates]}


def rate_shown(series: Sequence[SeriesRead], picture: Picture) -> float | None:
    """Return the rate a box plot shows: the tested one nearest to what was asked for.

    Without a wish, the rate that is the best of most series.
    """
    rates = sorted({point.lr for line in series for point in line.points})
    if not rates:
        return None
    wanted = picture.family.rate
    if wanted is None or wanted <= 0:
        found = [best_point(line, higher_is_better=picture.upwards) for line in series]
        best = Counter(point.lr for point in found if point is not None)
        wanted = min(best, key=lambda lr: (-best[lr], lr), default=rates[len(rates) // 2])
    return min(
        rates, key=lambda rate: abs(rate / wanted - 1) if rate > wanted else wanted / rate - 1
    )


#: From the top: the number, its axis, whether that is logarithmic, its place.
PANELS = (
    ("average", "average of |g|²", True, [0.62, 1.0]),
    ("theta", "|θ|", True, [0.31, 0.55]),
    ("restarts", "restarts", False, [0.0, 0.24]),
)
HEIGHT = 640


def theorem_figure(found: TheoremRead, scheme: Scheme = "light") -> go.Figure:
    """Return the theorem's average, |theta| and restarts; higher rates have stronger lines."""
    rates = sorted({line.lr for line in found.lines})
    figure = go.Figure(layout={"template": template(scheme)})
    told: set[str] = set()
    for line in found.lines:
        strength = 0.25 + 0.75 * (rates.index(line.lr) + 1) / len(rates)
        for index, (name, *_) in enumerate(PANELS):
            figure.add_trace(_trace(line, name, index, strength, legend=line.label not in told))
        told.add(line.label)
    axes: dict[str, Any] = {}
    for index, (_, title, log, domain) in enumerate(PANELS):
        end = "" if index == 0 else str(index + 1)
        axes[f"yaxis{end}"] = {
            "title": {"text": title},
            "domain": domain,
            "type": "log" if log else "linear",
            "exponentformat": "power",
        }
    axes["xaxis"] = {"title": {"text": "steps"}, "anchor": f"y{len(PANELS)}"}
    figure.update_layout(
        **axes,
        height=HEIGHT,
        margin={"l": 84, "r": 20, "t": 36, "b": 48},
        legend={"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        hovermode="closest",
        meta={"label": theorem_words(found), "rates": False},
    )
    return figure


def _trace(line: TheoremLine, name: str, index: int, strength: float, *, legend: bool) -> Any:
    style = method_style(line.method)
    values = getattr(line, name)
    drawn = [value if name == "restarts" or (value or 0) > 0 else None for value in values]
    return scatter(
        x=line.step,
        y=drawn,
        mode="lines",
        line={"color": style.colour, "dash": style.dash, "width": 2},
        opacity=strength,
        name=_called(line),
        legendgroup=line.label,
        showlegend=legend and index == 0,
        hovertext=[
            f"<b>{_called(line)}, rate {number(line.lr)}</b><br>step {step}: {name} "
            f"{'not finite' if value is None else number(value)}<br>|g| {_written(gradient)}, "
            f"|θ| {_written(theta)}, {number(restarts or 0)} restarts"
            for step, value, gradient, theta, restarts in zip(
                line.step, values, line.gradient, line.theta, line.restarts, strict=True
            )
        ],
        hoverinfo="text",
        yaxis="y" if index == 0 else f"y{index + 1}",
        meta=name,
    )


def _called(line: TheoremLine) -> str:
    """Return a line's label with the method's short name."""
    return line.label.replace(line.method, method_style(line.method).short, 1)


def _written(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else number(value)


def theorem_words(found: TheoremRead) -> str:
    """Return where every line's average ends, at its lowest and its highest rate."""
    parts = []
    for label in dict.fromkeys(line.label for line in found.lines):
        lines = sorted((one for one in found.lines if one.label == label), key=lambda o: o.lr)
        ends = [_end(one) for one in (lines[0], lines[-1])[: len(lines)]]
        parts.append(f"{_called(lines[0])}’s average ends at {', and at '.join(ends)}")
    return f"{'; '.join(parts)}." if parts else "Nothing was recorded."


def _end(line: TheoremLine) -> str:
    average, restarts = (values[-1] if values else None for values in (line.average, line.restarts))
    again = counted(round(restarts or 0), "restart")
    return f"{_written(average)} at rate {number(line.lr)} after {again}"
