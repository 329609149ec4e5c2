"""What App. C's theorem bounds, by method and rate, from the records of a study's trials."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import TheoremLine, TheoremRead
from backend.services.trials import COUNTED
from ib_core.methods import place

DEFINITION = (
    "Sum of rate x |g|^2 over the sum of rates so far, g being what a step multiplies by its "
    "rate; the theorem of App. C bounds it for decaying rates with restarts. Medians over seeds."
)
NUMBERS = ("average", "gradient", "theta", "restarts")


def theorem(session: Session, *, study_id: int) -> TheoremRead:
    """Return the lines of a study; the caller has checked that the study exists."""
    found = (
        select(TrialRow.id, TrialRow.task, TrialRow.method, TrialRow.lr, TrialRow.record)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id, TrialRow.state.in_(COUNTED))
        .where(TrialRow.record.is_not(None))
        .order_by(TrialRow.id)
    )
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    seen: set[int] = set()
    for trial_id, task, method, lr, record in session.execute(found):
        if trial_id not in seen and "theorem" in record:
            groups.setdefault((task, method, lr), []).append(record["theorem"])
        seen.add(trial_id)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], place(item[0][1]), *item[0][1:]))
    return TheoremRead(
        study_id=study_id,
        definition=DEFINITION,
        lines=[_line(*key, records) for key, records in ordered],
    )


def _line(task: str, method: str, lr: float, records: Sequence[dict[str, Any]]) -> TheoremLine:
    """Return the medians over seeds, as far as the longest run goes."""
    longest = max(records, key=lambda record: len(record["step"]))["step"]
    columns = {
        name: [
            _middle([r[name][i] for r in records if i < len(r[name])]) for i in range(len(longest))
        ]
        for name in NUMBERS
    }
    return TheoremLine(task=task, method=method, lr=lr, seeds=len(records), step=longest, **columns)


def _middle(values: Sequence[float | None]) -> float | None:
    """Return the median; None where a run is no longer finite or has not begun."""
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None
