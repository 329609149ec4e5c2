"""Small pictures: without any script, as an image's address, or as what the browser draws.

Images are curves, a grid's rates, brackets; the start page's charts follow a finger.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from backend.schemas import RaceRead, SearchRead, SeriesFoundRead, Spark, StudyRead, SweepRead
from dashboard.theme import METHOD_STYLE, method_style, number

#: Of a sparkline, small enough for a table cell.
WIDTH, HEIGHT, PAD = 132, 36, 4
#: Losses above so many times the best one are off the scale, and drawn at the top edge as those
#: that are not finite; the highest on the scale stays so far below it.
SPARK_REACH, ON_SCALE = 300.0, 0.86
#: Opacity of a method's first, second, ... line: other widths, other clips.
FADES = (1.0, 0.7, 0.5, 0.35)
DASHES = {"dot": "1.5 3", "dash": "5 3", "longdash": "8 3", "dashdot": "6 3 1.5 3", "solid": ""}
#: Of a grid's rates, on a screen and on a phone.
TICKS_WIDTH, TICKS_NARROW, TICKS_HEIGHT, TICKS_PAD, TICKS_LINE = 640, 320, 56, 24, 24
DECADE = 70
INK, ACCENT = "#868E96", "#3B5BDB"
#: Of a search's brackets: a series' name, a seed's bar, and the room between series.
NAME_HEIGHT, BAR_HEIGHT, BAR_STEP, SERIES_GAP = 16, 5, 8, 6
#: A bracket that is within its factor must still be seen.
LEAST_BAR = 3.0


def sparkline(sparks: Sequence[Spark]) -> str | None:
    """Return the curves as an image's address; None if there is nothing to draw yet."""
    means = [p.mean for spark in sparks for p in spark.points if p.mean is not None]
    rates = [math.log10(point.lr) for spark in sparks for point in spark.points]
    if not means or len(rates) < 2:
        return None
    low, high = min(means), max(means)
    if low > 0:  # as on the start page: one that learns less must not look like one that broke
        high = min(high, SPARK_REACH * low)
    top = high if high > low else low + 1
    paths = [
        _path(spark, min(rates), max(rates), low, top, opacity)
        for spark, opacity in zip(sparks, spark_fades(sparks), strict=True)
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="none" stroke-width="1.8" stroke-linejoin="round">{"".join(paths)}</svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"


def spark_fades(sparks: Sequence[Spark]) -> list[float]:
    """Return how opaque each curve is: lines of one method are told apart by it."""
    before: Counter[str] = Counter()
    found = []
    for spark in sparks:
        found.append(FADES[min(before[spark.method], len(FADES) - 1)])
        before[spark.method] += 1
    return found


def spark_setting(spark: Spark) -> str:
    """Return what tells a curve from the others of its method; empty if it has none beside it."""
    return spark.label.partition(", ")[2]


def spark_words(sparks: Sequence[Spark]) -> str:
    """Return what a sparkline shows, for who cannot see it."""
    names = [_name(spark) for spark in sparks]
    between = "; " if any(", " in name for name in names) else ", "
    return f"Loss against learning rate of {between.join(names)}" if names else "No curve yet"


def _name(spark: Spark) -> str:
    return ", ".join(filter(None, (method_style(spark.method).short, spark_setting(spark))))


def _path(spark: Spark, left: float, right: float, low: float, high: float, opacity: float) -> str:
    style = METHOD_STYLE.get(spark.method) or method_style(spark.method)
    steps: list[str] = []
    pen_up = True
    for point in spark.points:
        x = PAD + (WIDTH - 2 * PAD) * (math.log10(point.lr) - left) / ((right - left) or 1)
        y = HEIGHT - PAD - (HEIGHT - 2 * PAD) * _share(point.mean, low, high)
        steps.append(f"{'M' if pen_up else 'L'}{x:.1f} {y:.1f}")
        pen_up = False
    dash = DASHES.get(style.dash, "")
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    faded = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<path d="{"".join(steps)}" stroke="{style.colour}"{dashes}{faded}/>'


def _share(mean: float | None, low: float, high: float) -> float:
    """Return how high a mean stands, from 0 to 1, on a logarithmic axis where there can be one."""
    if mean is None or mean > high:
        return 1.0
    if low > 0:
        return ON_SCALE * math.log(mean / low) / math.log(high / low)
    return ON_SCALE * (mean - low) / (high - low)


def rate_ticks(rates: Sequence[float], *, narrow: bool = False) -> str | None:
    """Return the rates as an image's address, a phone's width if `narrow`; None without any."""
    if not rates:
        return None
    axis = _Axis(rates, TICKS_NARROW if narrow else TICKS_WIDTH)
    ticks = "".join(f'<path d="M{axis.x(rate):.1f} 6v{TICKS_LINE - 6}"/>' for rate in rates)
    marks = f'<g stroke="{ACCENT}" stroke-width="3" stroke-linecap="round">{ticks}</g>'
    return axis.image(marks, TICKS_LINE)


class _Axis:
    """An axis of rates, in whole decades."""

    def __init__(self, rates: Sequence[float], width: int) -> None:
        logs = [math.log10(rate) for rate in rates]
        self.width = width
        self.first = math.floor(min(logs) + 1e-9)
        self.last = max(math.ceil(max(logs) - 1e-9), self.first + 1)

    def x(self, rate: float) -> float:
        """Return where a rate stands."""
        share = (math.log10(rate) - self.first) / (self.last - self.first)
        return TICKS_PAD + (self.width - 2 * TICKS_PAD) * share

    def image(self, marks: str, line: float) -> str:
        """Return what stands on the axis, which is so far below the top, as an image's address."""
        every = math.ceil(DECADE * (self.last - self.first) / self.width)
        decades = "".join(
            f'<path d="M{self.x(10.0**d):.1f} {line}v6" stroke="{INK}"/>'
            f'<text x="{self.x(10.0**d):.1f}" y="{line + TICKS_HEIGHT - TICKS_LINE - 10}" '
            f'text-anchor="middle">{number(10.0**d)}</text>'
            for d in range(self.first, self.last + 1, every)
        )
        height = line + TICKS_HEIGHT - TICKS_LINE
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}">'
            f'<path d="M{TICKS_PAD} {line}H{self.width - TICKS_PAD}" stroke="{INK}"/>{decades}'
            f"{marks}</svg>"
        )
        return f"data:image/svg+xml,{quote(svg)}"


