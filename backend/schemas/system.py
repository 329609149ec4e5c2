"""The service itself: health, workers, queue, the caller, imports; what comes along, can be run."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.schemas.analysis import AcrossRead, Censored, Metric
from backend.schemas.base import Output

__all__ = [
    "ActivationRead",
    "BundleRead",
    "CatalogRead",
    "CheckRead",
    "DefaultsRead",
    "HealthRead",
    "ImportPreview",
    "ImportProblem",
    "ImportRead",
    "ImportedSeries",
    "MeRead",
    "MethodRead",
    "MetricDefinitionRead",
    "OfferRead",
    "OnTableNumber",
    "OnTableRead",
    "PlaceRead",
    "PresetRead",
    "QueueRead",
    "ReadyRead",
    "Role",
    "StorageRead",
    "TablesRead",
    "TaskRead",
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


class DefaultsRead(Output):
    """What a sweep gets when it does not say."""

    epochs: int
    batch_size: int
    learning_rates: list[float]
    seeds: list[int]
    parameters: int | None = Field(
        description="Number of trained parameters; null where only the missing data would tell."
    )


class TaskRead(Output):
    """A dataset, a model and a loss."""

    name: str
    title: str
    family: str
    summary: str
    source: str = Field(description="Where in the paper, or elsewhere, it comes from.")
    dataset: str
    activation: str
    linear_output: bool
    adjustable: list[str] = Field(description="Options that may be set: width, depth.")
    fixed_batch_size: int | None
    options: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of its own options, which `vary` sets."
    )
    version: str | None = Field(None, description="Of what a worker brings along.")
    workers: list[str] = Field(default_factory=list, description="Machines that bring it along.")
    methods: list[str] = Field(description="Methods that can train it.")
    profiles: dict[str, DefaultsRead]
    present: bool = Field(description="Whether its data is on this machine.")
    how_to_get: str


class MethodRead(Output):
    """A way of moving weights."""

    name: str
    title: str
    summary: str
    implicit: bool
    options: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of its options, said as name(option=value)."
    )
    version: str | None = Field(None, description="Of what a worker brings along.")
    workers: list[str] = Field(default_factory=list, description="Machines that bring it along.")


class ActivationRead(Output):
    """An activation with an implicit update."""

    name: str
    approximation_error: float | None = Field(
        None, description="Largest error in value of its piecewise-cubic stand-in; null: exact."
    )


class PresetRead(Output):
    """One or more sweeps under a name."""

    name: str
    title: str
    summary: str
    picture: str = Field("", description="The view its study's page opens with.")
    sweeps: list[dict[str, Any]] = Field(description="Sweep bodies it stands for.")
    trials: int
    present: bool = Field(description="Whether its data is on this machine.")


class MetricDefinitionRead(Output):
    """A robustness number's meaning."""

    name: str
    title: str
    unit: str
    better: str
    definition: str
    citation: str


class OfferRead(Output):
    """A version of a task or method that somebody's worker brings along; never its code."""

    key: str
    kind: Literal["task", "method"]
    name: str = Field(description="As a sweep says it; @version behind it asks for this one.")
    title: str
    summary: str
    version: str = Field(description="The beginning of the hash of its code.")
    code: str = Field(description="Hash of its code and the packages it uses.")
    data: str | None = Field(description="Hash of its data; null for methods.")
    options: dict[str, Any] = Field(description="JSON schema of its options, with defaults.")
    defaults: dict[str, Any] = Field(description="Epochs, batch size, rates and seeds of a task.")
    packages: dict[str, str] = Field(description="Versions of the packages it uses.")
    linear_output: bool = False
    implicit: bool = Field(True, description="Whether the task's model has implicit layers.")
    workers: list[str] = Field(description="Machines whose living workers have it.")
    last_worker: str
    last_host: str
    first_seen_at: datetime
    last_seen_at: datetime


class CatalogRead(Output):
    """Everything a sweep may name."""

    engine_version: str
    tasks: list[TaskRead]
    methods: list[MethodRead]
    offers: list[OfferRead] = Field(
        default_factory=list, description="Every version that workers brought along."
    )
    activations: list[ActivationRead]
    presets: list[PresetRead]
    metrics: list[MetricDefinitionRead]
    limits: dict[str, int]


class BundleRead(Output):
    """The paper's reproduction, which comes with the program, and whether it is loaded."""

    state: Literal["absent", "loading", "loaded", "failed"]
    studies: int = Field(description="How many of its studies are in the history.")
    message: str = Field("", description="What went wrong.")


class OnTableNumber(Output):
    """A number of a scorecard, as its definition in the catalog says."""

    value: float | None
    low: float | None
    high: float | None
    censored: Censored = Field(description="above: at least `value`; below: at most.")
    n: int = Field(description="Seeds behind it.")


class OnTableRead(Output):
    """One method on one UCI table."""

    table: str
    method: str
    metrics: dict[str, OnTableNumber]


class TablesRead(Output):
    """What the comparison of all methods on every UCI table says, which comes with the program."""

    metric: Metric
    trials: int
    seeds: int
    rates: list[float] = Field(description="Those that every method was tried with.")
    rows: list[OnTableRead]
    across: AcrossRead | None = Field(description="Null below three tables.")
