"""Pairs that left the scale: on a rail above a panel those higher, on one below those lower."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from backend.schemas import PairedRead
from dashboard.figures.divergence import closest_of, have_room
from dashboard.figures.traces import Trace, scatter
from dashboard.formats import counted, number
from dashboard.theme import SeriesStyle

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


def rail_traces(
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
