"""One learning rate: every series' seeds in boxes; recorded steps, of all rates and of one."""

import math
from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from backend.schemas import RatePointRead, RecordingRead, SeriesRead
from dashboard.figures.families import Naming, arrange, ramp, styles, varied
from dashboard.figures.learning import rate_shown, rates_of
from dashboard.figures.panels import AXIS, TITLE, TITLE_LINE, Grid, title_place
from dashboard.figures.scale import Scale, choose_scale, shared_decades
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import Trace, opens, scatter
from dashboard.figures.wording import axis_title, caption_words, literal, title_lines, title_words
from dashboard.theme import PALETTE, Scheme, SeriesStyle, counted, faint, number, template

#: Pixels a series, with few and with many.
ROW, SMALL_ROW, MANY, LINE = 40, 24, 16, 17
#: Pixels that a letter of a row's name takes at most.
WIDEST = 7.6
#: Share of the width that the rail takes, at the right.
RAIL = 0.12


def box_figure(series: Sequence[SeriesRead], picture: Picture) -> go.Figure:
    """Return the quartiles and seeds of every series at one rate, and how many broke.

    Args:
        series: The curves, in the order of the picture.
        picture: How to draw them; its family's rate says where.
    """
    drawn = [line for line in series if line.points]
    rate = rate_shown(drawn, picture)
    at = [(line, next((p for p in line.points if p.lr == rate), None)) for line in drawn]
    found = [(line, point) for line, point in at if point is not None]
    scale = _scale(choose_scale(drawn, picture.metric, picture.scale), [p for _, p in found])
    looks = styles(drawn, arrange(drawn, picture.family), picture.scheme)
    naming = Naming(varied(drawn))
    traces: list[Trace] = []
    for rows in _alike([looks[line.id] for line, _ in found]):
        own = [(place, found[place][1], literal(naming.of(found[place][0]))) for place in rows]
        look = looks[found[rows[0]][0].id]
        traces += [*_boxes(own, look, scale), *_seeds(own, look, scale), *_lost(own, look, scale)]
    figure = go.Figure(traces, {"template": template(picture.scheme)})
    _lay_out(figure, [literal(naming.of(line)) for line, _ in found], scale, picture)
    # Centred below a narrow panel it would be cut.
    words = axis_title(drawn, picture.metric, picture.reducer)
    figure.add_annotation(
        text=words, showarrow=False, xref="paper", yref="paper", font={"size": 14},
        **({"x": 1, "xanchor": "right"} if picture.narrow else {"x": 0.5, "xanchor": "center"}),
        y=0, yanchor="top", yshift=-26,
    )  # fmt: skip
    about = f"seeds at learning rate {number(rate)}, with quartiles"
    title = title_words(picture.title, about, narrow=picture.narrow)
    named = figure.layout.yaxis.ticktext
    lines = max((one.count("<br>") + 1 for one in named), default=1)
    row = max(ROW if len(found) <= MANY else SMALL_ROW, LINE * lines + 4)
    top = TITLE + TITLE_LINE * (title_lines(title) - 1)
    figure.update_layout(
        height=max(row * len(found), 120) + top + AXIS,
        margin={"l": _room(named), "r": 20, "t": top, "b": AXIS},
        title={"text": title, **title_place(title_lines(title))},
        showlegend=False,
        meta={
            "label": _spoken(found, naming, about),
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title)
            + f" Boxes: quartiles of the seeds at learning rate {number(rate)}.",
            "rates": False,
            "scrub": {**rates_of(drawn), "chosen": rate},
        },
        uirevision=picture.revision or "same",
    )
    return figure


# --- One rate's steps: what was recorded on the way, of one seed

#: Series that are drawn beside each other.
MOST_WAYS = 4
STEP_PANEL = 220
#: With fewer measurements of the sharpness losses tell more of a break.
LEAST_MEASURED = 20
OF_SHARPNESS, OF_LOSS, OF_WEIGHTS = "sharpness", "batch loss", "weights by layer"

#: A series' recordings by learning rate.
Ways = Mapping[float, RecordingRead]


