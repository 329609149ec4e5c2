"""A study of 2,000 trials to publish; some of them diverge with a loss that is finite."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from backend.schemas import CompareRead, RatePointRead, SeedRead, SeriesRead, StudyRead
from backend.services.publishing import Contents

METHODS = ("eb", "ib", "adam", "momentum")
RATES = [0.01 * 1.6**power for power in range(20)]
SEEDS = range(1, 26)
#: At the last rate before all is lost, so many seeds diverge with a finite loss.
LOST = 5


def point(lr: float, number: int) -> RatePointRead:
    """Return all seeds of a curve at a rate; the higher the number, the later they diverge."""
    edge = 1.0 + 10 * number
    broken, near = lr > edge, lr <= edge < 1.6 * lr
    loss = None if broken else (0.1 / lr + lr) * 1.7**number
    lost = len(SEEDS) if broken else LOST if near else 0
    seeds = [
        SeedRead(
            seed=seed,
            value=None if loss is None else loss * (1 + 0.01 * seed),
            outcome="diverged" if seed <= lost else "completed",
            trial_id=seed,
        )
        for seed in SEEDS
    ]
    return RatePointRead(
        lr=lr,
        mean=loss,
        finite_mean=loss,
        low=None if loss is None else loss * 0.9,
        high=None if loss is None else loss * 1.1,
        n=len(SEEDS),
        n_finite=0 if broken else len(SEEDS),
        diverged=lost,
        diverged_low=0.0,
        diverged_high=1.0,
        seeds=seeds,
    )


def curve(method: str, number: int = 0, **changes: Any) -> SeriesRead:
    """Return one curve."""
    key: dict[str, Any] = {"profile": "", "batch_rule": None, "activation": None, "clip": None}
    key |= {"mu": 0.0, "epochs": 1, "batch_size": None, "options": {}, "imported": False}
    key |= {"task": "digits", "id": method, "study_id": 1, "label": method}
    points = [point(lr, number) for lr in RATES]
    return SeriesRead(**(key | {"method": method, "points": points} | changes))


def contents(series: Sequence[SeriesRead] | None = None) -> Contents:
    """Return what is published of a study of these curves."""
    drawn = list(series or (curve(method, number) for number, method in enumerate(METHODS)))
    answer = CompareRead(
        studies=[], metric="train_loss", reducer="final", band="std", series=drawn, rows=[]
    )
    now = datetime.now(UTC)
    study = StudyRead(
        id=1,
        name="How far?",
        notes="",
        tags=[],
        owner=None,
        archived=False,
        created_at=now,
        updated_at=now,
        state=None,
        total=2000,
    )
    return Contents((study,), {"train_loss": answer}, (), "1.0", now)
