"""Every number of the scorecard, listed once: name, title, definition, writing, function.

A new number is a function, a line here and a test case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from ib_core.metrics import compared, paper
from ib_core.metrics import edge as edges
from ib_core.metrics.compared import BestOfK
from ib_core.metrics.curve import RateCurve
from ib_core.metrics.edge import EdgePosterior, Strip
from ib_core.metrics.learning import SeedCurve, time_to_target
from ib_core.metrics.number import Number, NumberKind, as_number, as_range, as_share, unknown
from ib_core.metrics.paper import PaperRule
from ib_core.metrics.task_table import TaskTable

Row = dict[str, Number]
NO_BASELINE = "There is nothing here to compare it with."
ITSELF = "This is what the others are compared with."


@dataclass(frozen=True)
class Scoring:
    """One task's table and what several numbers share.

    Attributes:
        table: The results.
        curves: The same as curves, by label.
        step_costs: Measured ratios of a step to the baseline's, by label.
        training: Losses over training at every series' best rate, by label.
    """

    table: TaskTable
    curves: Mapping[str, RateCurve]
    step_costs: Mapping[str, Number]
    training: Mapping[str, Sequence[SeedCurve]]

    @cached_property
    def posteriors(self) -> tuple[EdgePosterior, ...]:
        """Every series' posterior of its edge."""
        return edges.edge_posteriors(self.table)

    @cached_property
    def edges(self) -> tuple[Number, ...]:
        """Every series' edge."""
        return tuple(edges.edge(self.table, i, one) for i, one in enumerate(self.posteriors))

    @cached_property
    def strips(self) -> tuple[Strip, ...]:
        """What was tested of every series."""
        return tuple(edges.strip(self.table, i) for i in range(len(self.table.labels)))

    @cached_property
    def best_of(self) -> tuple[BestOfK, ...]:
        """Every series' expected best of k."""
        return tuple(compared.best_of_k(self.table, i) for i in range(len(self.table.labels)))

    @cached_property
    def paper_rules(self) -> dict[int, PaperRule]:
        """The paper's rule by the place of the series it is made from."""
        return {
            series: paper.paper_rule(self.curves[self.table.labels[series]])
            for series in set(self.table.baselines.tolist()) - {-1}
        }

    def against(self, series: int, number: Callable[[int, int], Number]) -> Number:
        """Return a number that compares a series with its baseline."""
        other = int(self.table.baselines[series])
        if other in (-1, series):
            reason = NO_BASELINE if other == -1 else ITSELF
            return unknown(self.table.fewest(series), reason)
        return number(series, other)


Function = Callable[[Scoring, int], Number]


def _headroom(scoring: Scoring, series: int) -> Number:
    def ratio(one: int, two: int) -> Number:
        found, edge = scoring.posteriors, scoring.edges
        return edges.headroom(found[one], found[two], (edge[one], edge[two]))

    return scoring.against(series, ratio)


def _good_range(scoring: Scoring, series: int) -> Number:
    return edges.good_range(scoring.table, series, scoring.strips[series])


def _start_at(scoring: Scoring, series: int) -> Number:
    return edges.start_at(scoring.table, series, scoring.strips[series], scoring.edges[series])


def _of_table(function: Callable[[TaskTable, int], Number]) -> Function:
    return lambda scoring, series: function(scoring.table, series)


def _of_pair(function: Callable[[TaskTable, int, int], Number]) -> Function:
    return lambda scoring, series: scoring.against(series, partial(function, scoring.table))


def _best_of(k: int) -> Function:
    return lambda scoring, series: scoring.best_of[series].number(k)


def _step_cost(scoring: Scoring, series: int) -> Number:
    return scoring.step_costs.get(scoring.table.labels[series]) or unknown(0, "Not measured.")


def _time_to_target(scoring: Scoring, series: int) -> Number:
    seeds = scoring.training.get(scoring.table.labels[series])
    if not seeds:
        return unknown(scoring.table.fewest(series), "No losses over training are known.")
    return time_to_target(seeds, float(scoring.table.target[series]))


