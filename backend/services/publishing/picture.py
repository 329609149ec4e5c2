"""Curves as SVG: loss against learning rate, both on log axes, divergences along the top."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from backend.schemas import RatePointRead, SeriesRead

WIDTH, HEIGHT = 720.0, 440.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 20.0, 30.0, 50.0
#: Told apart by people who see few colours, too (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b5b5b", "#8c510a")


def svg(series: Sequence[SeriesRead], *, title: str, value: str) -> str:
    """Return a picture of curves.

    Args:
        series: What to draw; rates without a finite value are marked at the top.
        title: Above it.
        value: What the upright axis measures.
    """
    rates = [point.lr for one in series for point in one.points]
    values = [one for each in series for point in each.points for one in _spread(point)]
    across = _Axis(rates or [1.0], LEFT, WIDTH - RIGHT)
    up = _Axis(values or [1.0], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="white"/>',
        f'<text x="{LEFT:g}" y="18" font-size="14">{escape(title[:90])}</text>',
        *_grid(across, up, value),
    ]
    for number, one in enumerate(series):
        parts += _curve(one, COLOURS[number % len(COLOURS)], across, up, number)
    return "\n".join([*parts, "</svg>\n"])


class _Axis:
    """A log axis from a little below the least value to a little above the largest."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
        low, high = math.log10(min(positive)), math.log10(max(positive))
        room = max((high - low) * 0.04, 0.05)
        self.low, self.high = low - room, high + room
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        share = (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self._start + (self._end - self._start) * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        decades = range(math.ceil(self.low), math.floor(self.high) + 1)
        step = max(1, len(decades) // 8)
        found = [10.0**power for power in decades[::step]]
        return found or [10 ** ((self.low + self.high) / 2)]


def _spread(point: RatePointRead) -> list[float]:
    found = (point.finite_mean, point.low, point.high)
    return [value for value in found if value is not None and value > 0]


def _grid(across: _Axis, up: _Axis, value: str) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(f'<path d="M{x:.1f} {TOP:g}V{bottom:g}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:g}" text-anchor="middle">{tick:g}</text>')
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(f'<path d="M{LEFT:g} {y:.1f}H{right:g}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text x="{middle:g}" y="{HEIGHT - 10:g}" text-anchor="middle">Learning rate</text>'
    )
    parts.append(
        f'<text transform="translate(16 {(TOP + bottom) / 2:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(value)}</text>'
    )
    return parts


def _curve(one: SeriesRead, colour: str, across: _Axis, up: _Axis, number: int) -> list[str]:
    drawn = [point for point in one.points if (point.finite_mean or 0) > 0]
    places = [(across.place(p.lr), up.place(p.finite_mean or 1.0)) for p in drawn]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>']
    if banded := [point for point in drawn if point.low and point.high and point.low > 0]:
        ring = [(across.place(p.lr), up.place(p.high or 1.0)) for p in banded]
        ring += [(across.place(p.lr), up.place(p.low or 1.0)) for p in reversed(banded)]
        area = " ".join(f"{x:.1f},{y:.1f}" for x, y in ring)
        parts.append(f'<polygon points="{area}" fill="{colour}" fill-opacity="0.15"/>')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    parts += [
        f'<text x="{across.place(p.lr):.1f}" y="{TOP + 12 + 10 * (number % 4):g}" fill="{colour}" '
        f'text-anchor="middle">×<title>{p.diverged} of {p.n} diverged</title></text>'
        for p in one.points
        if p.diverged
    ]
    y = HEIGHT - BOTTOM - 12 - 16 * number
    parts.append(f'<path d="M{LEFT + 8:g} {y - 4:g}h18" stroke="{colour}" stroke-width="3"/>')
    parts.append(f'<text x="{LEFT + 32:g}" y="{y:g}">{escape(one.label[:60])}</text>')
    return parts
