"""Every method over all UCI tables: how far its rate can be turned, table by table."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ib_core.metrics import MetricValue, RateCurve, SeedResult
from ib_core.reproduction.verdicts import far_robustness
from ib_core.sweep.result import TrialResult


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
