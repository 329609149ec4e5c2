"""What is published: curves, numbers, every trial, and how they were made.

Curves as SVG: loss against learning rate, both on log axes, divergences along the top. They look
as they do on the dashboard's pages: a method has one colour, one dash and one marker.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import SweepRow
from backend.schemas import CompareRead, Metric, RatePointRead, SeriesRead, StudyRead
from backend.services import analysis, studies
from ib_core.errors import IBError
from ib_core.methods import Look, series_look
from ib_core.sweep.request import body_of, command_line

METRICS: dict[Metric, str] = {"train_loss": "Training loss", "test_loss": "Test loss"}
CITATION = (
    "Etascope: learning-rate robustness studies. "
    "Its implicit steps follow F. Fagan and G. Iyengar, Robust Implicit Backpropagation."
)


@dataclass(frozen=True, slots=True)
class Made:
    """How one sweep came about."""

    id: int
    study_id: int
    words: str
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Contents:
    """One or several studies, ready to be written down."""

    studies: tuple[StudyRead, ...]
    answers: Mapping[Metric, CompareRead]
    made: tuple[Made, ...]
    version: str
    at: datetime

    @property
    def title(self) -> str:
        """The study's name, or all of them."""
        return " against ".join(study.name for study in self.studies)


@dataclass(frozen=True, slots=True)
class Drawn:
    """How one curve is drawn.

    Attributes:
        colour: Of line and markers.
        ink: The colour as text is readable in it.
        dash: Strokes and gaps of the line.
        width: Of the line.
        marker: The path of an SVG around 0, 0.
        open: Whether the marker is an outline.
    """

    colour: str
    ink: str
    dash: str
    width: float
    marker: str
    open: bool


def gather(session: Session, *, study_ids: Sequence[int]) -> Contents:
    """Return what some studies hold; several are drawn on one axis.

    Raises:
        NotFound: There is no such study.
    """
    wanted = list(dict.fromkeys(study_ids))
    found = tuple(studies.get(session, study_id=study_id) for study_id in wanted)
    names = {study.id: study.name for study in found}
    answers: dict[Metric, CompareRead] = {}
    for metric in METRICS:
        answer = analysis.compare(
            session, studies=names, metric=metric, reducer="final", band="std"
        )
        if metric == "train_loss" or any(_drawn(series) for series in answer.series):
            answers[metric] = answer
    sweeps = session.scalars(
        select(SweepRow).where(SweepRow.study_id.in_(wanted)).order_by(SweepRow.id)
    )
    return Contents(found, answers, tuple(map(_made, sweeps)), _version(), datetime.now(UTC))


def _drawn(series: SeriesRead) -> bool:
    return any(point.finite_mean is not None for point in series.points)


def _made(row: SweepRow) -> Made:
    """Return the command that repeats a sweep, or why there is none."""
    if row.imported:
        return Made(row.id, row.study_id, f"# {row.note or 'Imported.'}", None)
    if row.body.get("live"):
        return Made(row.id, row.study_id, "# Logged live by its own programs.", None)
    try:
        body = body_of(row.spec)
    except IBError:  # of a version that knew other settings
        return Made(row.id, row.study_id, f"# Sweep {row.id}: see its settings.", dict(row.spec))
    words = command_line("etascope submit", body)
    return Made(row.id, row.study_id, words, body)


def _version() -> str:
    try:
        return version("etascope")
    except PackageNotFoundError:
        return "of a folder it is not installed from"


def drawing(contents: Contents) -> dict[str, Any]:
    """Return what the page's script draws from; every trial with a result is in it."""
    return {
        "title": contents.title,
        "metrics": [
            {
                "name": metric,
                "title": METRICS[metric],
                "series": [
                    _curve(series, look)
                    for series, look in zip(answer.series, looks(answer.series), strict=True)
                ],
            }
            for metric, answer in contents.answers.items()
        ],
    }


