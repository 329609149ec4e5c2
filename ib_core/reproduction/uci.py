"""The UCI tables: cell by cell against the printed ones, accuracies, explosions, ranks."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, median, stdev

from ib_core.metrics import Number, RateCurve, SeedResult, number_text, score_task
from ib_core.reproduction.evidence import Evidence, Run
from ib_core.reproduction.published import printed_uci_losses, published_claims
from ib_core.reproduction.verdicts import (
    Judgement,
    not_tested,
    of_losses,
    verdict_of,
    written,
)
from ib_core.sweep import TrialResult

#: A cell agrees to this, absolute or relative: the tables print two decimals.
TOLERANCE = 0.01
#: Rates up to here are judged; above, rounding alone moves a loss by more than the tolerance.
HIGHEST_RATE = 1.0
#: Share of the judged cells that must agree.
CELLS_NEEDED = 0.95
#: Below so many tables no interval over them is given.
LEAST_TABLES = 10
#: What stands behind a source's name whose accuracies are over all of its own tables.
OF_ALL = ", all"
#: EB and IB are alike on UCI if their mean test accuracies are at most so many points apart.
ALIKE = 1.0

AGREEMENT_RULE = (
    "The losses match if at least 95% of the printed ones at rates up to 1 are met to .01 or 1%, "
    "seed 1, authors profile. That says that what runs here is what the authors ran, no more."
)
TEXT_RULE = (
    "Reproduced if EB and IB, each at the rate with the lowest training loss, have mean test "
    "accuracies at most one point apart, the 95% interval over tables included: the paper finds "
    "them similar. Differs if the interval lies beyond one point."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed loss and ours."""

    dataset: str
    method: str
    lr: float
    ours: float
    printed: float

    @property
    def agrees(self) -> bool:
        """Whether they agree to `TOLERANCE`."""
        return within(self.ours, self.printed, absolute=TOLERANCE, relative=TOLERANCE)


@dataclass(frozen=True, slots=True)
class TableAccuracy:
    """Test accuracies on one table in percent, each method at its own best rate."""

    dataset: str
    eb: float
    ib: float


@dataclass(frozen=True, slots=True)
class Accuracies:
    """Mean test accuracies in percent, each method at its own best rate.

    Attributes:
        eb: EB's.
        ib: IB's.
        difference: IB's minus EB's in points, with its interval over tables.
        tables: Table by table.
    """

    eb: float
    ib: float
    difference: Number
    tables: tuple[TableAccuracy, ...]


def cells(evidence: Evidence) -> list[Cell]:
    """Return every cell that is both printed and run, by table, method and rate."""
    return [
        Cell(dataset, method, lr, math.nan if loss is None else loss, printed)
        for (dataset, method, lr), printed in sorted(printed_uci_losses().items())
        if (run := evidence.uci.get(dataset, {}).get(method, {}).get(lr)) is not None
        for loss in (run.train_loss,)
    ]


def judge_cells(evidence: Evidence) -> Judgement:
    """Judge our authors profile against the printed tables."""
    found = cells(evidence)
    judged = [cell for cell in found if cell.lr <= HIGHEST_RATE]
    if not judged:
        return not_tested("No table was run in the authors profile.")
    agreeing = sum(cell.agrees for cell in judged)
    above = [cell for cell in found if cell.lr > HIGHEST_RATE]
    reason = (
        f"{agreeing:,} of {len(judged):,} cells at rates up to 1 agree "
        f"({agreeing / len(judged):.1%})"
    )
    if above:
        reason += f"; above, {sum(cell.agrees for cell in above):,} of {len(above):,}"
    verdict = verdict_of(agreeing >= CELLS_NEEDED * len(judged))
    return of_losses(Judgement(verdict, reason + ".", agreeing, len(judged)))


