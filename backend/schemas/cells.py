"""Cells: trials that somebody's program trains, claimed and reported on over the wire."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from backend.schemas.base import Identifier, Input, Output, SweepState, TrialState, Whole
from backend.schemas.studies import Name

__all__ = [
    "CellAnswer",
    "CellClaim",
    "CellClaimed",
    "CellPoint",
    "CellRead",
    "CellReport",
    "CellResult",
    "RunCreate",
]

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
        description="Null: diverged if the loss is not finite or five times the first one, "
        "else completed.",
    )
    initial_loss: Loss = Field(None, description="Null: of the point at step 0, if there is one.")
    train_loss: Loss = Field(None, description="Null: not finite. A completed cell needs one.")
    test_loss: Loss = None
    train_accuracy: Loss = Field(None, description="A fraction.")
    test_accuracy: Loss = None
    validation_loss: Loss = Field(None, description="On rows that were held out.")
    validation_accuracy: Loss = None
    seconds: float | None = Field(None, ge=0, le=1e12, description="Null: since the claim.")
    diverged_at_step: Whole | None = Field(None, ge=0, le=2**53)
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
    batch_size: Whole | None = Field(None, ge=1, le=10**9)
    settings: dict[str, Any] = Field(default_factory=dict)
