"""Sensitivity curves, scorecards and comparisons: rows turned into findings."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from backend.schemas.base import Input, Output

__all__ = [
    "AcrossRead",
    "Band",
    "BestOfRead",
    "ChosenOn",
    "CompareRead",
    "CompareStudy",
    "DifferenceKind",
    "DifferencesRead",
    "LossMetric",
    "Metric",
    "MiddleHalfRead",
    "MovementRead",
    "NumberRead",
    "PairRead",
    "PairedPointRead",
    "PairedRead",
    "ProfileLineRead",
    "RanksRead",
    "RateCellRead",
    "RatePointRead",
    "Reducer",
    "ScorecardRead",
    "ScorecardRow",
    "SeedRead",
    "SensitivityRead",
    "SeriesKey",
    "SeriesRead",
    "StripRead",
    "TaskAnswerRead",
    "TaskChanceRead",
    "TimingCreate",
    "TimingRead",
    "TimingsRead",
]

#: Robustness is about losses; how long a run took is no loss.
LossMetric = Literal[
    "train_loss",
    "test_loss",
    "validation_loss",
    "train_accuracy",
    "test_accuracy",
    "validation_accuracy",
]
Metric = Literal[LossMetric, "seconds"]
ChosenOn = Literal["validation", "test"]
Reducer = Literal["final", "best"]
Band = Literal["std", "se", "quantile"]
#: method: each method minus EB; clip: each method clipped minus the same unclipped; engine: each
#: curve minus the same one trained by an earlier version of the engine.
DifferenceKind = Literal["method", "clip", "engine"]
LeftOut = Annotated[int, Field(description="Series beyond the first 1,000; exports have all.")]
Censored = Literal["none", "above", "below"]
Better = Literal["higher", "lower", "neither"]


class SeedRead(Output):
    """One seed's dot."""

    seed: int
    value: float | None = Field(description="Null where it is not finite; see outcome.")
    outcome: Literal["completed", "diverged"]
    trial_id: int


class RatePointRead(Output):
    """All seeds at one learning rate."""

    lr: float
    mean: float | None = Field(description="Over all seeds; null if one is not finite.")
    finite_mean: float | None = Field(description="Over the finite seeds, `n_finite` of them.")
    low: float | None = Field(description="Lower edge of the band of the finite seeds.")
    high: float | None = Field(description="Upper edge of the band.")
    n: int = Field(description="Completed and diverged seeds.")
    n_finite: int
    diverged: int = Field(description="Number of diverged seeds.")
    diverged_low: float = Field(description="Wilson interval of the divergence probability.")
    diverged_high: float
    q1: float | None = Field(None, description="First quartile; a lost seed is above all others.")
    median: float | None = None
    q3: float | None = None
    seeds: list[SeedRead]


class SeriesKey(Output):
    """Everything but rate and seed that decides a result: trials differing in it never mix."""

    method: str
    task: str
    profile: str
    batch_rule: str | None
    activation: str | None
    clip: float | None
    mu: float
    epochs: int
    batch_size: int | None
    options: dict[str, Any]
    imported: bool
    engine_version: str | None = None
    settings: dict[str, Any] = Field(
        {},
        description="What varies between the answer's series besides the method, by name; null: "
        "off, or of no use to this method.",
    )


class SeriesRead(SeriesKey):
    """One curve."""

    id: str = Field(description="Stable name of the series within its study.")
    study_id: int
    label: str = Field(description="What tells it from the other series of the answer.")
    threshold: float | None = Field(
        None, description="Divergence threshold of its group; null: no EB."
    )
    unfinished: int = Field(0, description="Trials still queued or running.")
    failed: int = Field(0, description="Trials that failed or were cancelled; in no mean.")
    chosen_on: ChosenOn | None = Field(
        None, description="What the best epoch was chosen on; null: the last, or on training."
    )
    points: list[RatePointRead]


class SensitivityRead(Output):
    """A study's curves: a value against the learning rate."""

    study_id: int
    metric: Metric
    reducer: Reducer
    band: Band
    band_definition: str = ""
    series: list[SeriesRead]
    left_out: LeftOut = 0
    threshold: float | None = Field(None, description="The paper's, of the first group with EB.")
    threshold_definition: str = ""


class NumberRead(Output):
    """One robustness number with its interval, the seeds behind it and its definition."""

    value: float | None = Field(description="Null where it is undefined; `note` says why.")
    low: float | None = Field(description="Of the 95 % interval; null: open, or no interval.")
    high: float | None
    censored: Censored = Field(description="above: at least `value`; below: at most.")
    n: int = Field(description="Seeds behind it.")
    definition: str
    note: str = ""
    title: str
    unit: str
    better: Better
    text: str = Field(description='The value in words: "0.31", "at least 3", or a dash.')
    interval: str = Field("", description='The interval in words: "0.33 to 0.9"; or nothing.')


class RateCellRead(Output):
    """One tested rate of one series."""

    lr: float
    state: Literal["good", "tested", "broken"] = Field(
        description="broken: for half its seeds or more."
    )
    n: int = Field(description="Seeds.")
    broke: int = Field(description="How many of them broke.")


class StripRead(Output):
    """Every tested rate of a series, ascending; between neighbours nothing was tried."""

    cells: list[RateCellRead]
    best: float | None = Field(description="The best rate of those that did not break.")
    run: list[float] = Field(description="The neighbouring good rates around the best good one.")
    to_test: tuple[float, float] | None = Field(
        description="The gap in which half the seeds begin to break; null if it was not met."
    )


