"""Against a setting: the scorecard's numbers, and how far a few steps move layers' outputs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import MovementRead, NumberRead, RecordingRead, ScorecardRow, SeriesRead
from dashboard.figures.families import (
    METHOD,
    Arrangement,
    Naming,
    Setting,
    colour_across,
    join_order,
    ramp,
    say,
    setting_over,
    settings_of,
    styles,
    varied,
)
from dashboard.figures.learning import rates_of
from dashboard.figures.panels import Grid, columns_for, panel_titles
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import Trace, best_point, scatter
from dashboard.figures.wording import (
    caption_words,
    error_words,
    literal,
    moves_with,
    moves_words,
    title_words,
)
from dashboard.theme import PALETTE, SeriesStyle, method_style, number, template

#: What is drawn, whether on a logarithmic axis.
NUMBERS: tuple[tuple[str, bool], ...] = (
    ("best_rate", True),
    ("edge", True),
    ("best_mean", False),
    ("lr_sensitivity", False),
)
PANEL, NARROW_PANEL = 210, 180
#: Factor between neighbouring lines at one value.
APART = 1.06
#: So many lines stand aside of each other; the next is in the first one's place again.
ABREAST = 5
#: Pixels of a row of a setting whose values have no order, and for each of its lines.
ROW, BESIDE = 20, 6


def against_figure(
    rows: Sequence[ScorecardRow], picture: Picture, moves: Sequence[MovementRead] = ()
) -> go.Figure | None:
    """Return best rate, edge, best loss and sensitivity against a setting; None without one.

    Args:
        rows: The scorecard.
        picture: How to draw it.
        moves: Whether best rates move, for the caption.
    """
    over = setting_over(rows, picture.family.over)
    if over is None:
        return None
    looks = _looks(rows, over, picture)
    naming = Naming(varied(rows), frozenset([over.name]))
    figure = go.Figure(layout={"template": template(picture.scheme)})
    told: set[str] = set()
    groups = join_order(rows, over)
    least = NARROW_PANEL if picture.narrow else PANEL
    row = ROW + BESIDE * min(len(groups), ABREAST)
    tall = least if over.ordered else max(row * len(over.values), least // 2)
    headed = [f"<b>{_title(rows, name, picture)}</b>" for name, _ in NUMBERS]
    grid = Grid(headed, tall, 1 if picture.narrow else 2, apart=True, narrow=picture.narrow)
    for place, (name, _) in enumerate(NUMBERS):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        for shift, group in enumerate(groups):
            for own in [[row] for row in group] if over.name == METHOD else [group]:
                figure.add_traces(list(_line(own, name, over, looks, naming, axes, told, shift)))
    along, plain = _axis(over, min(len(groups), ABREAST) - 1), {"nticks": 6}
    x, y = (along, plain) if over.ordered else (plain, along)
    grid.lay_out(figure, x, y, PALETTE[picture.scheme])
    for place, (name, log) in enumerate(NUMBERS):
        if log and any(_number(row, name) for row in rows):
            axis = {"type": "log", "tickformat": "~g", **_log_ticks(rows, name)}
            up = "y" if over.ordered else "x"
            figure.update_layout({f"{up}axis{grid.suffix(place)}": axis})
        if not over.ordered and place % grid.columns:  # named at the left already
            figure.update_layout({f"yaxis{grid.suffix(place)}_showticklabels": False})
    words = over.name.replace("_", " ")
    pad = 40 if picture.narrow and not over.ordered else 0  # beside names of rows one has a row
    legend = [f"{t.name:{pad}}" for t in figure.data if t.showlegend and t.name and groups[1:]]
    title = title_words(picture.title, f"against {words}, 95 % intervals", narrow=picture.narrow)
    grid.frame(figure, title, legend, axis=words if over.ordered else "")
    figure.update_layout(
        meta={
            "label": _spoken(rows, over, naming),
            "caption": caption_words(rows, picture.metric, picture.reducer, picture.title)
            + " Bars: 95 % intervals. Arrows: at least, or at most."
            + moves_words(moves_with(over, moves, rows), rows),
            "rates": False,
        },
        uirevision=picture.revision or "same",
    )
    return figure


def _title(rows: Sequence[ScorecardRow], name: str, picture: Picture) -> str:
    found = next((row.metrics[name] for row in rows if name in row.metrics), None)
    if name == "best_mean":
        return f"Best mean {error_words(picture.metric)}"
    return found.title if found else name.replace("_", " ").capitalize()


def _looks(rows: Sequence[ScorecardRow], over: Setting, picture: Picture) -> dict[str, SeriesStyle]:
    """Return a look for every line: by method, or by what was asked for."""
    if over.name == METHOD:  # whose values have looks of their own
        return styles(rows, Arrangement(None, None), picture.scheme)
    groups = join_order(rows, over)
    firsts = [group[0] for group in groups]
    colour = colour_across(firsts, picture.family.colour, over)
    by_first = styles(firsts, Arrangement(colour, None), picture.scheme)
    return {row.id: by_first[group[0].id] for group in groups for row in group}


def _axis(over: Setting, aside: int) -> dict[str, Any]:
    """Return the axis of a setting: logarithmic for numbers that span much, else one by one.

    Values without an order are rows, the first on top. The last line stands so many steps aside.
    """
    if _logarithmic(over):
        logs = [math.log10(value) for value in over.values]
        margin = 0.06 * (logs[-1] - logs[0])
        return {
            "type": "log",
            "range": [logs[0] - margin, logs[-1] + margin + aside * math.log10(APART)],
            "tickvals": list(over.values),
            "ticktext": [number(value) for value in over.values],
            "tickangle": 0,
        }
    plain = [_words(over, value) for value in over.values]
    ends = [-0.4, len(plain) - 0.6] if over.ordered else [len(plain) - 0.4, -0.6]
    return {"tickvals": list(range(len(plain))), "ticktext": plain, "range": ends}


def _words(over: Setting, value: Any) -> str:
    told = method_style(value).short if over.name == METHOD else say(over.name, value)
    return literal(told.removeprefix(f"{over.name.replace('_', ' ')} "))


def _logarithmic(over: Setting) -> bool:
    values = [value for value in over.values if isinstance(value, int | float) and value > 0]
    return over.ordered and len(values) == len(over.values) and max(values) >= 4 * min(values)


def _place(row: ScorecardRow, over: Setting, shift: int) -> float:
    """Return where a number stands; lines are a little apart, so that no bar hides another."""
    if _logarithmic(over):
        return float(settings_of(row)[over.name]) * APART ** (shift % ABREAST)
    return float(over.place(row)) + (0.05 if over.ordered else 0.11) * (shift % ABREAST)


def _number(row: ScorecardRow, name: str) -> NumberRead | None:
    found = row.metrics.get(name)
    return found if found is not None and found.value is not None else None


def _line(
    group: Sequence[ScorecardRow],
    name: str,
    over: Setting,
    looks: dict[str, SeriesStyle],
    naming: Naming,
    axes: dict[str, str],
    told: set[str],
    shift: int,
) -> Iterator[Trace]:
    found = [(row, one) for row in group if (one := _number(row, name)) is not None]
    if not found:
        return
    look = looks[group[0].id]
    words = literal(naming.of(group[0]))
    # A line between values without an order would mean nothing.
    along, value = "xy" if over.ordered else "yx"
    ahead, behind = ("up", "down") if over.ordered else ("right", "left")
    symbols = {"above": f"triangle-{ahead}-open", "below": f"triangle-{behind}-open"}
    yield scatter(
        **{
            along: [_place(row, over, shift) for row, _ in found],
            value: [one.value for _, one in found],
            f"error_{value}": {
                "type": "data",
                "symmetric": False,
                "array": [_reach(one.high, one.value) for _, one in found],
                "arrayminus": [_reach(one.value, one.low) for _, one in found],
                "color": look.colour,
                "thickness": 1.4,
                "width": 4,
            },
        },
        mode="lines+markers" if over.ordered else "markers",
        name=words,
        legendgroup=words,
        showlegend=words not in told,
        line={"color": look.colour, "dash": look.dash, "width": 2},
        marker={
            "size": 8,
            "color": look.colour,
            "symbol": [symbols.get(one.censored, look.marker) for _, one in found],
        },
        hovertext=[_hover(words, row, one, over) for row, one in found],
        hoverinfo="text",
        meta=name,
        **axes,
    )
    told.add(words)


def _reach(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else max(high - low, 0.0)


def _hover(words: str, row: ScorecardRow, one: NumberRead, over: Setting) -> str:
    told = f"<b>{words}</b><br>{literal(say(over.name, over.of(row)))}<br>{one.title} {one.text}"
    return f"{told}<br>95 %: {one.interval}" if one.interval else told


def _log_ticks(rows: Sequence[ScorecardRow], name: str) -> dict[str, Any]:
    found = [one for row in rows if (one := _number(row, name)) is not None]
    ends = [end for one in found for end in (one.value, one.low, one.high) if end and end > 0]
    return {"dtick": 1 if ends and math.log10(max(ends) / min(ends)) > 1.5 else "D2"}


def _text(row: ScorecardRow, name: str) -> str:
    return row.metrics[name].text if name in row.metrics else "unknown"


def _spoken(rows: Sequence[ScorecardRow], over: Setting, naming: Naming) -> str:
    told = []
    for group in join_order(rows, over):
        edges = [
            f"{_words(over, settings_of(row)[over.name])}: best rate "
            f"{_text(row, 'best_rate')}, edge {_text(row, 'edge')}"
            for row in group
        ]
        told.append(f"{naming.of(group[0])}, {'; '.join(edges)}")
    return f"Numbers against {over.name.replace('_', ' ')}. {'. '.join(told)}."


# --- The coordinate check of arXiv 2203.03466, App. D.1


#: The setting that widths are, and recordings by series and rate.
WIDTH = "width"
#: What the growth beside a rate is; on a phone the title says it.
OVER = ", widest over narrowest"
Looked = Mapping[str, Mapping[float, RecordingRead]]


def check_rates(series: Sequence[SeriesRead], picture: Picture) -> dict[str, float]:
    """Return at which rate each series is checked: one for all widths, by series' id.

    The tested rate nearest to what was asked for, else the narrowest network's best.
    """
    found: dict[str, float] = {}
    for group in _widths(series):
        shared = set.intersection(*({point.lr for point in line.points} for line in group))
        best = best_point(group[0], higher_is_better=picture.upwards)
        wanted = picture.family.rate or (best.lr if best else None)
        if shared and wanted:
            rate = min(shared, key=lambda lr: abs(math.log(lr / wanted)))
            found |= {line.id: rate for line in group}
    return found


def _widths(series: Sequence[SeriesRead]) -> list[list[SeriesRead]]:
    """Return series that differ in their width only, together, the narrowest first."""
    over = setting_over([line for line in series if line.points], WIDTH)
    if over is None or not _logarithmic(over):
        return []
    return [one for one in join_order([o for o in series if o.points], over) if len(one) > 1]


def coordinate_figure(
    series: Sequence[SeriesRead], recorded: Looked, picture: Picture
) -> go.Figure | None:
    """Return how far a few steps move every layer's outputs, against the width; None without any.

    Under muP the lines are flat: a step at one rate does as much at every width.

    Args:
        series: The curves.
        recorded: What was recorded of them, by id and rate.
        picture: How to draw it.
    """
    at = check_rates(series, picture)
    groups = [
        (group, [recorded[line.id][at[line.id]] for line in group])
        for group in _widths(series)
        if all(at.get(line.id) in recorded.get(line.id, ()) for line in group)
    ]
    if not groups:
        return None
    over = setting_over([line for group, _ in groups for line in group], WIDTH)
    assert over
    naming = Naming(varied(series), frozenset([over.name]))
    names = [naming.of(group[0]) for group, _ in groups]
    columns = min(2, columns_for(names, narrow=picture.narrow))
    titles = panel_titles(names, narrow=picture.narrow)
    grid = Grid(titles, NARROW_PANEL if picture.narrow else PANEL, columns, narrow=picture.narrow)
    colours: dict[str, str] = {}  # the whole ramp for every network, however few its layers are
    for outputs in dict.fromkeys(tuple(one.outputs) for _, looks in groups for one in looks):
        shades = ramp(len(outputs), picture.scheme)
        colours |= dict(zip(outputs, shades, strict=True)) | colours
    figure = go.Figure(layout={"template": template(picture.scheme)})
    told: set[str] = set()
    growth: list[str] = []
    for place, (group, looks) in enumerate(groups):
        axes = {"xaxis": f"x{grid.suffix(place)}", "yaxis": f"y{grid.suffix(place)}"}
        widths = [float(settings_of(line)[over.name]) for line in group]
        lines = {name: [_change(one, name) for one in looks] for name in colours}
        figure.add_traces(list(_outputs(lines, widths, over.name, colours, axes, told)))
        growth.append(f"rate {number(at[group[0].id])}{OVER}: {_growth(lines)}")
        figure.add_annotation(
            text=growth[-1].replace(OVER if picture.narrow else "", ""), showarrow=False,
            xref=f"{axes['xaxis']} domain", yref=f"{axes['yaxis']} domain",
            x=0.02, y=0.98, xanchor="left", yanchor="top",
            font={"size": 12, "color": PALETTE[picture.scheme].muted},
        )  # fmt: skip
    held = [y for trace in figure.data for y in trace.y if y]
    low, high = (math.log10(min(held)), math.log10(max(held))) if held else (-1.0, 1.0)
    axis = {"type": "log", "tickformat": "~g", "dtick": 1, "range": [low - 0.1, high + 0.35]}
    grid.lay_out(figure, _axis(over, 0), axis, PALETTE[picture.scheme])
    steps = max(one.looked_at[-1] for _, looks in groups for one in looks)
    words = f"{over.name}{OVER if picture.narrow else ''}"
    about = f"coordinate check: change of layers' outputs in {steps} steps, by {words}"
    title = title_words(picture.title, about, narrow=picture.narrow)
    grid.frame(figure, title, list(colours), axis=over.name.replace("_", " "), side="change (rms)")
    drawn = [line for group, _ in groups for line in group]
    figure.update_layout(
        meta={
            "label": f"{about[0].upper()}{about[1:]}. "
            f"{'; '.join(map(', '.join, zip(names, growth, strict=True)))}.",
            "caption": caption_words(drawn, picture.metric, picture.reducer, picture.title)
            + f" Drawn: root mean square of how far each layer's outputs have come after {steps} "
            "steps, on at most 250 training rows, of the first seed; a flat line: the same at "
            "every width.",
            "rates": False,
            "scrub": {**rates_of(drawn), "chosen": at[drawn[0].id]},
        },
        uirevision=picture.revision or "same",
    )
    return figure


def _change(one: RecordingRead, layer: str) -> float | None:
    """Return how far a layer's outputs had come when they were last looked at."""
    found = one.changes[one.outputs.index(layer)][-1] if layer in one.outputs else None
    return found or None  # what has not moved has no place on a logarithmic axis


