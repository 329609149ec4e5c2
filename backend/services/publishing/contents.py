"""What is published: curves, numbers, every trial, and how they were made.

Curves as SVG: loss against learning rate, both on log axes, divergences along the top.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import SweepRow
from backend.schemas import CompareRead, Metric, NumberRead, RatePointRead, SeriesRead, StudyRead
from backend.services import analysis, studies
from ib_core.errors import IBError
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
                "series": [_curve(series) for series in answer.series],
            }
            for metric, answer in contents.answers.items()
        ],
    }


def _curve(series: SeriesRead) -> dict[str, Any]:
    return {
        "label": series.label,
        "method": series.method,
        "task": series.task,
        "points": [
            {
                "lr": point.lr,
                "mean": _short(point.finite_mean),
                "low": _short(point.low),
                "high": _short(point.high),
                "n": point.n,
                "diverged": point.diverged,
                "seeds": [[one.seed, _short(one.value), one.trial_id] for one in point.seeds],
            }
            for point in series.points
        ],
    }


def _short(value: float | None) -> float | None:
    """Return a number with the digits a picture needs; files of data have all of them."""
    return None if value is None else float(f"{value:.6g}")


def words(contents: Contents) -> list[tuple[str, list[str]]]:
    """Return what the studies say, by task: the answer, and whether best rates move."""
    answers = next(iter(contents.answers.values())).answers
    return [(one.title, [one.answer, *(move.text for move in one.moves)]) for one in answers]


def table(contents: Contents) -> dict[str, Any]:
    """Return the robustness numbers in words: a row a series, a column a number."""
    rows = next(iter(contents.answers.values())).rows
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    titles = {name: row.metrics[name] for row in rows for name in row.metrics}
    return {
        "columns": [
            {"title": titles[name].title or name, "definition": titles[name].definition}
            for name in names
        ],
        "rows": [
            {
                "label": row.label,
                "task": row.task,
                "trials": row.trials,
                "cells": [_cell(row.metrics.get(name)) for name in names],
            }
            for row in rows
        ],
    }


def _cell(number: NumberRead | None) -> str:
    """Return a number with how sure it is."""
    if number is None:
        return ""
    return f"{number.text} ({number.interval})" if number.interval else number.text


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
        parts += _polyline(one, COLOURS[number % len(COLOURS)], across, up, number)
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


def _polyline(one: SeriesRead, colour: str, across: _Axis, up: _Axis, number: int) -> list[str]:
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
