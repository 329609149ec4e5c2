"""The paper's reproduction: verdicts, the numbers they rest on, and whether it is loaded."""

from typing import Literal

from pydantic import Field

from backend.schemas.analysis import SeriesRead
from backend.schemas.base import Output

VerdictName = Literal["reproduced", "differs", "not tested"]


class JudgementRead(Output):
    """What runs say of a published statement."""

    verdict: VerdictName
    reason: str


class MethodNumbersRead(Output):
    """One method's robustness numbers, in words: "at least 2.5"."""

    method: str
    best_mean: str
    best_lr: str
    divergence_rate: str
    headroom: str
    robust_range: str


class ProfileRead(Output):
    """One experiment in one profile, as run here."""

    verdict: VerdictName
    reason: str
    coverage: str = Field(description="Rates and seeds that were run, in words.")
    trials: int
    of: int = Field(description="Trials the paper has.")
    methods: list[MethodNumbersRead]
    series: list[SeriesRead]


class ExperimentRead(Output):
    """One of the paper's experiments."""

    id: str
    title: str
    preset: str
    claim: str = Field(description="What the paper says of it.")
    present: bool = Field(description="Whether its data is on this machine.")
    how_to_get: str = Field(description="How to get the data where it is missing.")
    text: ProfileRead
    authors: ProfileRead
    recorded: list[SeriesRead] = Field(description="The authors' recorded runs, where known.")
    recorded_methods: list[MethodNumbersRead]
    note: str = Field(description="How text and published runs differ.")


class ClaimRead(Output):
    """One claim, as published and as judged by its rule."""

    id: str
    text: str
    place: str
    rule: str
    recorded: JudgementRead
    ours: JudgementRead = Field(description="Text profile.")
    authors: JudgementRead = Field(description="Authors profile, on the rates that were run.")


class RunTimeRead(Output):
    """IB's extra time over EB, in percent."""

    dataset: str
    bound: float | None = Field(description="Flop bound of our network.")
    printed_bound: float | None
    printed: float
    recorded: float | None = Field(description="Of recorded runs that hold only a time.")
    recorded_results: float | None = Field(
        description="Of the recorded runs behind the paper's results, with an older, slower solver."
    )
    here: float | None = Field(description="Measured on this project's machine.")


class UciCellsRead(Output):
    """Agreement with the printed tables at one rate."""

    lr: float
    agreeing: int
    cells: int


class PaperRead(Output):
    """The whole reproduction."""

    paper: str
    rules: dict[str, str]
    counts: dict[str, int] = Field(description="Experiments by verdict, UCI apart; text profile.")
    experiments: list[ExperimentRead]
    uci: ExperimentRead
    uci_cells: list[UciCellsRead]
    claims: list[ClaimRead]
    run_times: list[RunTimeRead]
    has_recorded: bool


class BundleRead(Output):
    """The paper's reproduction, which comes with the program, and whether it is loaded."""

    state: Literal["absent", "loading", "loaded", "failed"]
    studies: int = Field(description="How many of its studies are in the history.")
    message: str = Field("", description="What went wrong.")
