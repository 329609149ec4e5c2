"""What people leave behind for each other: notes on studies, named views of the history."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from backend.schemas.base import Input, Output
from backend.schemas.studies import ONE_LINE

NoteText = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]
ViewName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=ONE_LINE)]
FilterText = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


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
