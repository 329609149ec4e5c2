"""Sensitivity curves, scorecards and comparisons: rows turned into findings."""

from typing import Any, Literal

from pydantic import Field

from backend.schemas.base import Output

Metric = Literal["train_loss", "test_loss", "train_accuracy", "test_accuracy", "seconds"]
Reducer = Literal["final", "best"]
Band = Literal["std", "se", "quantile"]
#: method: each method minus EB; clip: each method clipped minus the same unclipped; engine: each
#: curve minus the same one trained by an earlier version of the engine.
DifferenceKind = Literal["method", "clip", "engine"]
Censored = Literal["none", "above", "below"]


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
    points: list[RatePointRead]


class SensitivityRead(Output):
    """A study's curves: a value against the learning rate."""

    study_id: int
    metric: Metric
    reducer: Reducer
    band: Band
    band_definition: str = ""
    series: list[SeriesRead]
    threshold: float | None = Field(
        None, description="The paper's divergence threshold, of the first group that has EB."
    )
    threshold_definition: str = ""


class MetricRead(Output):
    """One robustness number with its interval and definition."""

    value: float | None
    low: float | None
    high: float | None
    censored: Censored = Field(description="above: at least `value`; below: at most.")
    definition: str
    title: str = ""
    unit: str = ""
    better: Literal["higher", "lower", "neither"] = "neither"
    text: str = Field("", description="The value in words.")
    note: str = ""
    citation: str = ""


class ScorecardRow(SeriesKey):
    """One series' robustness numbers."""

    id: str
    study_id: int
    label: str
    recommendation: str = Field(description="Which learning rates to use, in a sentence.")
    trials: int = Field(0, description="Completed and diverged trials behind the numbers.")
    metrics: dict[str, MetricRead]


class PairRead(Output):
    """Two trials with one learning rate and seed."""

    lr: float
    seed: int
    difference: float | None = Field(description="Null if one of them is not finite.")


class PairedPointRead(Output):
    """Paired differences at one learning rate, or overall (lr null)."""

    lr: float | None
    mean: float | None
    low: float | None
    high: float | None
    n: int
    n_finite: int
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
    rows: list[ScorecardRow]


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
    rows: list[ScorecardRow]
    threshold: float | None = None
