"""All series of one task as arrays, with the words every number is made of.

*Broken* (a seed at a rate): diverged, or its final training loss is above its initial one.
*Capped loss* lc: min(loss, initial loss), the initial loss where it is not finite. *Good* (a
tested rate): every seed sound and mean lc <= l* + .1 (l0 - l*), l* the lowest mean lc of all
series on the task. *Common range*: from the highest lowest to the lowest highest tested rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ib_core.metrics.curve import RateCurve
from ib_core.metrics.number import ROUNDING, Flags, Floats, Ints

#: Share of what there is to gain that a good rate may give up.
TOLERANCE = 0.1
#: Chance of missing something with every seed, beyond which it is not thought of.
UNSEEN = 0.1
#: An initial loss above this is not known: sums and squares of such numbers overflow.
LARGEST = 1e150


@dataclass(frozen=True, slots=True)
class CommonRange:
    """A range of rates in which series are compared."""

    low: float
    high: float


@dataclass(frozen=True)
class TaskTable:
    """Results of every series on one task.

    Tables have the shape [series, rates, seeds] over the union of rates and seeds. *Rows* are
    numbers from all seeds, then without each one in turn, [..., 1 + seeds].

    Attributes:
        labels: The series.
        rates: Every tested rate, ascending.
        seeds: Every seed, ascending.
        baselines: Index of the series each one is compared with, -1 for none.
        present: Whether a trial is there.
        loss: Its loss, infinite where it is not finite.
        initial: Its initial loss, NaN where it was not recorded.
        validation: Its validation loss, capped, NaN where there is none, infinite where it is lost.
        broken: Whether it broke.
        on_test: Whether the loss is a test loss, so that choosing by it is choosing on test.
    """

    labels: tuple[str, ...]
    rates: Floats
    seeds: tuple[int, ...]
    baselines: Ints
    present: Flags
    loss: Floats
    initial: Floats
    validation: Floats
    broken: Flags
    on_test: bool = False

    @classmethod
    def of(
        cls,
        curves: Mapping[str, RateCurve],
        *,
        baseline: str | Mapping[str, str] = "eb",
        on_test: bool = False,
    ) -> "TaskTable":
        """Put the results of one task into tables.

        Args:
            curves: Every series on the task, by label.
            baseline: Label of EB, or by label of the series each one is compared with.
            on_test: Whether the losses are test losses.
        """
        labels = tuple(curves)
        points = [
            (place, point.lr, result)
            for place, curve in enumerate(curves.values())
            for point in curve.points
            for result in point.results
        ]
        rates = np.unique([lr for _, lr, _ in points])
        seeds = sorted({result.seed for _, _, result in points})
        column = {seed: i for i, seed in enumerate(seeds)}
        row = {lr: i for i, lr in enumerate(rates.tolist())}
        places = [(place, row[lr], column[result.seed]) for place, lr, result in points]
        at = tuple(np.array(places, dtype=np.int64).T)
        # Plain attributes, all at once: ten thousand properties would take longer than the rest.
        numbers = np.array(
            [
                (one.loss, one.initial_loss, one.validation_loss, one.above_start, one.at_zero)
                for _, _, one in points
            ],
            dtype=np.float64,
        )
        lost = np.array([one.outcome == "diverged" for _, _, one in points])
        loss, initial, validation, above, at_zero = numbers.T
        with np.errstate(invalid="ignore"):
            worse = np.where(np.isnan(above), loss > initial, above > 0)
        shape = (len(labels), rates.size, len(seeds))

        def fill(values: Any, empty: float) -> Any:
            cells = np.full(shape, empty, dtype=values.dtype)
            cells[at] = values
            return cells

        return cls(
            labels=labels,
            rates=rates,
            seeds=tuple(seeds),
            baselines=_baselines(labels, baseline),
            on_test=on_test,
            present=fill(np.ones(len(lost), dtype=np.bool_), False),
            loss=fill(np.where(np.isfinite(loss), loss, np.inf), np.nan),
            initial=fill(np.where(initial <= LARGEST, initial, np.nan), np.nan),
            validation=fill(validation, np.nan),
            broken=fill(lost | ~np.isfinite(loss) | worse | (at_zero > 0), False),
        )

    @cached_property
    def count(self) -> Ints:
        """Seeds at each rate, [series, rates]."""
        counted: Ints = self.present.sum(axis=2)
        return counted

    @cached_property
    def tested(self) -> Flags:
        """Whether a series has the rate, [series, rates]."""
        return self.count > 0

    @cached_property
    def broke(self) -> Ints:
        """Broken seeds at each rate, [series, rates]."""
        counted: Ints = self.broken.sum(axis=2)
        return counted

    @cached_property
    def known(self) -> Flags:
        """Whether every trial of a series has its initial loss, so that losses can be capped."""
        lacking: Flags = (self.present & np.isnan(self.initial)).sum(axis=(1, 2)) > 0
        return ~lacking

    @cached_property
    def capped(self) -> Floats:
        """Capped losses; NaN where there is no trial or no initial loss."""
        return np.where(self.present, np.minimum(self.loss, self.initial), np.nan)

    @cached_property
    def means(self) -> Floats:
        """Rows of mean capped losses, NaN at rates a series has not, [series, 1+seeds, rates]."""
        found = _means(self.capped, self.present)
        found[~self.known] = np.nan
        return found

    @cached_property
    def chooser(self) -> Floats:
        """Rows of means that rates are chosen by: validation losses where all trials have one."""
        missing: Flags = (self.present & np.isnan(self.validation)).sum(axis=(1, 2)) > 0
        if missing.all():
            return self.means
        known = np.where(np.isfinite(self.validation), self.validation, self.initial)
        found = _means(known, self.present)
        return np.where(missing[:, None, None], self.means, found)

    @cached_property
    def start(self) -> Floats:
        """Rows of l0, the mean initial loss, [series, 1 + seeds]."""
        flat = self.initial.reshape(len(self.labels), 1, -1)
        counts = self.present.reshape(len(self.labels), 1, -1)
        per_seed = np.where(self.present, self.initial, 0).sum(axis=1)
        number = self.present.sum(axis=1)
        total, many = per_seed.sum(axis=1), number.sum(axis=1)
        left = np.maximum(many[:, None] - number, 1)
        whole = np.where(counts, flat, 0).sum(axis=(1, 2)) / np.maximum(many, 1)
        without = np.where(
            many[:, None] > number, (total[:, None] - per_seed) / left, whole[:, None]
        )
        return np.concatenate([whole[:, None], without], axis=1)

    @cached_property
    def chosen(self) -> Ints:
        """Rows of the index of the best rate: lowest mean, the lowest rate if several tie."""
        values = np.where(np.isnan(self.chooser), np.inf, self.chooser)
        lowest = values.min(axis=2, keepdims=True)
        with np.errstate(invalid="ignore"):
            first: Ints = (values <= lowest + ROUNDING * np.abs(lowest)).argmax(axis=2)
        return first

    @cached_property
    def best(self) -> Floats:
        """Rows of the mean capped loss at the best rate, [series, 1 + seeds]."""
        found: Floats = np.take_along_axis(self.means, self.chosen[..., None], axis=2)[..., 0]
        return found

    @cached_property
    def lowest(self) -> Floats:
        """Rows of l*, the lowest mean capped loss of all series, [1 + seeds]."""
        values = np.where(np.isnan(self.means), np.inf, self.means).min(axis=(0, 2))
        return np.where(np.isinf(values), np.nan, values)

    @cached_property
    def good(self) -> Flags:
        """Whether a series does well at a rate, [series, rates]."""
        bound = self.target[:, None]
        with np.errstate(invalid="ignore"):
            low_enough = self.means[:, 0] <= bound + ROUNDING * np.abs(bound)
        good: Flags = low_enough & self.tested & (self.broke == 0)
        return good

    @cached_property
    def target(self) -> Floats:
        """The highest mean capped loss that is good, [series]; NaN where nobody learnt."""
        lowest, start = self.lowest[0], self.start[:, 0]
        with np.errstate(invalid="ignore"):
            return np.where(start > lowest, lowest + TOLERANCE * (start - lowest), np.nan)

    @property
    def best_rates(self) -> dict[str, float]:
        """The best rate of every series, by label."""
        rates = self.rates[self.chosen[:, 0]].tolist()
        return dict(zip(self.labels, rates, strict=True))

    @cached_property
    def unseen(self) -> tuple[Floats, Floats]:
        """Mean capped losses if some seeds did what none does here, twice [series, rates].

        First: at the last rate before any broke, seeds break and keep their initial loss. Second:
        at the first rate from which on all broke, seeds fare as at the rate below. Their share is
        1 - UNSEEN^(1/n): what is more frequent than that, n seeds miss with less than that chance.
        """
        spoilt, mended = self.means[:, 0].copy(), self.means[:, 0].copy()
        for series in range(len(self.labels)):
            at = np.flatnonzero(self.tested[series])
            broke, count = self.broke[series][at], self.count[series][at]
            first = int((broke > 0).argmax()) if broke.any() else 0
            last = int((broke < count)[::-1].argmax()) if (broke < count).any() else 0
            if first > 0:
                i = at[first - 1]
                share = 1 - UNSEEN ** (1 / self.count[series, i])
                spoilt[series, i] += share * (self.start[series, 0] - spoilt[series, i])
            if last > 0:
                i, below = at[at.size - last], at[at.size - last - 1]
                share = 1 - UNSEEN ** (1 / self.count[series, i])
                mended[series, i] += share * (mended[series, below] - mended[series, i])
        return spoilt, mended

    @cached_property
    def common_range(self) -> CommonRange | None:
        """The common range of all series with two rates or more; None if it is empty."""
        return self.range_of(np.flatnonzero((self.tested.sum(axis=1) > 1) & self.known))

    def range_of(self, series: Ints) -> CommonRange | None:
        """Return the common range of some series; None if it is no range."""
        if not series.size:
            return None
        low = max(self.rates_of(int(one))[0] for one in series)
        high = min(self.rates_of(int(one))[-1] for one in series)
        return CommonRange(float(low), float(high)) if low < high else None

    def rates_of(self, series: int) -> Floats:
        """Return the rates a series was tested at."""
        found: Floats = self.rates[self.tested[series]]
        return found

    def fewest(self, series: int, within: CommonRange | None = None) -> int:
        """Return the fewest seeds at a rate of a series that bears on a range."""
        rates, count = self.rates_of(series), self.count[series][self.tested[series]]
        if within is None:
            return int(count.min())
        first = max(int(np.searchsorted(rates, within.low, "right")) - 1, 0)
        last = int(np.searchsorted(rates, within.high, "left")) + 1
        return int(count[first:last].min())


def _baselines(labels: tuple[str, ...], baseline: str | Mapping[str, str]) -> Ints:
    place = {label: i for i, label in enumerate(labels)}
    named = dict.fromkeys(labels, baseline) if isinstance(baseline, str) else baseline
    return np.array([place.get(named.get(label, ""), -1) for label in labels], dtype=np.int64)


def _means(cells: Floats, present: Flags) -> Floats:
    """Rows of means over seeds, [series, 1 + seeds, rates].

    A rate whose only seed is left out keeps its mean.
    """
    values = np.where(present, cells, 0)
    total, count = values.sum(axis=2), present.sum(axis=2)
    with np.errstate(invalid="ignore"):
        whole = np.where(count > 0, total / np.maximum(count, 1), np.nan)[:, None]
        left = count[..., None] - present
        without = (total[..., None] - values) / np.maximum(left, 1)
    without = np.where(left > 0, without, whole[:, 0, :, None])
    return np.concatenate([whole, without.transpose(0, 2, 1)], axis=1)