def _outputs(
    lines: Mapping[str, Sequence[float | None]],
    widths: Sequence[float],
    words: str,
    colours: Mapping[str, str],
    axes: dict[str, str],
    told: set[str],
) -> Iterator[Trace]:
    for place, (name, values) in enumerate(lines.items()):
        if any(values):
            yield scatter(
                x=list(widths),
                y=list(values),
                mode="lines+markers",
                name=literal(name),
                legendgroup=name,
                showlegend=name not in told,
                line={"color": colours[name], "width": 2, "dash": "dot" if place % 2 else "solid"},
                marker={"size": 7, "color": colours[name]},
                hovertext=[
                    f"<b>{literal(name)}</b><br>{words} {number(width)}<br>change {number(value)}"
                    for width, value in zip(widths, values, strict=True)
                ],
                hoverinfo="text",
                meta="outputs",
                **axes,
            )
            told.add(name)


def _growth(lines: Mapping[str, Sequence[float | None]]) -> str:
    """Return by what factors the widest network's outputs move further than the narrowest's."""
    found = sorted(own[-1] / own[0] for own in lines.values() if own[0] and own[-1])
    if not found:
        return "not finite"
    low, high = number(found[0], 2), number(found[-1], 2)
    return f"× {low}" if low == high else f"× {low} to {high}"
