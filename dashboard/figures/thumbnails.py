"""Pictures without any script, as an image's address: a study's curves, the rates of a grid."""

import math
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from backend.schemas import Spark
from dashboard.formats import number
from dashboard.theme import METHOD_STYLE, method_style

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
    logs = [math.log10(rate) for rate in rates]
    first, last = math.floor(min(logs) + 1e-9), math.ceil(max(logs) - 1e-9)
    last = max(last, first + 1)

    width = TICKS_NARROW if narrow else TICKS_WIDTH

    def x(log: float) -> float:
        return TICKS_PAD + (width - 2 * TICKS_PAD) * (log - first) / (last - first)

    every = math.ceil(DECADE * (last - first) / width)
    decades = "".join(
        f'<path d="M{x(d):.1f} {TICKS_LINE}v6" stroke="{INK}"/>'
        f'<text x="{x(d):.1f}" y="{TICKS_HEIGHT - 10}" text-anchor="middle">'
        f"{number(10.0**d)}</text>"
        for d in range(first, last + 1, every)
    )
    ticks = "".join(f'<path d="M{x(log):.1f} 6v{TICKS_LINE - 6}"/>' for log in logs)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TICKS_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}">'
        f'<path d="M{TICKS_PAD} {TICKS_LINE}H{width - TICKS_PAD}" stroke="{INK}"/>{decades}'
        f'<g stroke="{ACCENT}" stroke-width="3" stroke-linecap="round">{ticks}</g></svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"


def rates_words(rates: Sequence[float]) -> str:
    """Return a grid as text; a long one by its ends."""
    if len(rates) <= 10:
        return ", ".join(number(rate) for rate in rates)
    shown = ", ".join(number(rate) for rate in rates[:3])
    return f"{shown}, … {number(rates[-1])} ({len(rates)} rates)"
