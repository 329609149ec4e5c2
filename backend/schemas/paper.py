"""The paper's reproduction: verdicts, the numbers they rest on, and whether it is loaded."""

from typing import Literal

from pydantic import Field

from backend.schemas.analysis import SeriesRead
from backend.schemas.base import Number, Output

__all__ = [
    "BundleRead",
    "ClaimRead",
    "ClipPointRead",
    "ClipRead",
    "ExperimentRead",
    "JudgementRead",
    "MethodNumbersRead",
    "PaperRead",
    "ProfileRead",
    "RecordedCellRead",
    "RunTimeRead",
    "TheoremLine",
    "TheoremRead",
    "UciAccuracyRead",
    "UciCellsRead",
    "UciTableRead",
    "VerdictName",
]

VerdictName = Literal["reproduced", "differs", "cannot tell", "not tested"]


class JudgementRead(Output):
    """What runs say of a published statement."""

    verdict: VerdictName
    reason: str


class MethodNumbersRead(Output):
    """One method's robustness numbers, in words: "0.55 (0.33 to 0.9)", "at least 2.5"."""

    method: str
    edge: str
    headroom: str
    best_rate: str
    best_mean: str
    mean_difference: str
    paper_divergence_rate: str = Field(description="By the paper's own mid-point rule.")
    paper_headroom: str
    edge_value: float | None = Field(description="The edge, where one lies on the grid.")


class ClipPointRead(Output):
    """Clipped minus unclipped at one rate."""

    lr: float
    mean: float | None
    low: float | None
    high: float | None
    n: int
    seeds: list[float | None] = Field(description="Seed by seed; none: a loss is not finite.")


class ClipRead(Output):
    """One method's losses with clipping minus without (the paper's appendix E).

    Pairs have task, profile, method, rate and seed in common, whichever study holds them.
    """

    method: str
    metric: Literal["train_loss", "test_loss"]
    points: list[ClipPointRead]


class ProfileRead(Output):
    """One experiment in one profile, as run here."""

    verdict: VerdictName
    reason: str
    coverage: str = Field(description="Rates and seeds that were run, in words.")
    trials: int
    of: int = Field(description="Trials the paper has.")
    agreeing: int = Field(description="Means that agree with the recorded runs.")
    cells: int = Field(description="Of so many; 0 where that is not the rule.")
    methods: list[MethodNumbersRead]
    series: list[SeriesRead]
    test_series: list[SeriesRead] = Field(description="Test losses, without single seeds.")
    threshold: float | None = Field(
        description="The paper's divergence threshold, where it is not above the initial loss."
    )
    clipping: list[ClipRead]


class RecordedCellRead(Output):
    """One method at one rate: our mean beside the recorded one."""

    method: str
    lr: float
    ours: float | None
    theirs: float | None
    agrees: bool


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
    recorded: list[SeriesRead] = Field(description="The authors' recorded runs in numbers.")
    recorded_test: list[SeriesRead]
    recorded_methods: list[MethodNumbersRead]
    cells: list[RecordedCellRead]
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


class UciTableRead(Output):
    """One table beside its printed losses, authors profile.

    Agreement is a letter a rate, in the order of `uci_cells`: y agrees, n does not, - was not run.
    """

    dataset: str
    eb: str
    ib: str


class UciAccuracyRead(Output):
    """Test accuracies in percent over the tables, each method at its best rate in training."""

    source: Literal["recorded", "text", "authors"]
    eb: float
    ib: float
    difference: float
    low: float | None
    high: float | None
    tables: list[tuple[str, float, float]] = Field(description="Table, EB's, IB's.")


class PaperRead(Output):
    """The whole reproduction."""

    paper: str
    source: str = Field(description="What the numbers of the recorded runs were made from.")
    headline: list[str] = Field(description="What the evidence supports, in a few sentences.")
    rules: dict[str, str]
    counts: dict[str, int] = Field(description="Experiments by verdict, UCI apart; text profile.")
    authors_counts: dict[str, int] = Field(description="The same of the authors profile.")
    experiments: list[ExperimentRead]
    uci: ExperimentRead
    uci_cells: list[UciCellsRead]
    uci_tables: list[UciTableRead]
    uci_accuracies: list[UciAccuracyRead]
    claims: list[ClaimRead]
    run_times: list[RunTimeRead]


class BundleRead(Output):
    """The paper's reproduction, which comes with the program, and whether it is loaded."""

    state: Literal["absent", "loading", "loaded", "failed"]
    studies: int = Field(description="How many of its studies are in the history.")
    message: str = Field("", description="What went wrong.")


class TheoremLine(Output):
    """What App. C's theorem speaks of, for one method and rate, against steps."""

    task: str
    method: str
    lr: float
    seeds: int
    step: list[int]
    average: list[Number] = Field(description="Sum of rate x |g|^2 over the sum of rates.")
    gradient: list[Number] = Field(description="|g| of the last step.")
    theta: list[Number] = Field(description="Norm of all weights.")
    restarts: list[Number] = Field(description="Times put back to zero so far.")


class TheoremRead(Output):
    """What trials with restarts recorded, by method and rate."""

    study_id: int
    definition: str
    lines: list[TheoremLine]