def _curve(series: SeriesRead, look: Drawn) -> dict[str, Any]:
    return {
        "label": series.label,
        "method": series.method,
        "task": series.task,
        "look": asdict(look),
        "points": [
            {
                "lr": point.lr,
                "mean": _short(point.finite_mean),
                "partial": point.mean is None,
                "low": _short(point.low),
                "high": _short(point.high),
                "n": point.n,
                "diverged": point.diverged,
                "seeds": [
                    [one.seed, _short(one.value), one.trial_id, int(one.outcome == "diverged")]
                    for one in point.seeds
                ],
            }
            for point in series.points
        ],
    }


def _short(value: float | None) -> float | None:
    """Return a number with the digits a picture needs; files of data have all of them."""
    return None if value is None else float(f"{value:.6g}")


def looks(series: Sequence[SeriesRead]) -> list[Drawn]:
    """Return how curves are drawn; no two alike in one picture, that of a task."""
    seen: dict[tuple[str, Look], int] = {}
    found = []
    for one in series:
        clipped = one.clip is not None
        alike = one.task, series_look(one.method, clipped=clipped, imported=one.imported)
        variant = seen[alike] = seen.get(alike, -1) + 1
        look = series_look(one.method, clipped=clipped, imported=one.imported, variant=variant)
        dash, width = DASHES[look.dash], 1.2 if clipped else 2.2
        opened = look.marker.endswith("-open")
        found.append(Drawn(look.colour, look.ink_light, dash, width, _marker(look.marker), opened))
    return found


#: Strokes and gaps of plotly's dashes, in pixels.
DASHES = {
    "solid": "", "dot": "2 3", "dash": "6 5", "longdash": "10 6", "dashdot": "6 3 2 3",
    "longdashdot": "10 4 2 4",
}  # fmt: skip
_Corners = list[tuple[float, float]]


def _turned(corners: _Corners, degrees: float) -> _Corners:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return [(x * cos - y * sin, x * sin + y * cos) for x, y in corners]


def _ring(count: int, radius: float, turn: float = 0.0, inner: float | None = None) -> _Corners:
    """Return corners around a middle, the first on top; with `inner` those of a star."""
    each = [radius] if inner is None else [radius, inner]
    turns = [turn + 360 * place / count / len(each) for place in range(count * len(each))]
    return [
        _turned([(0.0, -each[place % len(each)])], angle)[0] for place, angle in enumerate(turns)
    ]


_CROSS = [(1.2, -0.4), (0.4, -0.4), (0.4, -1.2), (-0.4, -1.2), (-0.4, -0.4), (-1.2, -0.4)]
_CROSS += [(-x, -y) for x, y in _CROSS]
#: Plotly's symbols but the circle, around a middle; a circle has the radius 1.
SHAPES: dict[str, _Corners] = {
    "diamond": _ring(4, 1.3),
    "square": _ring(4, 1.4, 45),
    "triangle-up": _ring(3, 1.25),
    "triangle-right": _ring(3, 1.25, 90),
    "triangle-down": _ring(3, 1.25, 180),
    "triangle-left": _ring(3, 1.25, 270),
    "pentagon": _ring(5, 1.1),
    "hexagon": _ring(6, 1.1),
    "hexagon2": _ring(6, 1.1, 30),
    "star": _ring(5, 1.5, inner=0.6),
    "star-diamond": _ring(4, 1.5, inner=0.65),
    "star-square": _ring(4, 1.5, 45, inner=0.65),
    "cross": _CROSS,
    "x": _turned(_CROSS, 45),
    "bowtie": [(1.1, 1.1), (1.1, -1.1), (-1.1, 1.1), (-1.1, -1.1)],
}
RADIUS = 3.6


def _marker(symbol: str) -> str:
    corners = SHAPES.get(symbol.removesuffix("-open"))
    if corners is None:
        return f"M-{RADIUS} 0a{RADIUS} {RADIUS} 0 1 0 7.2 0a{RADIUS} {RADIUS} 0 1 0 -7.2 0Z"
    return "M" + "L".join(f"{RADIUS * x:.1f} {RADIUS * y:.1f}" for x, y in corners) + "Z"


WIDTH, HEIGHT = 720.0, 440.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 20.0, 30.0, 50.0
#: Height of a curve's lane above the picture, where what diverged is counted, and of all of them:
#: more are closer together.
LANE, LANES = 14.0, 56.0
#: Width of a triangle with its count; where triangles are closer, only they are drawn.
COUNT = 44.0


