"""What all wire types share: how strict inputs are, how lists are paged, what an error is."""

import math
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")


class TrialState(StrEnum):
    """Where a trial is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    DIVERGED = "diverged"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SweepState(StrEnum):
    """Derived from a sweep's trials, never stored."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Input(BaseModel):
    """Base of request bodies: unknown names, NaN, infinity and look-alike types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Output(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(ser_json_inf_nan="null", from_attributes=True)


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: A number in an answer: one that is not finite becomes null, beside an outcome that says why.
Number = Annotated[float | None, BeforeValidator(_finite_or_none)]

#: Identifiers fit a signed 64-bit column, so that no lookup can overflow the database.
Identifier = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Page(Output, Generic[T]):
    """One page of a list; pass `next_cursor` as `cursor` to get the next one."""

    items: list[T]
    next_cursor: str | None = None


class ErrorDetail(Output):
    """What came, and what would work."""

    code: str = Field(description="Stable machine-readable name.")
    message: str = Field(description="One sentence for a person.")
    field: str | None = Field(None, description="The input it is about, as a dotted path.")
    hint: str | None = Field(None, description="What to do next.")


class ErrorRead(Output):
    """The one shape of every error."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "unknown_name",
                        "message": "There is no task called 'mnits'. Known: digits_mlp, ...",
                        "field": "task",
                        "hint": None,
                    }
                }
            ]
        }
    )

    error: ErrorDetail
