"""What is published: curves, numbers, every trial, and how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import SweepRow
from backend.schemas import CompareRead, Metric, NumberRead, SeriesRead, StudyRead
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
