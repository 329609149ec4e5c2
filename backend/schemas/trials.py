"""Trials and their curves."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.schemas.base import Input, Number, Output, TrialState

__all__ = [
    "BesideRead",
    "CurvePointRead",
    "CurveRead",
    "LearningCurveRead",
    "LearningRateRead",
    "LearningRead",
    "LearningSeriesRead",
    "OutcomeName",
    "RecordingRead",
    "ReplayCreate",
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


class BesideRead(Output):
    """A trial of another method at the same rate with the same seed."""

    trial_id: int
    method: str
    state: TrialState
    recorded: bool = Field(description="Whether its way is recorded, too.")


Layered = list[list[Number]]


class RecordingRead(Output):
    """A trial's way by step: the losses of its batches, its layers' norms, its sharpness.

    Row 0 holds the initial weights and the initial loss over the whole training set. A number that
    is not finite, or not defined, is null.
    """

    trial_id: int
    state: Literal["none", "queued", "running", "done", "failed", "cancelled"] = Field(
        description="Of its replay, or done; none if nothing was recorded."
    )
    progress: Number = Field(None, description="Of the replay, from 0 to 1.")
    error: str | None = Field(None, description="Why a replay failed.")
    agreement: str | None = Field(
        None, description="Whether the replay gave the stored numbers, in words."
    )
    same: bool | None = Field(None, description="Whether it did, up to rounding.")
    layers: list[str] = Field([], description="Input to output.")
    steps: list[int] = Field([], description="One a row, rising from 0.")
    losses: list[Number] = Field([], description="Of each step's batch, before the step.")
    rates: list[Number] = Field([], description="At each step.")
    weights: Layered = Field([], description="Norms after the step, a list a layer.")
    gradients: Layered = Field([], description="Norms of the loss's gradient before the step.")
    moves: Layered = Field([], description="Norms of the step.")
    damping: Layered = Field(
        [], description="Mean of alpha/(sigma'(s) b) of an implicit layer, where defined."
    )
    sharp_steps: list[int] = Field([], description="Steps taken when sharpness was measured.")
    sharpness: list[Number] = Field([], description="The largest eigenvalue of the Hessian.")
    note: str = Field("", description="What could not be recorded, and why.")
    total: int = Field(0, description="Rows stored; fewer may be shown.")
    stored_bytes: int = 0
    story: list[str] = Field([], description="What happened, in sentences.")
    broke_at: int | None = Field(None, description="The step whose loss exploded for good.")
    first_layer: int | None = Field(
        None, description="The first layer to explode, or the one that grew most; from 0."
    )
    finished_at: datetime | None = None
    beside: list[BesideRead] = Field([], description="Of other methods, to compare with.")
    messages: list[str] = Field([], description="What a reader should know besides.")


class ReplayCreate(Input):
    """Where to train a trial again."""

    device: Literal["auto", "cpu", "cuda"] = "auto"


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
