"""Studies, what people leave there, and the sweeps they hold."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, WithJsonSchema

from backend.schemas.base import FreeInput, Input, Output, SweepState
from ib_core.sweep.request import SETTINGS

__all__ = [
    "DryRunRead",
    "FirstStudyRead",
    "MissingOfferRead",
    "Name",
    "NewStudySweep",
    "NoteCreate",
    "NoteRead",
    "SearchRead",
    "SeedEdgeRead",
    "SeriesFoundRead",
    "Spark",
    "SparkPoint",
    "StudyCreate",
    "StudyRead",
    "StudyUpdate",
    "SweepCreate",
    "SweepRead",
    "SweepSubmitted",
    "ViewCreate",
    "ViewFilters",
    "ViewRead",
    "WayRead",
]


MOST_TAGS = 50
LONGEST_NOTES = 100_000

# Control characters have no place in one-line texts, and PostgreSQL refuses NUL everywhere.
ONE_LINE = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
NO_COMMA = r"^[^\x00-\x20\x7f,]([^\x00-\x1f\x7f,]*[^\x00-\x20\x7f,])?$"

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=ONE_LINE)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=NO_COMMA)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS)]
Notes = Annotated[str, StringConstraints(max_length=LONGEST_NOTES, pattern=r"^[^\x00]*$")]


NoteText = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]
ViewName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=ONE_LINE)]
FilterText = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class StudyCreate(Input):
    """A new study."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Digits: EB against IB", "tags": ["digits"], "notes": "First."}]
        }
    )

    name: Name = Field(description="What the study asks, in a line.")
    tags: Tags = Field(default_factory=list, description="Words to find it by.")
    notes: Notes = Field("", description="Markdown.")


class StudyUpdate(Input):
    """Changes to a study; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"archived": True}]})

    name: Name | None = Field(None, description="A new name.")
    tags: Tags | None = Field(None, description="All tags, replacing the old ones.")
    notes: Notes | None = Field(None, description="Markdown.")
    archived: bool | None = Field(None, description="Whether the history hides it by default.")


class SparkPoint(Output):
    """One learning rate of a sparkline."""

    lr: float
    mean: float | None = Field(description="Mean final training loss; null if not finite.")


class Spark(Output):
    """One curve, small enough for a table cell."""

    method: str
    label: str = Field("", description="Its method, and what tells it from the others.")
    points: list[SparkPoint]


class WayRead(Output):
    """How trials of a series were trained, as their records say."""

    label: str = Field(description="What tells the series from the others.")
    task: str
    way: str = Field(description="Stacked, stacked with an optimizer a member, or one by one.")
    why: str
    trials: int


class StudyRead(Output):
    """A study as the history shows it."""

    id: int
    name: str
    notes: str
    tags: list[str]
    owner: str | None = Field(description="Name of the account that created it.")
    archived: bool
    bundle: bool = Field(False, description="Whether it came with a bundle of results.")
    created_at: datetime
    updated_at: datetime
    state: SweepState | None = Field(description="Of all its sweeps together; null without one.")
    tasks: list[str] = Field(default_factory=list)
    methods: list[str] = Field(default_factory=list)
    progress: dict[str, int] = Field(
        default_factory=dict, description="Number of trials in each state."
    )
    total: int = Field(0, description="Number of trials.")
    sweep_ids: list[int] = Field(default_factory=list)
    picture: str = Field("", description="The view that its preset is made for; empty: none.")
    spark: list[Spark] = Field(
        default_factory=list, description="Filled only when asked for with `spark=true`."
    )
    ways: list[WayRead] = Field(
        default_factory=list, description="How series trained, if there was a choice; of one study."
    )


class FirstStudyRead(Output):
    """The study that an empty history begins with."""

    study_id: int | None = Field(description="Null: this history began without one.")


class NoteCreate(Input):
    """A remark on a study."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "EB breaks at 3."}]})

    text: NoteText = Field(description="Markdown.")


class NoteRead(Output):
    """A remark, with author and time."""

    id: int
    study_id: int
    author: str | None = Field(description="Null where there were no accounts.")
    text: str
    created_at: datetime


