"""What left the scale or diverged: rails above and below.

The rail also counts seeds that left the scale, in their curve's lane.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from backend.schemas import PairedRead, RatePointRead, SeriesRead
from dashboard.figures.scale import Scale
from dashboard.figures.traces import OPEN_RAIL, Trace, opens, scatter
from dashboard.figures.wording import diverged_hover, rail_words
from dashboard.theme import Palette, SeriesStyle, counted, number

# Pixels, to tell whether counts would run into each other; hover texts have them all the same.
WIDE, NARROW, LETTER, MARKER = 640, 280, 6.5, 14


@dataclass(frozen=True, slots=True)
class RailEntry:
    """What the rail says about one rate of one curve."""

    point: RatePointRead
    diverged: int
    off_scale: list[int]

    @property
    def crowded(self) -> bool:
        """Whether both kinds of marker stand here."""
        return bool(self.diverged and self.off_scale)


def rail_entries(line: SeriesRead, scale: Scale) -> list[RailEntry]:
    """Return the rates at which seeds diverged, or completed above the scale."""
    entries = [
        RailEntry(
            point,
            point.diverged,
            [
                seed.trial_id
                for seed in point.seeds
                if seed.outcome == "completed"
                and seed.value is not None
                and not scale.holds(seed.value)
            ],
        )
        for point in line.points
    ]
    return [entry for entry in entries if entry.diverged or entry.off_scale]


def rail_traces(
    line: SeriesRead,
    name: str,
    style: SeriesStyle,
    entries: Sequence[RailEntry],
    *,
    lane: int,
    decades: float,
    short: bool,
) -> Iterator[Any]:
    """Yield the markers of one lane: filled for diverged, open for off the scale.

    Args:
        line: The curve.
        name: What the legend calls it.
        style: Its looks.
        entries: What there is to mark.
        lane: Its height on the rail's axis.
        decades: The length of the axis of rates, which may be longer than this curve.
        short: Whether there is room for the number of seeds alone, not for "1/3".
    """
    diverged = [entry for entry in entries if entry.diverged]
    off_scale = [entry for entry in entries if entry.off_scale]
    # Of either kind: half a lane apart, a count still runs into the next one's marker.
    closest = closest_of([entry.point.lr for entry in entries], decades)
    common = {"legendgroup": line.id, "showlegend": False, "xaxis": "x", "yaxis": "y2"}
    if diverged:
        yield scatter(
            x=[entry.point.lr for entry in diverged],
            y=[lane + (0.25 if entry.crowded else 0) for entry in diverged],
            **_look("triangle-up", style),
            **_counts([(one, one.diverged) for one in diverged], closest, short=short),
            hovertext=[diverged_hover(name, entry.point) for entry in diverged],
            hoverinfo="text",
            customdata=[
                opens(seed.trial_id for seed in entry.point.seeds if seed.outcome == "diverged")
                for entry in diverged
            ],
            meta="rail diverged",
            **common,
        )
    if off_scale:
        yield scatter(
            x=[entry.point.lr for entry in off_scale],
            y=[lane - (0.25 if entry.crowded else 0) for entry in off_scale],
            **_look("arrow-bar-up-open", style),
            **_counts([(one, len(one.off_scale)) for one in off_scale], closest, short=short),
            hovertext=[_off_scale_hover(name, entry) for entry in off_scale],
            hoverinfo="text",
            customdata=[opens(entry.off_scale) for entry in off_scale],
            meta="rail off scale",
            **common,
        )


def _look(symbol: str, style: SeriesStyle) -> dict[str, Any]:
    return {
        "marker": {
            "symbol": symbol,
            "size": 10,
            "color": style.colour if symbol == "triangle-up" else style.ink,
            "line": {"color": style.ink, "width": 1.2},
        },
        "textposition": "middle right",
        "textfont": {"size": 11, "color": style.ink},
        "cliponaxis": False,
    }


def _counts(
    entries: Sequence[tuple[RailEntry, int]], closest: float, *, short: bool
) -> dict[str, Any]:
    """Return the counts beside the markers, where there is room for them: "1/3", or "1" alone."""
    alone = [str(k) for _, k in entries]
    of_all = [f"{k}/{entry.point.n}" for entry, k in entries]
    texts = of_all if not short and have_room(of_all, closest, narrow=False) else alone
    fits = have_room(texts, closest, narrow=short)
    return {"text": texts, "mode": "markers+text" if fits else "markers"}


def have_room(texts: Sequence[str], closest: float, *, narrow: bool) -> bool:
    """Return whether texts beside markers end before the next one, `closest` of the axis away."""
    needed = MARKER + LETTER * max(len(text) for text in texts)
    return (NARROW if narrow else WIDE) * closest >= needed


def closest_of(rates: Sequence[float], decades: float) -> float:
    """Return the smallest distance of neighbouring rates, as a share of the axis."""
    return min((math.log10(b / a) / decades for a, b in pairwise(rates)), default=1.0)


def _off_scale_hover(name: str, entry: RailEntry) -> str:
    words = counted(len(entry.off_scale), "completed seed")
    return (
        f"<b>{name}</b><br>learning rate {number(entry.point.lr)}<br>"
        f"{words} of {entry.point.n} above this scale"
    )


def folded_rail(
    lines: Sequence[SeriesRead],
    scale: Scale,
    palette: Palette,
    *,
    at: float,
    span: Sequence[float],
    room: float,
    **axes: str,
) -> Iterator[Trace]:
    """Yield one line of marks for all curves: how many of their seeds broke or left the scale.

    Args:
        lines: The curves of a panel.
        scale: Of its y axis.
        palette: Of the page.
        at: Height of the rail.
        span: The ends of the axis of rates, as powers of ten.
        room: How wide that is, in pixels.
        axes: Of the panel.
    """
    by_rate: dict[float, list[tuple[SeriesRead, RailEntry]]] = {}
    seeds: dict[float, int] = {}
    for line in lines:
        for entry in rail_entries(line, scale):
            by_rate.setdefault(entry.point.lr, []).append((line, entry))
        for point in line.points:
            seeds[point.lr] = seeds.get(point.lr, 0) + point.n
    if not by_rate:
        return
    rates = sorted(by_rate)
    gone = {lr: sum(e.diverged + len(e.off_scale) for _, e in by_rate[lr]) for lr in rates}
    told, hidden = _totals([(lr, gone[lr], seeds[lr]) for lr in rates], span, room)
    yield scatter(
        x=rates,
        y=[at] * len(rates),
        mode="markers+text" if any(told) else "markers",
        marker={
            "symbol": "triangle-up",
            "size": [6 + 7 * gone[lr] / seeds[lr] for lr in rates],
            "color": palette.muted,
            "opacity": [0.0 if one else 1.0 for one in hidden],
        },
        text=told,
        textposition="middle right",
        textfont={"size": 10, "color": palette.muted},
        hovertext=[
            rail_words(lr, gone[lr], seeds[lr], [(o, e.diverged, e.off_scale) for o, e in own])
            for lr, own in sorted(by_rate.items())
        ],
        hoverinfo="text",
        customdata=[
            OPEN_RAIL if len(lines) > 1 else opens(_lost(by_rate[lr][0][1])) for lr in rates
        ],
        showlegend=False,
        cliponaxis=False,
        meta="rail folded",
        **axes,
    )


def _totals(
    marks: Sequence[tuple[float, int, int]], span: Sequence[float], room: float
) -> tuple[list[str], list[bool]]:
    """Return what is written beside marks as far as there is room, and which it stands for.

    From where every seed of every rate is lost an arrow says so, in the place of the other marks.
    """
    places = [room * (math.log10(lr) - span[0]) / (span[1] - span[0]) for lr, _, _ in marks]
    told = [f"{gone}/{of}" for _, gone, of in marks]
    whole = len(marks)
    while whole and marks[whole - 1][1:] == (marks[-1][2],) * 2:
        whole -= 1
    words = f"{told[-1]} →"
    hidden = [False] * len(marks)
    if len(marks) - whole > 2 and room - places[whole] >= MARKER + LETTER * len(words):
        told[whole:] = [words, *[""] * (len(marks) - whole - 1)]
        hidden[whole + 1 :] = [True] * (len(marks) - whole - 1)
    for i, after in enumerate([*places[1:], room]):
        if not told[i].endswith("→") and after - places[i] < MARKER + LETTER * len(told[i]):
            told[i] = ""
    return told, hidden


def _lost(entry: RailEntry) -> list[int]:
    diverged = [one.trial_id for one in entry.point.seeds if one.outcome == "diverged"]
    return [*diverged, *entry.off_scale]


#: Pixels: of a lane, and beyond the outermost ones.
LANE, MARGIN = 18, 8
#: What is said of a side's pairs, and what marks them.
SIDES = {"higher": "triangle-up-open", "lower": "triangle-down-open"}


@dataclass(frozen=True, slots=True)
class Lane:
    """What one difference has on a rail.

    Attributes:
        name: Of its method, beside the rail.
        told: What the legend calls it, for the hover.
        style: Its looks.
        marked: How many pairs are off the scale, by rate.
        group: Of the legend, which switches it.
    """

    name: str
    told: str
    style: SeriesStyle
    marked: list[tuple[float, int]]
    group: str


#: More lanes than this on a side are folded into one.
MOST_LANES = 6


def folded(lanes: Sequence[Lane], colour: str) -> list[Lane]:
    """Return a side's lanes, or one with their sums if they would take the curves' room."""
    if len(lanes) <= MOST_LANES:
        return list(lanes)
    total = Counter({lr: 0 for lane in lanes for lr, _ in lane.marked})
    for lane in lanes:
        total.update(dict(lane.marked))
    words = f"{len(lanes)} curves"
    style = SeriesStyle(colour, colour, "solid", 1.0, "circle", 9)
    return [Lane(words, words, style, sorted(total.items()), "folded")]


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


def height_of(lanes: Sequence[Lane]) -> int:
    """Return a rail's height in pixels; one without lanes has none."""
    return LANE * len(lanes) + MARGIN if lanes else 0