class BestOfRead(Output):
    """What the best of k random rates can be expected to bring."""

    k: int
    value: float | None
    low: float | None
    high: float | None


class ScorecardRow(SeriesKey):
    """One series' robustness numbers."""

    id: str
    study_id: int
    label: str
    advice: str = Field(description="Which learning rates to use, as they were tested.")
    trials: int = Field(0, description="Completed and diverged trials behind the numbers.")
    metrics: dict[str, NumberRead]
    strip: StripRead
    best_of: list[BestOfRead] = Field([], description="For k = 1 to 20.")
    gap: dict[str, Any] | None = Field(
        None,
        description="The sweep that tests the gap, for `POST /api/studies/{id}/sweeps`; null for "
        "imported series, those of another engine version, and where there is no gap.",
    )


class MovementRead(Output):
    """Whether the best rate moves with a setting, for series that differ in nothing else."""

    setting: str
    rows: list[str] = Field(description="Ids of the series, in the setting's order.")
    text: str = Field(description="In a sentence.")


class TaskAnswerRead(Output):
    """What a study says about one task."""

    task: str
    title: str
    answer: str = Field(description="In a sentence or two.")
    common_range: tuple[float, float] | None = Field(description="Rates all have; null: none.")
    rows: list[str] = Field(description="Ids of its series.")
    moves: list[MovementRead] = Field(
        [], description="Whether the best rate moves with what was varied, of numbers."
    )


class RanksRead(Output):
    """Mean ranks over tasks, with Friedman's test and Nemenyi's critical difference."""

    number: Literal["best_mean", "lr_sensitivity"]
    title: str
    mean_ranks: dict[str, float] = Field(description="By label, 1 the best.")
    p: float = Field(description="How likely such ranks are if all series are alike.")
    critical_difference: float = Field(
        description="Mean ranks that differ by less cannot be told apart at 5 %."
    )
    groups: list[list[str]] = Field([], description="Labels that cannot be told apart.")
    tasks: int = Field(description="Tasks on which every label has the number.")


class ProfileLineRead(Output):
    """On which share of the tasks a series' best mean loss is within a factor of the lowest."""

    label: str
    taus: list[float] = Field(description="The factors.")
    shares: list[float]


class TaskChanceRead(Output):
    """The chance that the first is better than the second, averaged over tasks."""

    first: str
    second: str
    value: float | None
    low: float | None
    high: float | None
    n: int = Field(description="Tasks.")


class MiddleHalfRead(Output):
    """The interquartile mean of a series' LR sensitivities."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int = Field(description="Tasks.")


class AcrossRead(Output):
    """Series compared over many tasks, by the label they have on each of them."""

    tasks: int
    methods: list[str] = Field(description="Labels.")
    ranks: list[RanksRead]
    profiles: list[ProfileLineRead]
    times: list[ProfileLineRead] = Field([], description="The same of epochs to the target.")
    chances: list[TaskChanceRead]
    iqm: list[MiddleHalfRead]
    definitions: dict[str, str] = Field({}, description="Of each of these.")


class PairRead(Output):
    """Two trials with one learning rate and seed."""

    lr: float
    seed: int
    difference: float | None = Field(
        description="Of capped losses; null if one is not finite and its initial loss is unknown."
    )


class PairedPointRead(Output):
    """Paired differences at one learning rate, or overall (lr null)."""

    lr: float | None
    mean: float | None
    low: float | None
    high: float | None
    n: int
    n_finite: int = Field(description="Pairs behind the mean: all whose initial loss is known.")
    lower: int = Field(description="Pairs in which the first is lower, finite or not.")
    higher: int
    wilcoxon_p: float | None
    note: str = ""


class PairedRead(Output):
    """First series minus second, paired by learning rate and seed."""

    first: str = Field(description="Id of the first series.")
    second: str
    first_label: str
    second_label: str
    overall: PairedPointRead
    points: list[PairedPointRead]
    pairs: list[PairRead]


class ScorecardRead(Output):
    """Robustness numbers of every series of a study."""

    study_id: int
    metric: Metric
    reducer: Reducer
    answers: list[TaskAnswerRead] = Field([], description="One a task.")
    rows: list[ScorecardRow]
    across: AcrossRead | None = None
    left_out: LeftOut = 0


class DifferencesRead(Output):
    """A study's paired differences: negative means that the first series is better."""

    study_id: int
    metric: Metric
    reducer: Reducer
    kind: DifferenceKind
    definition: str
    items: list[PairedRead]


class CompareStudy(Output):
    """A study named in a comparison."""

    id: int
    name: str


class CompareRead(Output):
    """Several studies on one axis."""

    studies: list[CompareStudy]
    metric: Metric
    reducer: Reducer
    band: Band
    band_definition: str = ""
    series: list[SeriesRead]
    answers: list[TaskAnswerRead] = Field([], description="One a task.")
    rows: list[ScorecardRow]
    across: AcrossRead | None = None
    left_out: LeftOut = 0
    threshold: float | None = None


class TimingCreate(Input):
    """What to measure steps on."""

    device: Literal["auto", "cpu", "cuda"] = "auto"


class TimingRead(Output):
    """Methods taking steps on one network in turn, so that the ratios of their times are fair."""

    id: int
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    task: str
    methods: list[str]
    device: str = Field(description="As asked for.")
    measured_on: str = Field("", description="The device it was measured on.")
    error: str | None = None
    created_at: datetime
    finished_at: datetime | None = None


class TimingsRead(Output):
    """The newest measurement of every network of a study; results stand in its scorecard."""

    study_id: int
    items: list[TimingRead]
    messages: list[str] = Field([], description="What a reader should know besides.")
