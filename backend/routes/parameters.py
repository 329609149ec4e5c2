"""Error answers for the OpenAPI document, and parameters that several routes share."""

from typing import Annotated, Any

from fastapi import Path
from fastapi import Query as QueryParameters
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from backend.schemas import ErrorRead, Identifier

MOST_PER_PAGE = 500

_DESCRIPTIONS = {
    400: "The body cannot be read.",
    401: "Needs a login or a token.",
    403: "Not allowed for this caller, or from this web site.",
    404: "There is no such thing.",
    409: "Not possible in the present state.",
    413: "Larger than the limit the message names.",
    429: "Too many failed logins or open streams; `Retry-After` says how long to wait.",
    422: "Not as it should be; the message says what came and what would work.",
    500: "A fault of ours; the message has the request's id.",
    503: "The database does not answer.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route: these, and those every route may give."""
    return {
        status: {"model": ErrorRead, "description": _DESCRIPTIONS[status]}
        for status in sorted({401, 403, 422, 500, 503, *statuses})
    }


StudyId = Annotated[Identifier, Path(description="A study's id.")]
SweepId = Annotated[Identifier, Path(description="A sweep's id.")]
TrialId = Annotated[Identifier, Path(description="A trial's id.")]
UserId = Annotated[Identifier, Path(description="An account's id.")]
TokenId = Annotated[Identifier, Path(description="A token's id.")]
NoteId = Annotated[Identifier, Path(description="A note's id.")]
ViewId = Annotated[Identifier, Path(description="A saved view's id.")]

#: No NUL in what is searched for: PostgreSQL refuses it.
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


class Query(BaseModel):
    """Base of query parameters: a misspelt one is refused instead of ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ShortPaging(Query):
    """Which page of a list that is seldom longer than one."""

    limit: int = Field(MOST_PER_PAGE, ge=1, le=MOST_PER_PAGE, description="Most items to return.")
    cursor: Word | None = Field(None, description="`next_cursor` of the page before.")


#: As a route's parameter.
ShortPage = Annotated[ShortPaging, QueryParameters()]


class Paging(Query):
    """Which page of a list."""

    limit: int = Field(50, ge=1, le=MOST_PER_PAGE, description="Most items to return.")
    cursor: Word | None = Field(None, description="`next_cursor` of the page before.")
