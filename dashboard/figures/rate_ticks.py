"""The rates of a grid as ticks on a logarithmic line, as a picture without any script."""

import math
from collections.abc import Sequence
from urllib.parse import quote

from dashboard.formats import number

WIDTH, NARROW, HEIGHT, PAD, LINE = 640, 320, 56, 24, 24
DECADE = 70
INK, ACCENT = "#868E96", "#3B5BDB"


def rate_ticks(rates: Sequence[float], *, narrow: bool = False) -> str | None:
    """Return the rates as an image's address, a phone's width if `narrow`; None without any."""
    if not rates:
        return None
    logs = [math.log10(rate) for rate in rates]
    first, last = math.floor(min(logs) + 1e-9), math.ceil(max(logs) - 1e-9)
    last = max(last, first + 1)

    width = NARROW if narrow else WIDTH

    def x(log: float) -> float:
        return PAD + (width - 2 * PAD) * (log - first) / (last - first)

    every = math.ceil(DECADE * (last - first) / width)
    decades = "".join(
        f'<path d="M{x(d):.1f} {LINE}v6" stroke="{INK}"/>'
        f'<text x="{x(d):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{number(10.0**d)}</text>'
        for d in range(first, last + 1, every)
    )
    ticks = "".join(f'<path d="M{x(log):.1f} 6v{LINE - 6}"/>' for log in logs)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}">'
        f'<path d="M{PAD} {LINE}H{width - PAD}" stroke="{INK}"/>{decades}'
        f'<g stroke="{ACCENT}" stroke-width="3" stroke-linecap="round">{ticks}</g></svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"


def rates_words(rates: Sequence[float]) -> str:
    """Return a grid as text; a long one by its ends."""
    if len(rates) <= 10:
        return ", ".join(number(rate) for rate in rates)
    shown = ", ".join(number(rate) for rate in rates[:3])
    return f"{shown}, … {number(rates[-1])} ({len(rates)} rates)"
