"""The paper: its reproduction's verdicts and the numbers they rest on; its figures as toys."""

from typing import Literal

from pydantic import Field

from backend.schemas.analysis import SeriesRead
from backend.schemas.base import Number, Output

__all__ = [
    "ClaimRead",
    "ClipPointRead",
    "ClipRead",
    "ExperimentRead",
    "JudgementRead",
    "Loss",
    "MethodNumbersRead",
    "NodeStep",
    "PaperRead",
    "PathRead",
    "ProfileRead",
    "QuadraticRead",
    "RaceLane",
    "RaceRate",
    "RaceRead",
    "RateSweep",
    "RecordedCellRead",
    "RuleCase",
    "RunTimeRead",
    "Samples",
    "StepSweep",
    "TheoremLine",
    "TheoremRead",
    "UciAccuracyRead",
    "UciCellsRead",
    "UciTableRead",
    "UpdateRead",
    "VerdictName",
]

VerdictName = Literal["reproduced", "differs", "cannot tell", "not tested"]


class JudgementRead(Output):
    """What runs say of a published statement."""

    verdict: VerdictName
    reason: str
    beside: str = Field("", description="What must be read beside the verdict.")


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
    word: str = Field(
        description="What the verdict is called where it is shown: of the authors profile it says "
        "whether our losses match the recorded ones."
    )
    reason: str
    coverage: str = Field(description="Rates and seeds that were run, in words.")
    trials: int
    of: int = Field(description="Trials the paper has.")
    of_here: int = Field(description="Of these, how many have their data here.")
    agreeing: int = Field(description="Means that agree with the recorded runs.")
    cells: int = Field(description="Of so many; 0 where that is not the rule.")
    same: int = Field(description="Of those that agree, how many do to .1%.")
    in_range: int = Field(
        description="Of those that agree, how many do only in lying between the recorded seeds."
    )
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
    how: Literal["same", "near", "range", ""] = Field(
        description="In what they agree: to .1%, within 10%, or only in that ours lies between "
        "the recorded seeds."
    )


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
    of_all: bool = Field(
        description="Over all tables of this source, instead of those that all sources share."
    )
    label: str = Field(description="Whose, in words.")
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


class TheoremLine(Output):
    """What App. C's theorem speaks of, for one method and rate, against steps."""

    task: str
    method: str
    label: str = Field(description="Its method, and the settings in which the lines differ.")
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


# --- Numbers behind the toy pictures, after Figs. 1 and 2


Loss = Literal["quadratic", "absolute", "logistic", "arctan_well"]


class Samples(Output):
    """A function drawn as a line."""

    x: list[float]
    y: list[Number]


class PathRead(Output):
    """Iterates of one method; null after they left the finite numbers."""

    method: Literal["esgd", "isgd"]
    theta: list[Number]
    loss: list[Number]
    factor: Number = Field(
        None, description="theta_{t+1}/theta_t on the quadratic; null for other losses."
    )
    verdict: Literal["converges", "oscillates", "diverges", "cycles"]


class QuadraticRead(Output):
    """Explicit and implicit descent on a one-dimensional loss."""

    loss: Loss
    curvature: float
    start: float
    lr: float
    steps: int
    stability_limit: Number = Field(description="2/curvature; null where no rate is too large.")
    minimum: float
    function: Samples
    paths: list[PathRead]


class NodeStep(Output):
    """One node's step from s."""

    method: Literal["eb", "ib"]
    b: float
    s: float
    alpha: Number
    landing: Number = Field(description="theta'^T z, where the step lands.")
    value: Number = Field(description="The activation there.")
    loss: Number = Field(description="The linearised loss b * activation there.")
    origin: Number = Field(None, description="The activation at s, before the step.")
    change: Number = Field(None, description="Loss there minus loss at s.")
    case: str = Field("", description="Which line of the rule applies, in words.")


class StepSweep(Output):
    """Step length and outcome against s, for one method and sign of b."""

    method: Literal["eb", "ib"]
    b: float
    step: list[Number] = Field(description="s - landing.")
    landing: list[Number]
    loss: list[Number]


class RateSweep(Output):
    """How long the step from s is at every rate, for one method and sign of b."""

    method: Literal["eb", "ib"]
    b: float
    length: list[Number] = Field(description="|s - landing|.")


class RuleCase(Output):
    """One line of an activation's rule, as the paper's table has it."""

    b: float
    condition: str = Field(description="For which s it holds.")
    words: str = Field(description="What the implicit step does.")
    applies: bool


class UpdateRead(Output):
    """One node's explicit and implicit update."""

    activation: str
    lr: float
    z_sq: float
    mu: float
    function: Samples
    steps: list[NodeStep] = Field(description="From the asked s with b, and from -s with -b.")
    s: list[float] = Field(description="Where the sweeps below are sampled.")
    sweeps: list[StepSweep]
    rates: list[float] = Field(description="Where the sweeps below are sampled, evenly in log.")
    by_rate: list[RateSweep] = Field(description="From the asked s with b, and from -s with -b.")
    jump: Number = Field(None, description="s at which the implicit step jumps for b < 0 (relu).")
    approximation_error: float | None = Field(
        None, description="Largest error in value of the piecewise-cubic stand-in; null: exact."
    )
    slope_error: float | None = Field(None, description="The same of its slope.")
    stand_in: list[tuple[float, float, float, float]] | None = Field(
        None, description="Its knots: place, value, slope on the left and on the right."
    )
    cases: list[RuleCase] = Field(
        default_factory=list, description="The rule's table for both signs of b (relu)."
    )


class RaceLane(Output):
    """One method at one learning rate."""

    method: str
    losses: list[list[Number]] = Field(
        description="Training loss after each epoch, a list a seed; null: not finite."
    )
    median: list[Number] = Field(description="Of the seeds, epoch by epoch.")
    broken: int = Field(description="How many seeds diverged.")


class RaceRate(Output):
    """Every method at one learning rate, and what is to be seen there."""

    lr: float
    words: str = Field(description="How each method fares at this rate.")
    ahead: str = Field(description="What breaks next as the rate is turned up.")
    lanes: list[RaceLane]


class RaceRead(Output):
    """The start page's race: stored trials of three methods by learning rate."""

    task: str
    epochs: list[float]
    initial: float = Field(description="Median loss before training.")
    seeds: int
    trials: int
    engine: str = Field(description="Version of the engine that trained them.")
    rates: list[RaceRate]