def rail_axis(lanes: Sequence[Lane], domain: list[float], anchor: str) -> dict[str, Any]:
    """Return the axis of a rail: its ticks are the lanes' names."""
    half = MARGIN / LANE / 2
    return {
        "domain": domain,
        "anchor": anchor,
        "range": [-0.5 - half, len(lanes) - 0.5 + half],
        "tickvals": list(range(len(lanes))),
        "ticktext": [lane.name for lane in reversed(lanes)],
        "tickfont": {"size": 11},
        "ticks": "",
        "showgrid": False,
        "showline": False,
        "zeroline": False,
        "fixedrange": True,
    }


def pair_rail_traces(
    lanes: Sequence[Lane], side: str, place: dict[str, Any], *, decades: float, narrow: bool
) -> Iterator[Trace]:
    """Yield a rail's markers with their counts, a trace a lane, the first lane on top."""
    for lane, height in zip(lanes, reversed(range(len(lanes))), strict=True):
        texts = [str(pairs) for _, pairs in lane.marked]
        rates = [lr for lr, _ in lane.marked]
        fits = have_room(texts, closest_of(rates, decades), narrow=narrow)
        yield scatter(
            x=rates,
            y=[height] * len(rates),
            mode="markers+text" if fits else "markers",
            marker={"symbol": SIDES[side], "size": 10, "color": lane.style.ink},
            text=texts,
            textposition="middle right",
            textfont={"size": 11, "color": lane.style.ink},
            cliponaxis=False,
            hovertext=[
                f"<b>{lane.told}</b><br>learning rate {number(lr)}<br>"
                f"{counted(pairs, 'pair')} {side} than this scale shows, or not finite"
                for lr, pairs in lane.marked
            ],
            hoverinfo="text",
            showlegend=False,
            legendgroup=lane.group,
            meta="edge",
            **place,
        )


def rail_legend(side: str, colour: str) -> Trace:
    """Return what explains the marks of a side."""
    marker = {"symbol": SIDES[side], "size": 10, "color": colour}
    name = f"pairs {'above' if side == 'higher' else 'below'} scale"
    return scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, meta="legend")