def bracket_bars(search: SearchRead, *, narrow: bool = False) -> str:
    """Return every seed's bracket as a bar on the rates, series by series, as an image's address.

    A bar is pale while its bracket is wider than was asked for; the last round's rates are lit.
    """
    axis = _Axis((search.low, search.high), TICKS_NARROW if narrow else TICKS_WIDTH)
    marks, y = [], 0
    for one in search.series:
        colour = method_style(one.method).colour
        marks.append(f'<text x="{TICKS_PAD}" y="{y + 12}">{escape(_series_name(one))}</text>')
        y += NAME_HEIGHT
        for bar in _bars(one):
            marks.append(_bar(axis, search, bar, colour, y))
            y += BAR_STEP
        y += SERIES_GAP
    return axis.image("".join(marks), y + 2)


def _series_name(one: SeriesFoundRead) -> str:
    clip = "" if one.clip is None else f", clip {number(one.clip)}"
    return f"{method_style(one.method).short}{clip}: {one.text}"


#: Its ends, how far it is, and the rates of the last round.
_Bar = tuple[float | None, float | None, str, Sequence[float]]


def _bars(one: SeriesFoundRead) -> list[_Bar]:
    if one.seeds:
        return [(seed.low, seed.high, seed.where, seed.last) for seed in one.seeds]
    return [(one.low, one.high, one.where, [one.value] if one.value else [])]


def _bar(axis: _Axis, search: SearchRead, bar: _Bar, colour: str, y: int) -> str:
    low, high, where, last = bar
    left, right = axis.x(low or search.low), axis.x(high or search.high)
    if where == "above":  # nothing broke: it lies beyond the end
        left = right
    if where == "below":
        right = left
    width = max(right - left, LEAST_BAR)
    pale = ' fill-opacity="0.35"' if where in ("open", "stuck") else ""
    lit = "".join(
        f'<circle cx="{axis.x(rate):.1f}" cy="{y + BAR_HEIGHT / 2}" r="2.5" fill="{ACCENT}"/>'
        for rate in (last if where == "open" or not search.done else ())
    )
    return (
        f'<rect x="{(left + right - width) / 2:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{BAR_HEIGHT}" rx="1.5" fill="{colour}"{pale}/>{lit}'
    )


