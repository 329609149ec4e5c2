"""What the start page asks: the first study, and the bundle that comes with the program."""

from typing import Literal

from pydantic import Field

from backend.schemas.base import Output


class FirstStudyRead(Output):
    """The study that an empty history begins with."""

    study_id: int | None = Field(description="Null: this history began without one.")


class BundleRead(Output):
    """The paper's reproduction, which comes with the program, and whether it is loaded."""

    state: Literal["absent", "loading", "loaded", "failed"]
    studies: int = Field(description="How many of its studies are in the history.")
    message: str = Field("", description="What went wrong.")