def steps_figure(
    series: Sequence[SeriesRead], recorded: Mapping[str, Ways], picture: Picture
) -> go.Figure:
    """Return sharpness by step against 2/rate, of every rate, and layers' norms at one rate.

    Where sharpness was measured too seldom to see a break come, losses stand in its place.

    Args:
        series: The curves.
        recorded: What was recorded of them, by series' id.
        picture: How to draw it.
    """
    drawn = [line for line in series if recorded.get(line.id)][:MOST_WAYS]
    naming, ways = Naming(varied(series)), [recorded[line.id] for line in drawn]
    rates = sorted({rate for own in ways for rate in own})
    chosen = _way_rate(rates, ways, picture.family.rate)
    names = [naming.of(line) for line in drawn]
    measured = max(len(one.sharp_steps) for own in ways for one in own.values())
    what = OF_SHARPNESS if measured >= LEAST_MEASURED else OF_LOSS
    told = [f"{one}: {what}" for one in names]
    told += [f"{one}: {OF_WEIGHTS}, rate {number(chosen)}" for one in names]
    columns = 1 if picture.narrow else len(drawn)
    if picture.narrow:  # both pictures of a series below each other
        told = [told[place + half] for place in range(len(drawn)) for half in (0, len(drawn))]
    titles = [f"<b>{escape(one, quote=False)}</b>" for one in told]
    grid = Grid(titles, STEP_PANEL, columns, apart=True, narrow=picture.narrow)
    colours = dict(zip(rates, ramp(len(rates), picture.scheme, "Plasma"), strict=True))
    last = max(one.steps[-1] for own in ways for one in own.values())
    traces: list[Trace] = []
    for place, own in enumerate(ways):
        upper, lower = (2 * place, 2 * place + 1) if picture.narrow else (place, place + len(ways))
        for rate, one in sorted(own.items()):
            axes = _axes(grid, upper)
            traces += _way(one, rate, colours[rate], what, axes, legend=place == 0)
            if what == OF_SHARPNESS and any(one.rates):  # others have no such limit
                traces.append(_limit(rate, last, colours[rate], axes))
        if chosen in own:
            traces += _weights(own[chosen], picture.scheme, _axes(grid, lower), legend=place == 0)
    figure = go.Figure(traces, {"template": template(picture.scheme)})
    axis = {"type": "log", "tickformat": "~g", "nticks": 5, "automargin": False}
    grid.lay_out(figure, {"range": [0, last], "nticks": 5}, axis, PALETTE[picture.scheme])
    for quantity in (what, OF_WEIGHTS):
        places = [place for place, one in enumerate(told) if f": {quantity}" in one]
        figure.update_layout(shared_decades(traces, [f"y{grid.suffix(place)}" for place in places]))
    seed = min(one.seed for line in drawn for point in line.points for one in point.seeds)
    limits = " and 2/rate (dashed), to the break" if what == OF_SHARPNESS else ", its break"
    about = f"{what}{limits} (×), seed {seed}"
    legend = [str(one["name"]) for one in traces if one.get("showlegend")]
    title = title_words(picture.title, about, narrow=picture.narrow)
    grid.frame(figure, title, legend, axis="step")
    told_steps = caption_words(drawn, picture.metric, picture.reducer, picture.title)
    figure.update_layout(
        meta={
            "label": f"{about[0].upper()}{about[1:]}, of {', '.join(names)}, by step.",
            "caption": f"{told_steps} Drawn: {about}; below, norms of the layers' weights at "
            f"learning rate {number(chosen)}.",
            "rates": False,
            "scrub": {"rates": rates, "words": [f"learning rate {number(r)}" for r in rates],
                      "chosen": chosen},
        },
        uirevision=picture.revision or "same",
    )  # fmt: skip
    return figure


def _axes(grid: Grid, panel: int) -> dict[str, str]:
    return {"xaxis": f"x{grid.suffix(panel)}", "yaxis": f"y{grid.suffix(panel)}"}


