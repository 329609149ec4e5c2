"""The service itself: health, workers, queue, the caller, imports."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from backend.schemas.base import Output

__all__ = [
    "CheckRead",
    "HealthRead",
    "ImportPreview",
    "ImportProblem",
    "ImportRead",
    "ImportedSeries",
    "MeRead",
    "PlaceRead",
    "QueueRead",
    "ReadyRead",
    "Role",
    "StorageRead",
    "WorkerRead",
]

Role = Literal["viewer", "member", "admin"]


class HealthRead(Output):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class CheckRead(Output):
    """One part the service needs."""

    ready: bool
    reason: str | None = Field(None, description="Why it is not ready.")


class ReadyRead(Output):
    """Whether sweeps would be run, and if not, why."""

    ready: bool
    checks: dict[str, CheckRead]


class WorkerRead(Output):
    """A worker that has been heard of."""

    name: str
    host: str = ""
    device: str
    device_name: str = ""
    queues: list[str] = Field(default_factory=list)
    alive: bool
    state: Literal["idle", "busy", "stopping", "silent"] = "idle"
    current_shard: int | None = None
    trials: int | None = Field(None, description="Trials in the current shard.")
    started_at: datetime | None = None
    last_heartbeat: datetime
    trials_done: int = 0
    trials_per_minute: float | None = None
    version: str = ""


class QueueRead(Output):
    """How much work waits."""

    depth: int = Field(description="Shards that wait for a worker.")
    running: int = Field(description="Shards being trained.")
    trials_queued: int = 0
    trials_running: int = 0
    by_queue: dict[str, int] = Field(default_factory=dict)
    oldest_seconds: float | None = None
    broker: CheckRead | None = None


class PlaceRead(Output):
    """One kind of file."""

    name: str
    used_bytes: int


class StorageRead(Output):
    """How much room everything takes."""

    places: list[PlaceRead]
    trials: int
    curve_bytes: int = Field(description="Of the database: the losses by step, compressed.")
    free_bytes: int = Field(description="Left where results are written.")


class MeRead(Output):
    """Who is asking."""

    username: str
    role: Role
    auth: bool = Field(description="Whether accounts are on; without them there is one owner.")
    scope: Literal["read", "write", "admin"] = Field(
        "admin", description="Of the token that was sent; a login may do all its role allows."
    )


class ImportProblem(Output):
    """A row that was left out."""

    line: int
    field: str | None = None
    message: str


class ImportRead(Output):
    """What an import brought."""

    study_id: int
    sweep_ids: list[int]
    imported: int = Field(description="New trials.")
    reused: int = Field(description="Rows whose trial was already known.")
    skipped: int = Field(0, description="Rows left out, such as those without any loss.")
    problems: list[ImportProblem] = Field(
        default_factory=list, description="The first hundred rows left out, with the reason."
    )


class ImportedSeries(Output):
    """The runs of one method on one task in a file."""

    task: str
    method: str
    learning_rates: list[float]
    seeds: list[int]
    completed: int
    diverged: int
    failed: int
    repeated: int = Field(description="Runs whose rate and seed another one has, too.")


class ImportPreview(Output):
    """What an import would bring; nothing is stored."""

    trials: int
    new: int = Field(description="Of these, not known yet.")
    series: list[ImportedSeries]
    skipped: int = Field(0, description="Rows that would be left out.")
    problems: list[ImportProblem] = Field(
        default_factory=list, description="The first hundred of them, with the reason."
    )