def accuracies(evidence: Evidence, among: Collection[str] | None = None) -> Accuracies | None:
    """Return mean test accuracies over the tables that both methods were run on.

    Args:
        evidence: Whose runs.
        among: Only over these tables.
    """
    found = []
    for dataset, methods in sorted(evidence.uci.items()):
        if among is not None and dataset not in among:
            continue
        eb, ib = (_at_best_rate(methods.get(name, {})) for name in ("eb", "ib"))
        if eb is not None and ib is not None:
            found.append(TableAccuracy(dataset, 100 * eb, 100 * ib))
    if not found:
        return None
    return Accuracies(
        eb=fmean(one.eb for one in found),
        ib=fmean(one.ib for one in found),
        difference=over_tables([one.ib - one.eb for one in found]),
        tables=tuple(found),
    )


def compared_accuracies(by_source: Mapping[str, Evidence]) -> dict[str, Accuracies]:
    """Return accuracies over the tables that all sources share, by source.

    A source with more tables than these follows a second time, with all of its own: means over
    different tables cannot be held against each other.
    """
    own = {
        name: found
        for name, evidence in by_source.items()
        if (found := accuracies(evidence)) is not None
    }
    if not own:
        return {}
    common = set.intersection(*({one.dataset for one in found.tables} for found in own.values()))
    result = {
        name: found for name in own if (found := accuracies(by_source[name], common)) is not None
    }
    wider = {name: found for name, found in own.items() if len(found.tables) > len(common)}
    return result | {f"{name}{OF_ALL}": found for name, found in wider.items()}


def over_tables(values: Sequence[float]) -> Number:
    """Return the mean of a number over tables, with Student's 95% interval; none below 10."""
    n, mean = len(values), fmean(values)
    if n < LEAST_TABLES:
        return Number(mean, n=n, note=f"Below {LEAST_TABLES} tables no interval is given.")
    half = student(n - 1) * stdev(values) / math.sqrt(n)
    return Number(mean, mean - half, mean + half, n=n)


def student(freedom: int) -> float:
    """Return the quantile of Student's t that leaves 2.5 % above, to .0005 from 9 degrees on.

    z + (z^3 + z)/4f + (5z^5 + 16z^3 + 3z)/96f^2 + (3z^7 + 19z^5 + 17z^3 - 15z)/384f^3: scipy would
    take 15 MB that a web process can do without.
    """
    z, f = NormalDist().inv_cdf(0.975), freedom
    return (
        z
        + (z**3 + z) / (4 * f)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * f**3)
    )


def judge_accuracy(evidence: Evidence) -> Judgement:
    """Judge the published difference in test accuracy."""
    found = accuracies(evidence)
    if found is None:
        return not_tested("No table was run with both methods.")
    published = float(published_claims()["uci_accuracy"].numbers["points"])
    low, high = found.difference.low, found.difference.high
    holds = None
    if low is not None and high is not None:
        inside = low <= published <= high
        holds = False if not inside else True if low > 0 else None
    return Judgement(verdict_of(holds), accuracy_words(found))


def judge_text(evidence: Evidence) -> Judgement:
    """Judge the text profile: does the choice between EB and IB matter on small tables?"""
    found = accuracies(evidence)
    if found is None:
        return not_tested("No table was run with both methods.")
    low, high = found.difference.low, found.difference.high
    holds = None
    if low is not None and high is not None:
        beyond = low > ALIKE or high < -ALIKE
        holds = False if beyond else True if low >= -ALIKE and high <= ALIKE else None
    return Judgement(verdict_of(holds), accuracy_words(found))


def accuracy_words(found: Accuracies) -> str:
    """Return accuracies as a sentence."""
    return (
        f"EB {found.eb:.2f}%, IB {found.ib:.2f}% over {len(found.tables)} tables: "
        f"{found.difference.value:+.2f} points{_between(found.difference)}."
    )


def _between(number: Number) -> str:
    if number.low is None or number.high is None:
        return ""
    return f" ({number.low:+.2f} to {number.high:+.2f})"


def judge_explosion(evidence: Evidence) -> Judgement:
    """Judge how much higher losses are one rate above the best: "on average 892 times"."""
    ratios = explosions(evidence)
    if not ratios:
        return not_tested("No table has a rate above its best one.")
    published = float(published_claims()["uci_explosion"].numbers["times"])
    mean = over_tables([fmean(found) for found in ratios.values()])
    every = [ratio for found in ratios.values() for ratio in found]
    holds = None
    if mean.low is not None and mean.high is not None:
        inside = mean.low <= published <= mean.high
        holds = False if not inside else True if mean.low > 1 else None
    shown = replace(mean, low=None if mean.low is None else max(mean.low, 1.0))
    reason = (
        f"On average {written(shown)} times over {len(ratios)} tables; the median is "
        f"{number_text(median(every))} times."
    )
    return Judgement(verdict_of(holds), reason)