class ViewFilters(Input):
    """Filters of the history, as its address holds them."""

    q: FilterText | None = None
    tag: FilterText | None = None
    owner: FilterText | None = None
    task: FilterText | None = None
    state: FilterText | None = None
    archived: FilterText | None = None
    sort: FilterText | None = None


class ViewCreate(Input):
    """Filters to keep under a name."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Mine", "filters": {"owner": "ada"}}]}
    )

    name: ViewName = Field(description="A view of the same name is replaced.")
    filters: ViewFilters


class ViewRead(Output):
    """A view of the history."""

    id: int
    name: str
    filters: dict[str, str]


#: How far a search is: within the factor, still open, outside its range, or stuck for want of a
#: result.
Where = Literal["within", "open", "below", "above", "stuck"]


def _taken(name: str) -> Any:
    """Return what the reader of sweeps says that a setting takes."""
    setting = SETTINGS[name]
    return WithJsonSchema({**setting.schema, "description": setting.help})


def _options_taken() -> Any:
    options = {
        name.removeprefix("options."): {**setting.schema, "description": setting.help}
        for name, setting in SETTINGS.items()
        if name.startswith("options.")
    }
    schema = {"type": "object", "properties": options, "additionalProperties": False}
    return WithJsonSchema({**schema, "description": "Settings few sweeps need."})


def _described(schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = False
    schema["examples"] = [
        {
            "task": "digits_mlp",
            "methods": ["eb", "ib"],
            "learning_rates": {"from": 0.01, "to": 100, "count": 13},
            "seeds": 5,
            "epochs": 5,
            "clip": [None, 1.0],
        },
        {"task": "digits_mlp", "learning_rates": "0.01:100:9", "seeds": "1,2,7"},
        {"task": "digits_mlp", "learning_rates": {"find": "edge", "from": 0.01, "to": 1000}},
        {"preset": "paper/05_jsb_chorales", "profile": "authors"},
        {
            "where": "agents",
            "task": "my transformer",
            "methods": ["adamw"],
            "learning_rates": "1e-4:0.1:7",
            "seeds": 3,
            "settings": {"layers": 12},
        },
    ]


class SweepCreate(FreeInput):
    """A grid of trials. `preset` fills all of it; what stands beside it replaces the preset's.

    What may stand here is decided in one place, `ib_core.sweep.request`, which also reads it: this
    class carries a body as it came and documents what is taken.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_described)

    task: Annotated[JsonValue, _taken("task")] = None
    preset: Annotated[JsonValue, _taken("preset")] = None
    methods: Annotated[JsonValue, _taken("methods")] = None
    learning_rates: Annotated[JsonValue, _taken("learning_rates")] = None
    seeds: Annotated[JsonValue, _taken("seeds")] = None
    epochs: Annotated[JsonValue, _taken("epochs")] = None
    batch_size: Annotated[JsonValue, _taken("batch_size")] = None
    clip: Annotated[JsonValue, _taken("clip")] = None
    mu: Annotated[JsonValue, _taken("mu")] = None
    batch_rule: Annotated[JsonValue, _taken("batch_rule")] = None
    schedule: Annotated[JsonValue, _taken("schedule")] = None
    warmup: Annotated[JsonValue, _taken("warmup")] = None
    profile: Annotated[JsonValue, _taken("profile")] = None
    activation: Annotated[JsonValue, _taken("activation")] = None
    device: Annotated[JsonValue, _taken("device")] = None
    where: Annotated[JsonValue, _taken("where")] = None
    settings: Annotated[JsonValue, _taken("settings")] = None
    vary: Annotated[JsonValue, _taken("vary")] = None
    note: Annotated[JsonValue, _taken("note")] = None
    options: Annotated[JsonValue, _options_taken()] = None

    def given(self) -> dict[str, Any]:
        """Return what was said, unread."""
        return {name: value for name, value in self if name in self.model_fields_set}


