"""Box plot: every series' seeds at one learning rate, what broke counted beside them."""

from collections import Counter
from collections.abc import Sequence

import plotly.graph_objects as go

from backend.schemas import RatePointRead, SeriesRead
from dashboard.figures.families import Naming, arrange, styles, varied
from dashboard.figures.learning import rates_of
from dashboard.figures.panels import AXIS, TITLE, TITLE_LINE, title_place
from dashboard.figures.scale import Scale, choose_scale
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import Trace, best_point, opens, scatter
from dashboard.figures.wording import axis_title, caption_words, literal, title_lines, title_words
from dashboard.theme import PALETTE, Palette, SeriesStyle, counted, faint, number, template

#: Pixels a series, with few and with many.
ROW, SMALL_ROW, MANY = 40, 24, 16
#: Share of the width that the rail takes, at the right.
RAIL = 0.12


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
    palette = PALETTE[picture.scheme]
    scale = _scale(choose_scale(drawn, picture.metric, picture.scale), [p for _, p in found])
    looks = styles(drawn, arrange(drawn, picture.family), picture.scheme)
    naming = Naming(varied(drawn))
    traces: list[Trace] = []
    for place, (line, point) in enumerate(found):
        name = literal(naming.of(line))
        traces += _box(place, point, name, looks[line.id], scale)
        traces += _seeds(place, point, name, looks[line.id], scale)
        traces += _lost(place, point, name, looks[line.id], scale)
    figure = go.Figure(traces, {"template": template(picture.scheme)})
    _lay_out(figure, [literal(naming.of(line)) for line, _ in found], scale, picture, palette)
    # Centred below a narrow panel it would be cut.
    words = axis_title(drawn, picture.metric, picture.reducer)
    figure.add_annotation(
        text=words, showarrow=False, xref="paper", yref="paper", font={"size": 14},
        **({"x": 1, "xanchor": "right"} if picture.narrow else {"x": 0.5, "xanchor": "center"}),
        y=0, yanchor="top", yshift=-26,
    )  # fmt: skip
    about = f"seeds at learning rate {number(rate)}, with quartiles"
    title = title_words(picture.title, about, narrow=picture.narrow)
    row = ROW if len(found) <= MANY else SMALL_ROW
    top = TITLE + TITLE_LINE * (title_lines(title) - 1)
    figure.update_layout(
        height=max(row * len(found), 120) + top + AXIS,
        margin={"l": 16, "r": 16, "t": top, "b": AXIS},
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


def _box(
    place: int, point: RatePointRead, name: str, look: SeriesStyle, scale: Scale
) -> list[Trace]:
    if point.q1 is None or point.median is None or point.q3 is None or point.q1 > scale.high:
        return []
    values = [seed.value for seed in point.seeds if seed.value is not None]
    return [
        {
            "type": "box",
            "orientation": "h",
            "y": [place],
            "q1": [point.q1],
            "median": [point.median],
            "q3": [point.q3],
            "lowerfence": [min(values)],
            "upperfence": [max(values)],
            "line": {"color": look.ink, "width": 1.4},
            "fillcolor": faint(look.colour, 0.22),
            "width": 0.56,
            "name": name,
            "hoverinfo": "skip",
            "meta": "box",
        }
    ]


def _seeds(
    place: int, point: RatePointRead, name: str, look: SeriesStyle, scale: Scale
) -> list[Trace]:
    shown = [s for s in point.seeds if s.value is not None and scale.holds(s.value)]
    if not shown:
        return []
    return [
        scatter(
            x=[seed.value for seed in shown],
            # A little apart, so that equal seeds are two dots; the same for the same seed.
            y=[place + 0.16 * ((seed.seed * 7) % 5 - 2) / 2 for seed in shown],
            mode="markers",
            marker={"symbol": "circle-open", "size": 6, "color": look.ink, "line": {"width": 1}},
            hovertext=[
                f"<b>{name}</b><br>seed {seed.seed}<br>{number(seed.value)}, {seed.outcome}"
                for seed in shown
            ],
            hoverinfo="text",
            customdata=[opens([seed.trial_id]) for seed in shown],
            meta="seeds",
        )
    ]


def _lost(
    place: int, point: RatePointRead, name: str, look: SeriesStyle, scale: Scale
) -> list[Trace]:
    """Return the mark of the seeds that are not on the scale, at the right."""
    gone = [s for s in point.seeds if s.value is None or not scale.holds(s.value)]
    if not gone:
        return []
    words = f"{len(gone)} of {counted(point.n, 'seed')} off the scale, {point.diverged} diverged"
    return [
        scatter(
            x=[scale.lifted(1 + RAIL / 3)],
            y=[place],
            mode="markers+text",
            marker={"symbol": "triangle-right", "size": 10, "color": look.colour},
            text=[f"{len(gone)}/{point.n}"],
            textposition="middle right",
            textfont={"size": 11, "color": look.ink},
            hovertext=[f"<b>{name}</b><br>{words}"],
            hoverinfo="text",
            customdata=[opens(seed.trial_id for seed in gone)],
            cliponaxis=False,
            meta="rail",
        )
    ]


def _lay_out(
    figure: go.Figure, names: Sequence[str], scale: Scale, picture: Picture, palette: Palette
) -> None:
    whole = Scale(scale.low, scale.lifted(1 + RAIL), scale.log)
    short = [_wrapped(name) if picture.narrow else name for name in names]
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
            "showgrid": False,
            "zeroline": False,
        },
    )
    figure.add_shape(
        type="rect", xref="paper", yref="paper", x0=1 / (1 + RAIL), x1=1, y0=0, y1=1,
        fillcolor=palette.rail, line={"width": 0}, layer="below",
    )  # fmt: skip


def _wrapped(name: str) -> str:
    return name.replace(", ", "<br>")


def _spoken(found: Sequence[tuple[SeriesRead, RatePointRead]], naming: Naming, about: str) -> str:
    told = [
        f"{naming.of(line)}, median {number(point.median)}"
        if point.median is not None
        else f"{naming.of(line)}, {point.diverged} of {point.n} diverged"
        for line, point in found
    ]
    return f"Box plot, {about}: {'; '.join(told)}."
