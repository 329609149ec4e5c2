"""Sweeps: what a person submits, and what they hear back."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from backend.schemas.base import Input, Output, SweepState

Rate = Annotated[float, Field(ge=1e-12, le=1e12)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
ClipNorm = Annotated[float, Field(ge=1e-12, le=1e12)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class RateGrid(Input):
    """Log-spaced learning rates, both ends included."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"from": 0.01, "to": 100, "count": 13}]}
    )

    from_: Rate = Field(alias="from", description="Lowest rate.")
    to: Rate = Field(description="Highest rate.")
    count: int = Field(ge=1, le=1000, description="Number of rates.")


class DecayCreate(Input):
    """Decaying rates lr / (1 + t/tau)^power."""

    tau: float = Field(ge=1e-6, le=1e12)
    power: float = Field(1.0, gt=0.5, le=1.0)


class SweepOptions(Input):
    """Settings few sweeps need; null means the task's or method's own."""

    isgd_form: Literal["text", "authors"] | None = Field(
        None, description="Exact ISGD's pull towards the old weights."
    )
    inner_steps: int | None = Field(None, ge=1, le=10_000, description="Of exact ISGD.")
    width: int | None = Field(None, ge=1, le=4096, description="Hidden units per layer.")
    depth: int | None = Field(None, ge=1, le=64, description="Hidden layers.")
    restart: bool = Field(False, description="Restart from zero (App. C); needs mu > 0.")
    decay: DecayCreate | None = None
    momentum: float | None = Field(None, ge=0, le=0.9999, description="Of method momentum.")


class SweepCreate(Input):
    """A grid of trials. `preset` fills all of it; what stands beside it replaces the preset's."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "task": "digits_mlp",
                    "methods": ["eb", "ib"],
                    "learning_rates": {"from": 0.01, "to": 100, "count": 13},
                    "seeds": 5,
                    "epochs": 5,
                    "clip": [None, 1.0],
                },
                {"preset": "paper/05_jsb_chorales", "profile": "authors"},
            ]
        }
    )

    task: Word | None = Field(None, description="A name from the catalogue; needed without preset.")
    preset: Word | None = Field(None, description="A preset from the catalogue.")
    methods: list[Word] | None = Field(
        None, min_length=1, max_length=20, description="Names from the catalogue; null: eb and ib."
    )
    learning_rates: (
        RateGrid | Annotated[list[Rate], Field(min_length=1, max_length=1000)] | None
    ) = Field(None, description="A grid or a list; null: the task's own.")
    seeds: (
        Annotated[int, Field(ge=1, le=1000)]
        | Annotated[list[Seed], Field(min_length=1, max_length=1000)]
        | None
    ) = Field(None, description="5 means 1 to 5; or a list; null: the task's own.")
    epochs: int | None = Field(None, ge=1, le=10_000)
    batch_size: int | None = Field(None, ge=1, le=1_000_000)
    clip: ClipNorm | Annotated[list[ClipNorm | None], Field(min_length=1, max_length=20)] | None = (
        Field(None, description="Largest gradient norm; null: none; a list: each of them.")
    )
    mu: float = Field(0.0, ge=0, le=1e6, description="Ridge strength.")
    batch_rule: Literal["own", "share"] | None = Field(
        None, description="How a batch's implicit steps merge; null: the profile's."
    )
    profile: Literal["text", "authors"] = "text"
    activation: Word | None = Field(None, description="Null: the task's own.")
    device: Word = Field("auto", description="auto, cpu or cuda.")
    note: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    options: SweepOptions = Field(default_factory=SweepOptions)


class SweepRead(Output):
    """A sweep and how far it is."""

    id: int
    study_id: int
    state: SweepState
    spec: dict[str, Any] = Field(description="The grid in full, every default filled in.")
    progress: dict[str, int] = Field(description="Number of trials in each state.")
    total: int
    reused: int = Field(description="Trials that another sweep had already brought.")
    eta_seconds: float | None = None
    messages: list[str] = Field(default_factory=list, description="What it is waiting for.")
    note: str = ""
    created_at: datetime
    finished_at: datetime | None = None
    cancelled: bool = Field(False, description="Whether somebody asked it to stop.")
    engine_version: str | None = Field(None, description="That trained it; null: imported.")


class SweepSubmitted(SweepRead):
    """The sweep a request created; a preset may create several, of which this is the first."""

    sweep_ids: list[int] = Field(description="Every sweep this request created.")


class DryRunRead(Output):
    """What submitting would mean."""

    trials: int = Field(description="Number of trials of the grid.")
    reused: int = Field(description="Of these, already known.")
    shards: int = Field(description="Pieces of work for the workers.")
    cost_seconds: float = Field(description="Forecast of one worker's time.")
    memory_bytes: int = Field(0, description="Forecast of the largest shard.")
    sweeps: int = Field(1, description="Number of sweeps (a preset may hold several).")
    learning_rates: list[float] = Field(default_factory=list)
    seeds: list[int] = Field(default_factory=list)
    messages: list[str] = Field(default_factory=list)
