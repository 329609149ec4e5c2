"""What all wire types share: how strict inputs are, how lists are paged, what an error is."""

import math
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ib_core.sweep.request import refuse_endless

__all__ = [
    "ErrorDetail",
    "ErrorRead",
    "FreeInput",
    "Identifier",
    "Input",
    "Number",
    "Output",
    "Page",
    "SweepState",
    "TrialState",
]

T = TypeVar("T")
#: The largest whole number up to which every JSON reader holds all of them.
MOST_EXACT = 2**53
#: More than any request body has.
MOST_FIELDS = 100


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

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        # Every unknown name is a finding: a body full of them would hold up everybody for seconds.
        # With more than any input has, one of those that are looked at is unknown in any case.
        if isinstance(given, dict) and len(given) > MOST_FIELDS:
            return dict(islice(given.items(), MOST_FIELDS))
        return given


class FreeInput(Input):
    """Base of sweeps, whose settings may be any JSON until their reader has read them."""

    @model_validator(mode="before")
    @classmethod
    def _not_endless(cls, given: Any) -> Any:
        # Everybody waits while types are looked at: of a million values for a quarter of a second.
        refuse_endless(given)
        return given


class Output(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(ser_json_inf_nan="null", from_attributes=True)


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: A number in an answer: one that is not finite becomes null, beside an outcome that says why.
Number = Annotated[float | None, BeforeValidator(_finite_or_none)]


def _as_whole(value: Any) -> Any:
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= MOST_EXACT
    return int(value) if exact else value


#: A whole number as JSON has it: 2.0 is one, too; many programs count steps in floats.
Whole = Annotated[int, BeforeValidator(_as_whole)]
#: With limits of their own, which may then be None: of limits around a validator no schema tells.
Step = Annotated[int, Field(ge=0, le=2**53), BeforeValidator(_as_whole)]
BatchSize = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(_as_whole)]
#: Numbers that every JSON reader holds exactly and every database column fits.
Identifier = Annotated[int, Field(ge=1, le=MOST_EXACT), BeforeValidator(_as_whole)]


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
