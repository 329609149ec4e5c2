"""What the implicit step costs: time per epoch, and how much longer than EB."""

from statistics import fmean

from backend.schemas import MetricRead
from backend.services.analysis.series import Series

SECONDS = (
    "Mean training time per epoch over the completed trials, in seconds: a trial's share of the "
    "time its shard took."
)
OVERHEAD = (
    "Mean over the learning rates and seeds that both completed of this method's training time, "
    "divided by the same mean of EB's, minus 1."
)


Seconds = dict[tuple[float, int], float]


def cost_metrics(own: Seconds, eb: Seconds, *, epochs: int) -> dict[str, MetricRead]:
    """Return a series' time per epoch and its overhead over EB, None where not measured.

    Args:
        own: From `seconds_by_cell` of the series.
        eb: The same of EB's series; empty without one.
        epochs: How many a trial of the series has.
    """
    per_epoch = fmean(own.values()) / epochs if own else None
    return {
        "seconds_per_epoch": _read(
            "Seconds per epoch", "seconds", per_epoch, SECONDS, "No trial has a measured time."
        ),
        "overhead": _read(
            "Extra time over EB",
            "share",
            _overhead(own, eb),
            OVERHEAD,
            "No trial of this method and of EB share rate, seed and a measured time.",
        ),
    }


def seconds_by_cell(series: Series) -> Seconds:
    """Return measured times by rate and seed.

    Only of completed trials: a diverged one may have stopped early, and tells nothing.
    """
    cells = ((row.state, row.lr, row.seed, row.seconds) for row in series.rows)
    return {(lr, seed): took for state, lr, seed, took in cells if took and state == "completed"}


def _overhead(own: Seconds, eb: Seconds) -> float | None:
    common = own.keys() & eb.keys()
    if not common:
        return None
    return fmean(own[cell] for cell in common) / fmean(eb[cell] for cell in common) - 1


def _read(title: str, unit: str, value: float | None, definition: str, missing: str) -> MetricRead:
    return MetricRead(
        value=value,
        low=None,
        high=None,
        censored="none",
        definition=definition,
        title=title,
        unit=unit,
        better="lower",
        text="–" if value is None else f"{value:.3g}",
        note=missing if value is None else "",
        citation="Etascope",
    )