def svg(series: Sequence[SeriesRead], *, title: str, value: str) -> str:
    """Return a picture of curves.

    Args:
        series: What to draw; what diverged is counted above.
        title: Above it.
        value: What the upright axis measures.
    """
    rates = [point.lr for one in series for point in one.points]
    values = [one for each in series for point in each.points for one in _spread(point)]
    lanes = [one for one in series if any(point.diverged for point in one.points)]
    lane = min(LANE, LANES / max(len(lanes), 1))
    across = _Axis(rates or [1.0], LEFT, WIDTH - RIGHT)
    up = _Axis(values or [1.0], HEIGHT - BOTTOM, TOP + lane * len(lanes))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="white"/>',
        f'<text x="{LEFT:g}" y="18" font-size="14">{escape(title[:90])}</text>',
        *_grid(across, up, value),
    ]
    for number, (one, look) in enumerate(zip(series, looks(series), strict=True)):
        parts += [*_line(one, look, across, up), *_legend(one.label, look, number)]
        if one in lanes:
            y = TOP + lane * (lanes.index(one) + 0.5)
            parts += _rail(one, look, across, y, counted=lane == LANE)
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


def _line(one: SeriesRead, look: Drawn, across: _Axis, up: _Axis) -> list[str]:
    """Return band, line and markers; the line breaks where a seed's loss is not finite."""
    path, broken, marks = "", True, []
    for point in one.points:
        if (mean := point.finite_mean or 0.0) <= 0:
            broken = True
            continue
        x, y = across.place(point.lr), up.place(mean)
        marks.append(_mark(look, x, y, opened=look.open or point.mean is None))
        path += "" if point.mean is None else f"{'M' if broken else 'L'}{x:.1f} {y:.1f}"
        broken = point.mean is None
    parts = [
        f'<path d="{path}" fill="none" stroke="{look.colour}" stroke-width="{look.width}" '
        f'stroke-dasharray="{look.dash}"/>'
    ]
    if banded := [point for point in one.points if point.low and point.high and point.low > 0]:
        ring = [(across.place(p.lr), up.place(p.high or 1.0)) for p in banded]
        ring += [(across.place(p.lr), up.place(p.low or 1.0)) for p in reversed(banded)]
        area = " ".join(f"{x:.1f},{y:.1f}" for x, y in ring)
        parts.append(f'<polygon points="{area}" fill="{look.colour}" fill-opacity="0.15"/>')
    return parts + marks


def _mark(look: Drawn, x: float, y: float, *, opened: bool) -> str:
    fill = "white" if opened else look.colour
    return (
        f'<path d="{look.marker}" transform="translate({x:.1f} {y:.1f})" fill="{fill}" '
        f'stroke="{look.ink}"/>'
    )


def _rail(one: SeriesRead, look: Drawn, across: _Axis, y: float, *, counted: bool) -> list[str]:
    """Return a filled triangle where seeds diverged, as on the study's page, and how many did."""
    lost = [point for point in one.points if point.diverged]
    places = [across.place(point.lr) for point in lost]
    room = counted and all(right - left >= COUNT for left, right in pairwise(places))
    parts = []
    for point, x in zip(lost, places, strict=True):
        words = f"<title>{point.diverged} of {point.n} diverged</title>"
        up = f'<path d="{_marker("triangle-up")}" transform="translate({x:.1f} {y:.1f})"'
        parts.append(f'{up} fill="{look.colour}">{words}</path>')
        if room:
            count = f'font-size="10" fill="{look.ink}">{point.diverged}/{point.n}</text>'
            parts.append(f'<text x="{x + 6:.1f}" y="{y + 3:.1f}" {count}')
    return parts


def _legend(label: str, look: Drawn, number: int) -> list[str]:
    y = HEIGHT - BOTTOM - 12 - 16 * number
    return [
        f'<path d="M{LEFT + 8:g} {y - 4:g}h24" stroke="{look.colour}" '
        f'stroke-width="{look.width}" stroke-dasharray="{look.dash}"/>',
        _mark(look, LEFT + 20, y - 4, opened=look.open),
        f'<text x="{LEFT + 38:g}" y="{y:g}">{escape(label[:60])}</text>',
    ]
