"""Studies and what people leave there: remarks, and named views of the history."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from backend.schemas.base import Input, Output, SweepState

__all__ = [
    "FirstStudyRead",
    "Name",
    "NoteCreate",
    "NoteRead",
    "Spark",
    "SparkPoint",
    "StudyCreate",
    "StudyRead",
    "StudyUpdate",
    "ViewCreate",
    "ViewFilters",
    "ViewRead",
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
    picture: str = Field(
        "", description="The view its preset is made for, known by the preset's tags; empty: none."
    )
    spark: list[Spark] = Field(
        default_factory=list, description="Filled only when asked for with `spark=true`."
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
