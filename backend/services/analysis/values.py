"""Which number of a trial a metric means, and how it becomes a loss for `ib_core.metrics`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from backend.models import TrialRow
from backend.schemas import Metric, Reducer, TrialState
from backend.services.analysis.curve_ends import first_and_best
from backend.services.analysis.series import Finished, Series
from ib_core.metrics import RateCurve, SeedResult


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric under a reducer; time is never the best of several."""

    metric: Metric
    reducer: Reducer = "final"

    @property
    def column(self) -> Any:
        """The column of the final value."""
        return getattr(TrialRow, self.metric).label("final")

    @property
    def higher_is_better(self) -> bool:
        """Whether the loss is its complement."""
        return self.metric.endswith("accuracy")

    @property
    def is_best(self) -> bool:
        """Whether values come from curves."""
        return self.reducer == "best" and self.metric != "seconds"

    def needs_curves(self, *, initial: bool) -> bool:
        """Whether trials have to bring their curves; the initial training loss has a column."""
        return self.is_best or (initial and self.metric not in ("train_loss", "seconds"))

    def loss(self, value: float | None) -> float | None:
        """Return a value as something that is better when lower; also undoes itself."""
        return value if value is None or not self.higher_is_better else 1.0 - value


class Dot(NamedTuple):
    """One trial's number; a tuple, because there are ten thousand of them.

    Attributes:
        value: None where it is not finite.
        initial: The same number before the first step, None where it is not known.
    """

    trial_id: int
    lr: float
    seed: int
    outcome: str
    value: float | None
    initial: float | None


def read_dots(series: Series, measure: Measure, *, initial: bool = False) -> list[Dot]:
    """Return the trials that have the metric.

    A completed trial without the number never recorded it (a task without classes has no
    accuracy); a diverged one without it lost it, and that must show.
    """
    values, initials = _numbers(series.rows, measure, initial=initial)
    known = any(value is not None for value in values)
    lost_all = all(row.state == TrialState.DIVERGED for row in series.rows)
    if not known and not lost_all:
        return []
    return [
        Dot(row.id, row.lr, row.seed, row.state, value, start)
        for row, value, start in zip(series.rows, values, initials, strict=True)
        if value is not None or row.state == TrialState.DIVERGED
    ]


def _numbers(
    rows: Sequence[Finished], measure: Measure, *, initial: bool
) -> tuple[list[float | None], list[float | None]]:
    values: list[float | None] = [row.final for row in rows]
    starts: list[float | None] = [row.initial_loss for row in rows]
    if measure.needs_curves(initial=initial):
        first, best = first_and_best(
            [row.curve for row in rows], measure.metric, highest=measure.higher_is_better
        )
        if measure.metric != "train_loss":
            starts = _none_for_nan(first)
        if measure.is_best:
            values = _none_for_nan(best)
    elif measure.metric != "train_loss":
        starts = [None] * len(rows)
    return values, starts


def _none_for_nan(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def rate_curve(dots: Sequence[Dot], measure: Measure) -> RateCurve | None:
    """Return dots as losses; None without any."""
    if not dots:
        return None
    if measure.higher_is_better:
        dots = [
            dot._replace(value=measure.loss(dot.value), initial=measure.loss(dot.initial))
            for dot in dots
        ]
    # By position: ten thousand calls with names would take as long as reading the trials.
    return RateCurve.from_results(
        (lr, SeedResult(seed, value, initial, outcome))
        for _, lr, seed, outcome, value, initial in dots
    )


@dataclass(frozen=True, slots=True)
class Plotted:
    """A series with its numbers read.

    Attributes:
        series: Whose.
        dots: Its trials that have the metric.
        curve: The same as losses; None without any.
    """

    series: Series
    dots: list[Dot]
    curve: RateCurve | None


def read_plots(
    found: Sequence[Series], measure: Measure, *, initial: bool = False
) -> list[Plotted]:
    """Return every series with its numbers, read once for all that is made of them."""
    plots = []
    for series in found:
        dots = read_dots(series, measure, initial=initial)
        plots.append(Plotted(series, dots, rate_curve(dots, measure)))
    return plots