def explosions(evidence: Evidence) -> dict[str, list[float]]:
    """Return, by table, the loss one rate above each method's best over the best loss."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for dataset, methods in evidence.uci.items():
        for method in ("eb", "ib"):
            losses = _finite_losses(methods.get(method, {}))
            best = min(losses, key=lambda lr: (losses[lr], lr), default=None)
            above = sorted(lr for lr in losses if best is not None and lr > best)
            if best is not None and above and losses[best] > 0:
                found[dataset].append(losses[above[0]] / losses[best])
    return dict(found)


def _finite_losses(runs: Mapping[float, Run]) -> dict[float, float]:
    losses = {lr: run.train_loss for lr, run in runs.items()}
    return {lr: loss for lr, loss in losses.items() if loss is not None and math.isfinite(loss)}


def _at_best_rate(runs: Mapping[float, Run]) -> float | None:
    usable = [
        run
        for run in runs.values()
        if run.train_loss is not None
        and math.isfinite(run.train_loss)
        and run.test_accuracy is not None
    ]
    if not usable:
        return None
    return min(usable, key=lambda run: (run.train_loss, run.lr)).test_accuracy


#: Of a table's scorecard, what the summary over all tables shows.
SHOWN = ("edge", "headroom", "lr_sensitivity", "best_mean")


@dataclass(frozen=True, slots=True)
class TableNumbers:
    """One method on one table: its numbers by name."""

    dataset: str
    method: str
    numbers: Mapping[str, Number]


def by_table(results: Iterable[TrialResult]) -> list[TableNumbers]:
    """Return every method's robustness numbers on every table of a study."""
    runs: defaultdict[str, defaultdict[str, list[tuple[float, SeedResult]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for result in results:
        spec = result.spec
        seed = SeedResult(spec.seed, result.train_loss, result.initial_loss, result.outcome.value)
        runs[spec.task.removeprefix("uci/")][spec.method].append((spec.lr, seed))
    found = []
    for dataset, methods in sorted(runs.items()):
        curves = {name: RateCurve.from_results(pairs) for name, pairs in methods.items()}
        found += [
            TableNumbers(dataset, method, {name: row[name] for name in SHOWN})
            for method, row in score_task(curves).rows.items()
        ]
    return found


def values_by_table(rows: Iterable[TableNumbers], name: str) -> dict[str, dict[str, float | None]]:
    """Return one number by table and method, as ranks over many tasks take it."""
    found: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
    for row in rows:
        found[row.dataset][row.method] = row.numbers[name].value
    return dict(found)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number.

    Attributes:
        what: Which number, in words.
        ours: Computed here.
        theirs: Recorded or printed.
        agrees: By the check's own stated rule.
        reason: Why not, where it does not.
    """

    what: str
    ours: float
    theirs: float
    agrees: bool
    reason: str = ""


def within(ours: float, theirs: float, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Return whether two numbers agree to an absolute or a relative tolerance; NaN equals NaN."""
    if not math.isfinite(ours) or not math.isfinite(theirs):
        return math.isnan(ours) == math.isnan(theirs) and math.isinf(ours) == math.isinf(theirs)
    return abs(ours - theirs) <= max(absolute, relative * abs(theirs))


def summary(title: str, rule: str, found: Iterable[Comparison]) -> str:
    """Return a check's text: the count that agrees, and every number that does not."""
    comparisons = list(found)
    agreeing = sum(comparison.agrees for comparison in comparisons)
    share = 100 * agreeing / max(1, len(comparisons))
    lines = [f"{title}: {agreeing} of {len(comparisons)} agree ({share:.1f}%), {rule}."]
    lines += [
        f"  {c.what}: ours {c.ours:.7g}, theirs {c.theirs:.7g}  {c.reason}".rstrip()
        for c in comparisons
        if not c.agrees
    ]
    return "\n".join(lines)