def _way_rate(rates: Sequence[float], ways: Sequence[Ways], wanted: float | None) -> float:
    """Return the rate nearest to the one asked for, else the lowest at which something broke."""
    if wanted is not None:
        return min(rates, key=lambda rate: abs(math.log(rate / wanted)))
    broken = [rate for own in ways for rate, one in own.items() if one.broke_at is not None]
    return min(broken, default=rates[len(rates) // 2])


def _way(
    one: RecordingRead, rate: float, colour: str, what: str, axes: dict[str, str], *, legend: bool
) -> list[Trace]:
    """Return a rate's sharpness up to its break, or its losses; the break is marked."""
    name, sharp = f"rate {number(rate)}", what == OF_SHARPNESS
    every = zip(
        *((one.sharp_steps, one.sharpness) if sharp else (one.steps, one.losses)), strict=True
    )
    broke = one.broke_at
    # What becomes of the curvature behind a break means nothing.
    held = [pair for pair in every if not sharp or broke is None or pair[0] <= broke]
    marked = [pair for pair in held if broke is not None and pair[0] <= broke][-1:]
    group = {"legendgroup": name, "hoverinfo": "text", **axes}
    line = scatter(
        x=[step for step, _ in held],
        y=[value for _, value in held],
        mode="lines",
        name=name,
        showlegend=legend,
        line={"color": colour, "width": 1.8},
        hovertext=[f"{name}<br>step {step}<br>{what} {number(value)}" for step, value in held],
        meta=what,
        **group,
    )
    mark = scatter(
        x=[step for step, _ in marked],
        y=[value for _, value in marked],
        mode="markers",
        marker={"symbol": "x", "size": 9, "color": colour},
        showlegend=False,
        hovertext=[f"{name}<br>breaks at step {broke}"] * len(marked),
        meta="break",
        **group,
    )
    return [line, mark] if marked else [line]


def _limit(rate: float, last: int, colour: str, axes: dict[str, str]) -> Trace:
    """Return 2/rate, above which plain steps on a quadratic grow."""
    return scatter(
        x=[0, last],
        y=[2 / rate] * 2,
        mode="lines",
        line={"color": colour, "width": 1.2, "dash": "dash"},
        showlegend=False,
        hoverinfo="skip",
        legendgroup=f"rate {number(rate)}",
        meta="limit",
        **axes,
    )


def _weights(
    one: RecordingRead, scheme: Scheme, axes: dict[str, str], *, legend: bool
) -> list[Trace]:
    colours = ramp(len(one.layers), scheme)
    return [
        scatter(
            x=one.steps, y=values, mode="lines", name=f"layer {place + 1}", showlegend=legend,
            line={"color": colours[place], "width": 1.8, "dash": "dot" if place % 2 else "solid"},
            hovertext=[f"layer {place + 1} ({one.layers[place]})<br>step {step}<br>norm "
                       f"{number(value)}" for step, value in zip(one.steps, values, strict=True)],
            hoverinfo="text", legendgroup=f"layer {place + 1}", meta="weights", **axes,
        )
        for place, values in enumerate(one.weights)
    ]  # fmt: skip


# --- The parts of a box


def _scale(whole: Scale, points: Sequence[RatePointRead]) -> Scale:
    """Return an axis for the seeds at one rate, none of them beyond that of all rates."""
    values = [s.value for point in points for s in point.seeds if s.value is not None]
    held = [value for value in values if whole.holds(value)]
    if not held:
        return whole
    low, high = min(held), max(held)
    if whole.log:
        return Scale(max(low, 1e-300) / 1.2, max(high, 1e-300) * 1.2, log=True)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(low - margin, high + margin)


#: A series' row in the picture, its point at the rate, its name.
Row = tuple[int, RatePointRead, str]


def _alike(looks: Sequence[SeriesStyle]) -> list[list[int]]:
    """Return the rows of each colour: a browser takes longer for traces than for what they hold."""
    rows: dict[tuple[str, str], list[int]] = {}
    for place, look in enumerate(looks):
        rows.setdefault((look.colour, look.ink), []).append(place)
    return list(rows.values())


def _boxes(rows: Sequence[Row], look: SeriesStyle, scale: Scale) -> list[Trace]:
    shown = [
        (place, point, [seed.value for seed in point.seeds if seed.value is not None])
        for place, point, _ in rows
        if None not in (point.q1, point.median, point.q3) and (point.q1 or 0.0) <= scale.high
    ]
    if not shown:
        return []
    return [
        {
            "type": "box",
            "orientation": "h",
            "y": [place for place, _, _ in shown],
            "q1": [point.q1 for _, point, _ in shown],
            "median": [point.median for _, point, _ in shown],
            "q3": [point.q3 for _, point, _ in shown],
            "lowerfence": [min(values) for _, _, values in shown],
            "upperfence": [max(values) for _, _, values in shown],
            "line": {"color": look.ink, "width": 1.4},
            "fillcolor": faint(look.colour, 0.22),
            "width": 0.56,
            "hoverinfo": "skip",
            "meta": "box",
        }
    ]


def _seeds(rows: Sequence[Row], look: SeriesStyle, scale: Scale) -> list[Trace]:
    shown = [
        (place, seed, name, seed.value)
        for place, point, name in rows
        for seed in point.seeds
        if seed.value is not None and scale.holds(seed.value)
    ]
    if not shown:
        return []
    return [
        scatter(
            x=[value for *_, value in shown],
            # A little apart, so that equal seeds are two dots; the same for the same seed.
            y=[place + 0.16 * ((seed.seed * 7) % 5 - 2) / 2 for place, seed, _, _ in shown],
            mode="markers",
            marker={"symbol": "circle-open", "size": 6, "color": look.ink, "line": {"width": 1}},
            hovertext=[
                f"<b>{name}</b><br>seed {seed.seed}<br>{number(value)}, {seed.outcome}"
                for _, seed, name, value in shown
            ],
            hoverinfo="text",
            customdata=[opens([seed.trial_id]) for _, seed, _, _ in shown],
            meta="seeds",
        )
    ]


def _lost(rows: Sequence[Row], look: SeriesStyle, scale: Scale) -> list[Trace]:
    """Return the marks of the seeds that are not on the scale, at the right."""
    gone = [
        (place, point, name, beyond)
        for place, point, name in rows
        if (beyond := [s for s in point.seeds if s.value is None or not scale.holds(s.value)])
    ]
    if not gone:
        return []
    return [
        scatter(
            x=[scale.lifted(1 + RAIL / 3)] * len(gone),
            y=[place for place, *_ in gone],
            mode="markers+text",
            marker={"symbol": "triangle-right", "size": 10, "color": look.colour},
            text=[f"{len(beyond)}/{point.n}" for _, point, _, beyond in gone],
            textposition="middle right",
            textfont={"size": 11, "color": look.ink},
            hovertext=[
                f"<b>{name}</b><br>{len(beyond)} of {counted(point.n, 'seed')} off the scale, "
                f"{point.diverged} diverged"
                for _, point, name, beyond in gone
            ],
            hoverinfo="text",
            customdata=[opens(seed.trial_id for seed in beyond) for *_, beyond in gone],
            cliponaxis=False,
            meta="rail",
        )
    ]


def _lay_out(figure: go.Figure, names: Sequence[str], scale: Scale, picture: Picture) -> None:
    whole = Scale(scale.low, scale.lifted(1 + RAIL), scale.log)
    short = [name.replace(", ", "<br>") if picture.narrow else name for name in names]
    figure.update_layout(
        hovermode="closest",
        clickmode="event",
        xaxis={
            "type": "log" if scale.log else "linear",
            "range": whole.range,
            "tickformat": "~g" if scale.log else "",
            "dtick": scale.tick,
        },
        yaxis={
            "tickvals": list(range(len(names))),
            "ticktext": short,
            "range": [len(names) - 0.4, -0.6],
            "fixedrange": True,
            "automargin": False,
            "showgrid": False,
            "zeroline": False,
        },
    )
    figure.add_shape(
        type="rect", xref="paper", yref="paper", x0=1 / (1 + RAIL), x1=1, y0=0, y1=1,
        fillcolor=PALETTE[picture.scheme].rail, line={"width": 0}, layer="below",
    )  # fmt: skip


def _room(labels: Sequence[str]) -> int:
    """Return the pixels labels take: plotly measures them itself by drawing twice."""
    longest = max((len(part) for one in labels for part in one.split("<br>")), default=0)
    return 24 + math.ceil(WIDEST * longest)


def _spoken(found: Sequence[tuple[SeriesRead, RatePointRead]], naming: Naming, about: str) -> str:
    told = [
        f"{naming.of(line)}, median {number(point.median)}"
        if point.median is not None
        else f"{naming.of(line)}, {point.diverged} of {point.n} diverged"
        for line, point in found
    ]
    return f"Box plot, {about}: {'; '.join(told)}."
