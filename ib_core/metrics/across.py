"""Many tasks at once: ranks and their tests, profiles, the chance to be better, the middle half.

Input is one number for each task and series, lower being better. Tasks on which a series has no
number (None) are left out; a number that is not finite ranks last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ib_core.errors import InvalidSpec
from ib_core.metrics.compared import Cells, paired_cells
from ib_core.metrics.number import LEAST_SEEDS, LEVEL, Floats, Number
from ib_core.metrics.task_table import TaskTable

Values = Mapping[str, Mapping[str, float | None]]
RESAMPLES = 2000
MIDDLE_HALF = (
    "Mean of the middle half of the tasks' numbers, a quarter being cut off at either end; 95 % "
    "interval from resampling the tasks, bias-corrected."
)
CHANCE = (
    "Mean over the tasks of the share of common rates and seeds at which its loss is lower than "
    "the other's; ties count half, a loss that is not finite is the worst."
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The tasks on which every series has a number.

    Attributes:
        labels: The series.
        tasks: The tasks kept.
        values: [tasks, series]; infinite where not finite.
        left_out: Tasks that lack a number.
    """

    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    left_out: tuple[str, ...]


def matrix(values: Values) -> Matrix:
    """Put numbers by task and series into one table."""
    labels = tuple(dict.fromkeys(label for row in values.values() for label in row))
    kept = [task for task, row in values.items() if all(row.get(one) is not None for one in labels)]
    if not kept or len(labels) < 2:
        raise InvalidSpec("Comparing over tasks needs two series and a task that both have.")
    table = np.array([[values[task][label] for label in labels] for task in kept], dtype=float)
    left_out = tuple(task for task in values if task not in kept)
    return Matrix(labels, tuple(kept), np.where(np.isfinite(table), table, np.inf), left_out)


def ranks(values: Floats) -> Floats:
    """Rank each row, 1 the lowest; ties share their mean rank, [tasks, series]."""
    lower = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return np.asarray(lower + (equal + 1) / 2, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class RankTest:
    """Mean ranks with Friedman's test and Nemenyi's critical difference.

    Attributes:
        ranks: Mean rank by label, 1 the best.
        n: Tasks behind them.
        statistic: Friedman's chi-square, corrected for ties.
        p: Its p-value: how likely such ranks are if all series are alike.
        critical_difference: Mean ranks that differ by less cannot be told apart at 5 %.
        groups: Largest sets of series whose mean ranks span less than that, best first.
        left_out: Tasks on which a series has no number.
    """

    ranks: dict[str, float]
    n: int
    statistic: float
    p: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]


def rank_test(values: Values) -> RankTest:
    """Compare series by their ranks on many tasks (Friedman 1937, Nemenyi 1963, Demsar 2006)."""
    from scipy.special import chdtrc

    found = matrix(values)
    n, k = found.values.shape
    each = ranks(found.values)
    mean = each.mean(axis=0)
    # Sum of squares between series over what ranks within a task can vary; ties lessen the latter.
    between = n * ((mean - (k + 1) / 2) ** 2).sum()
    within = ((each - (k + 1) / 2) ** 2).sum() / (n * (k - 1))
    statistic = float(between / within) if within > 0 else 0.0
    difference = critical_difference(k, n)
    by_label = dict(zip(found.labels, mean.tolist(), strict=True))
    return RankTest(
        ranks=by_label,
        n=n,
        statistic=statistic,
        p=float(chdtrc(k - 1, statistic)),
        critical_difference=difference,
        groups=_groups(by_label, difference),
        left_out=found.left_out,
    )


def critical_difference(k: int, n: int) -> float:
    """Return Nemenyi's critical difference of mean ranks at 5 %, `q sqrt(k (k + 1) / (6 n))`."""
    return _studentized(k) * float(np.sqrt(k * (k + 1) / (6 * n)))


@lru_cache
def _studentized(k: int) -> float:
    from scipy.stats import studentized_range  # a second to import, so only when asked for

    return float(studentized_range.ppf(LEVEL, k, np.inf) / np.sqrt(2))


