"""Trials and their curves; cells, which somebody's program trains."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema

from backend.schemas.base import (
    BatchSize,
    Identifier,
    Input,
    Number,
    Output,
    Step,
    SweepState,
    TrialState,
    Whole,
)
from backend.schemas.studies import Name
from ib_core.sweep.request import SETTINGS

__all__ = [
    "BesideRead",
    "CellAnswer",
    "CellClaim",
    "CellClaimed",
    "CellPoint",
    "CellRead",
    "CellReport",
    "CellResult",
    "CurvePointRead",
    "CurveRead",
    "LearningCurveRead",
    "LearningRateRead",
    "LearningRead",
    "LearningSeriesRead",
    "OutcomeName",
    "RecordingRead",
    "ReplayCreate",
    "RunCreate",
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
    rates: list[Number] = Field(
        [], description="At each step; null for methods that do not step plainly by it."
    )
    weights: Layered = Field([], description="Norms after the step, a list a layer.")
    gradients: Layered = Field([], description="Norms of the loss's gradient before the step.")
    moves: Layered = Field([], description="Norms of the step.")
    damping: Layered = Field(
        [], description="Mean of alpha/(sigma'(s) b) of an implicit layer, where defined."
    )
    sharp_steps: list[int] = Field([], description="Steps taken when sharpness was measured.")
    sharpness: list[Number] = Field([], description="The largest eigenvalue of the Hessian.")
    outputs: list[str] = Field([], description="Layers whose outputs were looked at.")
    looked_at: list[int] = Field([], description="Steps taken then.")
    sizes: Layered = Field([], description="Root of the mean square of outputs, a list a layer.")
    changes: Layered = Field([], description="The same of their difference to those of step 0.")
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


MOST_POINTS_AT_ONCE = 1000
#: A word without anything that could break a line, a terminal or a database.
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
AgentName = Annotated[str, StringConstraints(min_length=1, max_length=150, pattern=_PRINTABLE)]
TaskName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_PRINTABLE)]
MethodName = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=_PRINTABLE)]
#: Chosen by whoever reports, so that a request that is sent again is known again.
RunKey = Annotated[str, StringConstraints(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9-]+$")]
#: A number that is not finite has no JSON: null stands for it, and for none at all.
Loss = float | None
OutcomeSaid = Literal["completed", "diverged", "failed"]


class CellClaim(Input):
    """Who would like a cell."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "node7-4711"}]})

    agent: AgentName = Field(description="Shown beside the cell while it is held.")


class CellRead(Output):
    """A cell in somebody's hands: what to train, and the lease that proves whose it is."""

    sweep_id: int
    trial_id: int
    lease: int = Field(description="To be sent with every report; another claim gets another one.")
    attempt: int
    task: str
    method: str
    lr: float
    seed: int
    clip: float | None
    epochs: int
    batch_size: int | None
    settings: dict[str, Any] = Field(description="The sweep's own settings.")
    lease_seconds: float = Field(description="Without a report for so long the cell is lost.")
    points: int = Field(0, description="Number of points already stored; the next one's number.")
    state: TrialState = TrialState.RUNNING


class CellClaimed(Output):
    """The answer to a claim."""

    cell: CellRead | None = Field(description="Null: nothing waits at the moment.")
    state: SweepState = Field(description="Of the sweep; once it has ended nothing will come.")
    unfinished: int = Field(description="Cells that wait or are in somebody's hands.")


class CellPoint(Input):
    """One line of a log."""

    step: Whole = Field(ge=0, le=2**53)
    epoch: float = Field(0.0, ge=0, le=1e12)
    train_loss: Loss = None
    test_loss: Loss = None
    train_accuracy: Loss = None
    test_accuracy: Loss = None
    validation_loss: Loss = None
    validation_accuracy: Loss = None


class CellResult(Input):
    """How a cell ended."""

    outcome: OutcomeSaid | None = Field(
        None,
        description="Null: diverged if the loss is not finite, or five times the initial one "
        "(the first one logged, if none is known) where that is positive; else completed.",
    )
    initial_loss: Loss = Field(None, description="Null: of the point at step 0, if there is one.")
    train_loss: Loss = Field(None, description="Null: not finite. A completed cell needs one.")
    test_loss: Loss = None
    train_accuracy: Loss = Field(None, description="A fraction.")
    test_accuracy: Loss = None
    validation_loss: Loss = Field(None, description="On rows that were held out.")
    validation_accuracy: Loss = None
    seconds: float | None = Field(None, ge=0, le=1e12, description="Null: since the claim.")
    diverged_at_step: Step | None = None
    error: str | None = Field(None, max_length=100_000, description="Why it failed.")


class CellReport(Input):
    """What a program has to say about its cell: it lives, it has got on, it is done.

    Sent again, a report changes nothing.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"lease": 1, "start": 0, "points": [{"step": 0, "train_loss": 2.3}]},
                {"lease": 1, "result": {"train_loss": 0.1}},
            ]
        }
    )

    lease: Whole = Field(ge=1, le=2**53)
    start: Whole = Field(0, ge=0, le=2**31, description="Number of the first point sent.")
    points: list[CellPoint] = Field(default_factory=list, max_length=MOST_POINTS_AT_ONCE)
    progress: float = Field(0.0, ge=0, le=1)
    result: CellResult | None = None
    fault: str | None = Field(
        None, max_length=100_000, description="It broke: try again, in other hands perhaps."
    )
    release: bool = Field(False, description="Give it back; this burns no attempt.")


class CellAnswer(Output):
    """Where a cell is after a report."""

    held: bool = Field(description="Whether it is still the reporter's; if not, stop.")
    yours: bool = Field(description="Whether the lease is the latest: then `state` is your doing.")
    state: TrialState
    points: int = Field(description="Number of points stored.")


class RunCreate(Input):
    """A run that is logged as it happens, without a sweep."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key": "5d0c2a52-2f0e-4c4e-9e9e-0b8a6a0d7a11",
                    "study": "How far with AdamW?",
                    "task": "my transformer",
                    "method": "adamw",
                    "lr": 0.001,
                    "seed": 1,
                }
            ]
        }
    )

    key: RunKey = Field(description="The run's own name: sent again, it finds the same run.")
    study: Identifier | Name = Field(description="Its id; or a name, of one there or to be made.")
    agent: AgentName = Field("a run", description="Where it runs.")
    task: TaskName
    method: MethodName
    lr: float = Field(ge=1e-12, le=1e12)
    seed: Whole = Field(1, ge=0, le=2**31 - 1)
    clip: float | None = Field(None, gt=0, le=1e12)
    epochs: Whole = Field(1, ge=1, le=10**9)
    batch_size: BatchSize | None = None
    settings: Annotated[dict[str, Any] | None, WithJsonSchema(SETTINGS["settings"].schema)] = None