def _paper(function: Callable[..., Number], *, with_curve: bool) -> Function:
    def number(scoring: Scoring, series: int) -> Number:
        table = scoring.table
        other, n = int(table.baselines[series]), table.fewest(series)
        if other == -1:
            return unknown(n, NO_BASELINE)
        rule = scoring.paper_rules[other]
        curve = (scoring.curves[table.labels[series]],) if with_curve else ()
        return function(rule, *curve, n)

    return number


_BEST_OF = (
    "Expected mean capped loss of the best of {k} rates drawn log-uniformly from the common range, "
    "interpolated in log rate; the best is chosen by validation loss where there is one."
)

NUMBERS: tuple[NumberKind, ...] = (
    NumberKind(
        "edge",
        "Edge",
        "learning rate",
        "higher",
        "The rate at which half the seeds break: they diverge or end above their initial training "
        "loss. Logistic in log rate, weak prior; posterior median and central 95 % interval.",
        as_number,
        lambda scoring, series: scoring.edges[series],
    ),
    NumberKind(
        "headroom",
        "Headroom",
        "times",
        "higher",
        "The edge divided by EB's, with the interval of the ratio of draws from both posteriors.",
        as_number,
        _headroom,
    ),
    NumberKind(
        "good_range",
        "Good range",
        "learning rate",
        "neither",
        "The run of neighbouring good tested rates around the best one. Good: every seed sound and "
        "mean lc <= l* + 0.1 (l0 - l*), l* the lowest mean lc of all methods on the task.",
        as_range,
        _good_range,
    ),
    NumberKind(
        "start_at",
        "Start at",
        "learning rate",
        "neither",
        "The best tested good rate that is at most half the lower end of the edge's interval, else "
        "the best good one; none below 3 seeds.",
        as_number,
        _start_at,
    ),
    NumberKind(
        "best_rate",
        "Best rate",
        "learning rate",
        "neither",
        "The tested rate with the lowest mean capped loss, or validation loss where there is one.",
        as_number,
        _of_table(compared.best_rate),
    ),
    NumberKind(
        "best_mean",
        "Best mean loss",
        "loss",
        "lower",
        "The mean capped loss at the best rate.",
        as_number,
        _of_table(compared.best_mean),
    ),
    NumberKind(
        "price",
        "Price of robustness",
        "share",
        "lower",
        "How far the best mean loss lies above the lowest of all methods on the task.",
        as_share,
        _of_table(compared.price),
    ),
    NumberKind(
        "lr_sensitivity",
        "LR sensitivity",
        "share",
        "lower",
        "Mean over the common range, in log rate, of (lc - l*) / (l0 - l*), l* the lowest mean lc "
        "of all methods on the task: 0 if every rate does as well as the best, 1 if none learns.",
        as_number,
        _of_table(compared.lr_sensitivity),
    ),
    NumberKind(
        "flatness",
        "Flatness",
        "share",
        "lower",
        "LR sensitivity with the method's own lowest mean lc for l*.",
        as_number,
        _of_table(compared.flatness),
    ),
    *(
        NumberKind(
            f"best_of_{k}",
            f"Expected best of {k}",
            "loss",
            "lower",
            _BEST_OF.format(k=k),
            as_number,
            _best_of(k),
        )
        for k in (3, 10)
    ),
    NumberKind(
        "chance_better",
        "Chance to be better",
        "chance",
        "higher",
        "Share of the rates and seeds that it has in common with EB at which its loss is lower; "
        "ties count half, a loss that is not finite is the worst.",
        as_share,
        _of_pair(compared.chance_better),
    ),
    NumberKind(
        "mean_difference",
        "Mean difference",
        "loss",
        "lower",
        "Mean of lc minus EB's over the rates and seeds they have in common.",
        as_number,
        _of_pair(compared.mean_difference),
    ),
    NumberKind(
        "time_to_target",
        "Epochs to target",
        "epochs",
        "lower",
        "Epochs at the best rate until an evaluation first shows a loss at or below the target, "
        "l* + 0.1 (l0 - l*), which a good rate reaches. Median of the seeds; one that never gets "
        "there is later than all others.",
        as_number,
        _time_to_target,
    ),
    NumberKind(
        "step_cost",
        "Cost of a step",
        "times",
        "lower",
        "Time of a training step divided by EB's, measured in turn on one network and device: "
        "median, with the quartiles in place of an interval.",
        as_number,
        _step_cost,
    ),
    NumberKind(
        "paper_threshold",
        "Divergence threshold (paper)",
        "loss",
        "neither",
        "Mid-point of EB's lowest and highest finite mean loss over the grid; only where it is not "
        "above the initial loss.",
        as_number,
        _paper(paper.paper_divergence_threshold, with_curve=False),
        paper=True,
    ),
    NumberKind(
        "paper_divergence_rate",
        "Divergence rate (paper)",
        "learning rate",
        "higher",
        "The first tested rate above the best one whose mean loss exceeds the paper's threshold or "
        "is not finite.",
        as_number,
        _paper(paper.paper_divergence_rate, with_curve=True),
        paper=True,
    ),
    NumberKind(
        "paper_headroom",
        "Headroom (paper)",
        "times",
        "higher",
        "The paper's divergence rate divided by EB's.",
        as_number,
        _paper(paper.paper_headroom, with_curve=True),
        paper=True,
    ),
)
KINDS: dict[str, NumberKind] = {kind.name: kind for kind in NUMBERS}


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Everything there is to say about one task's series, each by label.

    Attributes:
        rows: The numbers by name.
        strips: What was tested, and how it went.
        best_of: The expected best of k = 1 .. 20.
        table: The results behind them; None without any.
    """

    rows: dict[str, Row]
    strips: dict[str, Strip]
    best_of: dict[str, tuple[Number, ...]]
    table: TaskTable | None = field(default=None, compare=False, repr=False)


def score_task(
    curves: Mapping[str, RateCurve],
    *,
    baseline: str | Mapping[str, str] = "eb",
    on_test: bool = False,
    step_costs: Mapping[str, Number] | None = None,
    training: Mapping[str, Sequence[SeedCurve]] | None = None,
    paper: bool = False,
) -> TaskScore:
    """Score every series of one task; the same results give the same numbers.

    Args:
        curves: Every series on the task, by label: l* and the common range are those of all.
        baseline: Label of EB, or by label of the series each one is compared with.
        on_test: Whether the losses are test losses: what is chosen by them is then said to be.
        step_costs: Measured costs of a step over the baseline's, by label.
        training: Losses over training at every series' best rate, by label.
        paper: Whether this is one of the paper's studies, to which its own rule applies.
    """
    if not curves:
        return TaskScore({}, {}, {})
    table = TaskTable.of(curves, baseline=baseline, on_test=on_test)
    return score_table(table, curves, step_costs=step_costs, training=training, paper=paper)


def score_table(
    table: TaskTable,
    curves: Mapping[str, RateCurve],
    *,
    step_costs: Mapping[str, Number] | None = None,
    training: Mapping[str, Sequence[SeedCurve]] | None = None,
    paper: bool = False,
) -> TaskScore:
    """Score a table, whose best rates tell which training to bring; as for `score_task`."""
    scoring = Scoring(table, curves, step_costs or {}, training or {})
    rows = {
        label: {
            kind.name: replace(kind.function(scoring, series), definition=kind.definition)
            for kind in NUMBERS
            if paper or not kind.paper
        }
        for series, label in enumerate(table.labels)
    }
    curves_of_k = (one.curve for one in scoring.best_of)
    return TaskScore(
        rows=rows,
        strips=dict(zip(table.labels, scoring.strips, strict=True)),
        best_of=dict(zip(table.labels, curves_of_k, strict=True)),
        table=table,
    )


def score_tasks(
    curves_by_task: Mapping[str, Mapping[str, RateCurve]],
    *,
    baseline: str | Mapping[str, str] = "eb",
    on_test: bool = False,
    paper: bool = False,
) -> dict[str, TaskScore]:
    """Score every task of a study on its own; settings as for `score_task`."""
    return {
        task: score_task(found, baseline=baseline, on_test=on_test, paper=paper)
        for task, found in curves_by_task.items()
    }
