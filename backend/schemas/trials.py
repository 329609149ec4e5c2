"""Trials and their curves."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.schemas.base import Number, Output, TrialState

__all__ = [
    "CurvePointRead",
    "CurveRead",
    "LearningCurveRead",
    "LearningRateRead",
    "LearningRead",
    "LearningSeriesRead",
    "OutcomeName",
    "TrialEvent",
    "TrialRead",
]

OutcomeName = Literal["completed", "diverged", "failed"]


# The one list of what is answered and exported of a trial: a field has the name of its column.
class TrialRead(Output):
    """One training run; a number that is not finite is null beside its outcome."""

    id: int
    state: TrialState
    imported: bool = False
    task: str
    profile: str
    method: str
    batch_rule: str | None
    activation: str | None
    lr: float
    seed: int
    clip: float | None
    mu: float
    epochs: int
    batch_size: int | None
    options: dict[str, Any]
    settings: dict[str, Any] = Field(
        {},
        description="What varies between the series of the study it was asked for with; empty "
        "where it was asked for by itself.",
    )
    outcome: OutcomeName | None = Field(description="Null until it has ended.")
    initial_loss: Number
    train_loss: Number
    test_loss: Number
    train_accuracy: Number
    test_accuracy: Number
    validation_loss: Number = Field(None, description="On held-out training rows, if there are.")
    validation_accuracy: Number = None
    diverged_at_step: int | None
    diverged_where: str | None = Field(None, description="loss, weight or gradient.")
    diverged_layer: str | None = None
    seconds: Number = Field(None, description="Its share of the time its stack took.")
    restarts: int | None = Field(None, description="Times it was put back to zero (App. C).")
    fingerprint: str
    record: dict[str, Any] | None = Field(
        None, description="Versions, git, device, hashes of data, weights and batch order."
    )
    error: str | None = Field(None, description="Why a failed trial failed.")
    attempts: int = 0
    created_at: datetime | None = None
    finished_at: datetime | None = None


class TrialEvent(Output):
    """A trial that has just ended, as the event stream tells it."""

    id: int
    state: TrialState
    outcome: OutcomeName
    task: str
    method: str
    lr: float
    seed: int
    clip: float | None
    train_loss: Number
    test_loss: Number
    seconds: Number


class CurvePointRead(Output):
    """Whole-set losses after `step` steps."""

    step: int
    epoch: float
    train_loss: Number
    test_loss: Number
    train_accuracy: Number = None
    test_accuracy: Number = None
    validation_loss: Number = None
    validation_accuracy: Number = None


class CurveRead(Output):
    """A trial's losses by step, those after `after` only."""

    trial_id: int
    state: TrialState
    points: list[CurvePointRead]
    last_step: int | None = Field(None, description="Pass it as `after` to get what follows.")
    total: int = Field(0, description="Number of points before thinning.")


class LearningCurveRead(Output):
    """One trial's values, at its rate's epochs."""

    trial_id: int
    seed: int
    values: list[Number] = Field(description="Null where it is lost, or was not measured.")


class LearningRateRead(Output):
    """Training at one learning rate."""

    lr: float
    n: int = Field(description="Completed and diverged trials with a curve.")
    steps: list[int]
    epochs: list[float] = Field(description="As many, as are all that follow.")
    mean: list[Number] = Field(description="Over all seeds; null if one is not finite.")
    broken: list[int] = Field(description="Seeds that are lost, or above their first value.")
    seeds: list[LearningCurveRead] = Field([], description="Empty where `whole` is false.")


class LearningSeriesRead(Output):
    """Training of one series; its `id` is that of the sensitivity answer."""

    id: str
    rates: list[LearningRateRead]


class LearningRead(Output):
    """A study's losses over training, by series and rate."""

    study_id: int
    metric: str
    smooth: int
    definition: str = ""
    whole: bool = Field(description="Whether single trials are in it; too many are left out.")
    series: list[LearningSeriesRead]