def _groups(mean_ranks: Mapping[str, float], difference: float) -> tuple[tuple[str, ...], ...]:
    ordered = sorted(mean_ranks, key=lambda label: mean_ranks[label])
    found: list[tuple[str, ...]] = []
    for first, label in enumerate(ordered):
        limit = mean_ranks[label] + difference
        group = tuple(one for one in ordered[first:] if mean_ranks[one] < limit)
        if len(group) > 1 and not any(set(group) <= set(other) for other in found):
            found.append(group)
    return tuple(found)


def performance_profiles(values: Values, factors: Sequence[float]) -> dict[str, tuple[float, ...]]:
    """Return by label the share of tasks on which it is within a factor of the best (Dolan, More).

    Args:
        values: Numbers above 0, by task and label.
        factors: At which factors, 1 or more.
    """
    found = matrix(values)
    if not (found.values > 0).all():
        raise InvalidSpec("A performance profile needs numbers above 0.", field="values")
    best = found.values.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isinf(found.values), np.inf, found.values / best)
    within = ratio[None] <= np.asarray(factors, dtype=float)[:, None, None] * (1 + 1e-12)
    shares = within.mean(axis=1)
    return {label: tuple(shares[:, i].tolist()) for i, label in enumerate(found.labels)}


def interquartile_mean(values: Sequence[float]) -> Number:
    """Return the mean of the middle half of the tasks' numbers; see `MIDDLE_HALF`."""
    numbers = np.sort(np.asarray(values, dtype=np.float64))
    n = numbers.size
    if n < LEAST_SEEDS:
        few = f"The middle half needs {LEAST_SEEDS} tasks or more."
        return Number(None, n=n, definition=MIDDLE_HALF, note=few)
    rng = np.random.default_rng(0)
    drawn = np.sort(numbers[rng.integers(0, n, (RESAMPLES, n))], axis=1)
    cut = n // 4
    value = float(numbers[cut : n - cut].mean())
    low, high = _corrected(drawn[:, cut : n - cut].mean(axis=1), value)
    return Number(value, low, high, n=n, definition=MIDDLE_HALF)


def chance_over_tasks(tables: Sequence[TaskTable], label: str, other: str) -> Number:
    """Return the chance to be better than another series, averaged over tasks.

    On each task the share of common rates and seeds with a lower loss, ties half; every task
    counts alike. Seeds are resampled within each task; where a task has fewer than three, the
    tasks are resampled instead.

    Args:
        tables: The tasks.
        label: The series.
        other: What it is compared with.
    """
    cells = [
        paired_cells(table, table.labels.index(label), table.labels.index(other))
        for table in tables
        if label in table.labels and other in table.labels
    ]
    cells = [one for one in cells if one.count.size]
    if not cells:
        return Number(None, definition=CHANCE, note="There is no task that both have.")
    chances = np.array([one.wins.sum() / one.count.sum() for one in cells])
    value, tasks = float(chances.mean()), chances.size
    found = Number(value, n=tasks, definition=CHANCE)
    if min(one.count.size for one in cells) >= LEAST_SEEDS:
        drawn, note = _within_tasks(cells), "Seeds resampled within each task."
    elif tasks < LEAST_SEEDS:
        return replace(found, note="Too few seeds and tasks for an interval.")
    else:
        rng = np.random.default_rng(0)
        drawn = chances[rng.integers(0, tasks, (RESAMPLES, tasks))].mean(axis=1)
        note = "Few seeds a task: tasks resampled."
    low, high = _corrected(drawn, value)
    return replace(found, low=low, high=high, note=note)


def _within_tasks(cells: Sequence[Cells]) -> Floats:
    rng = np.random.default_rng(0)
    total = np.zeros(RESAMPLES)
    for one in cells:
        n = one.count.size
        weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
        total += (weights @ one.wins) / (weights @ one.count)
    return total / len(cells)


def _corrected(drawn: Floats, value: float) -> tuple[float, float]:
    """The bias-corrected percentile interval of resampled values."""
    below = np.mean(drawn < value - 1e-12) + np.mean(np.abs(drawn - value) <= 1e-12) / 2
    from scipy.special import ndtr, ndtri

    shift = ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    reach = ndtri((1 + LEVEL) / 2)
    low, high = np.quantile(drawn, ndtr([2 * shift - reach, 2 * shift + reach]))
    return float(min(low, value)), float(max(high, value))