def bracket_words(search: SearchRead) -> str:
    """Return what the bars show, for who cannot see them."""
    what = "Edges" if search.find == "edge" else "Best rates"
    found = "; ".join(_series_name(one) for one in search.series)
    return f"{what} within a factor of {number(search.within)}: {found}"


def rates_words(rates: Sequence[float]) -> str:
    """Return a grid as text; a long one by its ends."""
    if len(rates) <= 10:
        return ", ".join(number(rate) for rate in rates)
    shown = ", ".join(number(rate) for rate in rates[:3])
    return f"{shown}, … {number(rates[-1])} ({len(rates)} rates)"


# --- What the start page's charts are made from; the browser draws them, to follow a finger


Chart = dict[str, Any]
#: So many times the loss before training is still on the chart; the rest is on its rail.
RACE_REACH = 40.0


def race_picture(race: RaceRead, first: float) -> Chart:
    """Return all the browser needs for every rate: curves, words, colours and one scale for all."""
    ends = [loss for rate in race.rates for lane in rate.lanes for loss in lane.median if loss]
    methods = {lane.method for rate in race.rates for lane in rate.lanes}
    last = race.epochs[-1]
    return {
        "race": race.model_dump(mode="json"),
        "first": first,
        "styles": {method: style_of(method) for method in sorted(methods)},
        "scale": {
            "x": {"range": [0, last], "ticks": [0, last / 2, last], "title": "Epoch"},
            "y": log_axis(min(ends), RACE_REACH * race.initial, "Training loss"),
            "room": 92,
        },
    }


def curve_chart(study: StudyRead, sweep: SweepRead | None) -> Chart | None:
    """Return a study's curves so far, on the axis of its last sweep; None: nothing has ended yet.

    The axis is there from the beginning, so that one sees the curves grow along it.
    """
    means = [p.mean for spark in study.spark for p in spark.points if p.mean and p.mean > 0]
    planned = sweep.spec.get("learning_rates", ()) if sweep else ()
    rates = [*planned, *(point.lr for spark in study.spark for point in spark.points)]
    if not means:
        return None
    low, high = min(rates), max(rates)
    return {
        "x": {
            "range": [low, high] if low < high else [low / 3, high * 3],
            "ticks": _decades(low, high, most=4),
            "title": "Learning rate",
            "log": True,
        },
        "y": log_axis(min(means), min(max(means), SPARK_REACH * min(means)), "Mean final loss"),
        "words": spark_words(study.spark),
        "room": 92 if any(spark_setting(spark) for spark in study.spark) else 44,
        "labels": [
            {
                "style": style_of(spark.method),
                "value": spark.points[-1].mean,
                "words": spark_setting(spark),
            }
            for spark in study.spark
            if spark.points
        ],
        "lines": [
            {
                "style": style_of(spark.method),
                "dots": True,
                "opacity": opacity,
                "points": [[point.lr, point.mean] for point in spark.points],
            }
            for spark, opacity in zip(study.spark, spark_fades(study.spark), strict=True)
        ],
    }


def style_of(method: str) -> dict[str, str]:
    """Return what a method looks like, for the browser."""
    style = method_style(method)
    return {
        "short": style.short,
        "title": style.title,
        "colour": style.colour,
        "dash": style.dash,
        "light": style.ink_light,
        "dark": style.ink_dark,
    }


def log_axis(low: float, high: float, title: str) -> Chart:
    """Return a logarithmic axis a little wider than its values, with a tick a decade."""
    bottom, top = low / 1.25, max(high, 3 * low)
    return {"range": [bottom, top], "ticks": _decades(bottom, top), "title": title, "log": True}


def _decades(low: float, high: float, most: int = 6) -> list[float]:
    """Return the powers of ten between two values, a few of them where there are many."""
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    step = max(1, math.ceil(len(powers) / most))
    return _plain(10.0**power for power in powers[::step])


def _plain(values: Iterable[float]) -> list[float]:
    """Return numbers without the noise of their last digits."""
    return [int(value) if value >= 1 else float(f"{value:.1g}") for value in values]
