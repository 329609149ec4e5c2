"""The UCI tables: cell by cell against the printed ones, and the accuracy at the best rate."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from ib_core.metrics import MetricValue, RateCurve, SeedResult
from ib_core.reproduction.evidence import Evidence, Run, printed_uci_losses, published_claims
from ib_core.reproduction.verdicts import Judgement, Verdict, far_robustness, not_tested, verdict_of
from ib_core.sweep import TrialResult

#: A cell agrees to this, absolute or relative: the tables print two decimals.
TOLERANCE = 0.01
#: Rates up to here are judged; above, rounding alone moves a loss by more than the tolerance.
HIGHEST_RATE = 1.0
#: Share of the judged cells that must agree.
CELLS_NEEDED = 0.95
#: The difference in accuracy may be this far, in points, from the published one.
ACCURACY_TOLERANCE = 0.05
#: EB and IB are alike on UCI if their mean test accuracies are at most so many points apart.
ALIKE = 1.0

AGREEMENT_RULE = (
    "Reproduced if at least 95% of the printed losses at rates up to 1 are met to .01 or 1%, "
    "seed 1, authors profile."
)
TEXT_RULE = (
    "Reproduced if EB and IB, each at the rate with the lowest training loss, have mean test "
    "accuracies at most one point apart: the paper finds them similar."
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
class Accuracies:
    """Mean test accuracies in percent, each method at its own best rate."""

    eb: float
    ib: float
    tables: int

    @property
    def difference(self) -> float:
        """IB's minus EB's, in points."""
        return self.ib - self.eb


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
        f"{agreeing} of {len(judged)} cells at rates up to 1 agree ({agreeing / len(judged):.1%})"
    )
    if above:
        reason += f"; above, {sum(cell.agrees for cell in above)} of {len(above)}"
    return Judgement(verdict_of(agreeing >= CELLS_NEEDED * len(judged)), reason + ".")


def accuracies(evidence: Evidence) -> Accuracies | None:
    """Return mean test accuracies over the tables that both methods were run on."""
    found: dict[str, list[float]] = {"eb": [], "ib": []}
    for methods in evidence.uci.values():
        best = {name: _at_best_rate(methods.get(name, {})) for name in found}
        if all(value is not None for value in best.values()):
            for name, value in best.items():
                found[name].append(100 * (value or 0.0))
    if not found["eb"]:
        return None
    return Accuracies(fmean(found["eb"]), fmean(found["ib"]), len(found["eb"]))


def judge_accuracy(evidence: Evidence) -> Judgement:
    """Judge the published difference in test accuracy."""
    found = accuracies(evidence)
    if found is None:
        return not_tested("No table was run with both methods.")
    published = float(published_claims()["uci_accuracy"].numbers["points"])
    holds = abs(found.difference - published) <= ACCURACY_TOLERANCE
    return Judgement(verdict_of(holds), accuracy_words(found))


def judge_text(evidence: Evidence) -> Judgement:
    """Judge the text profile: does the choice between EB and IB matter on small tables?"""
    found = accuracies(evidence)
    if found is None:
        return not_tested("No table was run with both methods.")
    return Judgement(verdict_of(abs(found.difference) <= ALIKE), accuracy_words(found))


def accuracy_words(found: Accuracies) -> str:
    """Return accuracies as a sentence."""
    return (
        f"EB {found.eb:.2f}%, IB {found.ib:.2f}% over {found.tables} tables: "
        f"{found.difference:+.2f} points."
    )


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


__all__ = ["Accuracies", "Cell", "Verdict", "accuracies", "cells", "judge_accuracy", "judge_cells"]


@dataclass(frozen=True, slots=True)
class TableNumbers:
    """One method on one table."""

    dataset: str
    method: str
    robust_range: MetricValue
    headroom: MetricValue
    best_loss: MetricValue


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
        for method, numbers in far_robustness(curves).items():
            found.append(
                TableNumbers(
                    dataset=dataset,
                    method=method,
                    robust_range=numbers["robust_range"],
                    headroom=numbers["headroom"],
                    best_loss=numbers["best_mean"],
                )
            )
    return found


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