class NewStudySweep(Input):
    """A sweep, and the study to put it into."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "study": {"name": "How far on digits?"},
                    "sweep": {"task": "digits_mlp", "learning_rates": "0.01:100:9", "seeds": 3},
                }
            ]
        }
    )

    study: StudyCreate
    sweep: SweepCreate
    reuse: bool = Field(
        False, description="Use the newest study of that name that you may change, if there is one."
    )


class MissingOfferRead(Output):
    """What a sweep waits for: a version that no living worker has."""

    kind: Literal["task", "method"]
    name: str
    version: str
    last_worker: str = Field(description="That had it last.")
    last_host: str
    last_seen_at: datetime
    sentence: str


class SeedEdgeRead(Output):
    """Between which rates one seed breaks, as far as a search has come."""

    seed: int
    low: float | None = Field(None, description="Highest sound rate below `high`.")
    high: float | None = Field(None, description="Lowest broken rate.")
    edge: float | None = Field(None, description="Their middle in log rate.")
    where: Where
    monotone: bool = Field(description="Whether no rate above `high` was sound.")
    sound: list[float] = Field(description="Rates at which it was sound.")
    broken: list[float] = Field(description="Rates at which it broke.")
    last: list[float] = Field(description="Rates of the last round, with a result or not yet.")


class SeriesFoundRead(Output):
    """What a search has found of one series."""

    method: str
    clip: float | None = None
    label: str
    value: float | None = Field(
        None, description="Median of the seeds' edges, or the best rate; null outside the range."
    )
    low: float | None = Field(None, description="Lower end of its interval; null: open.")
    high: float | None = None
    coverage: float | None = Field(
        None, description="How sure the interval holds the median; null of a best rate."
    )
    loss: float | None = Field(None, description="Mean loss at the best rate.")
    where: Where
    monotone: bool
    text: str = Field(description="The number with its interval, in words.")
    seeds: list[SeedEdgeRead]


class SearchRead(Output):
    """A sweep that searches: what for, how far it is, and what it has found."""

    find: Literal["edge", "best"]
    low: float = Field(description="Lowest rate it may try.")
    high: float = Field(description="Highest rate it may try.")
    within: float = Field(description="Factor within which each bracket's ends shall lie.")
    most: int = Field(description="Trials it may take, all rounds together.")
    trials: int = Field(description="Trials it has asked for so far.")
    grid_trials: int = Field(description="Trials that a grid as fine would take.")
    rounds: list[int] = Field(description="Trials of each round so far.")
    done: bool = Field(description="Whether no further round will come.")
    series: list[SeriesFoundRead]


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
    waiting_for: list[MissingOfferRead] = Field(
        default_factory=list, description="Tasks and methods that no living worker has."
    )
    replays: int = Field(0, description="Known trials still to be trained again to be recorded.")
    note: str = ""
    created_at: datetime
    finished_at: datetime | None = None
    cancelled: bool = Field(False, description="Whether somebody asked it to stop.")
    engine_version: str | None = Field(None, description="That trained it; null: imported.")
    search: SearchRead | None = Field(None, description="Of a sweep that searches; null: a grid.")


class SweepSubmitted(SweepRead):
    """The sweep a request created; a preset may create several, of which this is the first."""

    sweep_ids: list[int] = Field(description="Every sweep this request created.")


class DryRunRead(Output):
    """What submitting would mean."""

    trials: int = Field(description="Number of trials of the grid, or of all rounds of a search.")
    at_most: bool = Field(False, description="Whether a search may do with fewer.")
    reused: int = Field(description="Of these, already known; of a search, in its first round.")
    replays: int = Field(0, description="Of these, trained again alone to be recorded.")
    shards: int = Field(description="Workers' pieces, replays included; of a search's first round.")
    cost_seconds: float = Field(description="Forecast of one worker's time, at most if `at_most`.")
    memory_bytes: int = Field(0, description="Forecast of the largest shard.")
    sweeps: int = Field(1, description="Number of sweeps (a preset may hold several).")
    learning_rates: list[float] = Field(default_factory=list)
    seeds: list[int] = Field(default_factory=list)
    messages: list[str] = Field(default_factory=list)
