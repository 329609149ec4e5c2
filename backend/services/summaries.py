"""Sweeps that have ended for good, added up once: a long history then costs no more than a short.

A trial that completed or diverged never changes again, so a sweep of nothing else never does.
"""

from collections.abc import Iterable

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db import insert_for, reading, transaction
from backend.models import SweepSummaryRow
from backend.schemas import TrialState
from backend.services import progress, sparks

#: Sweeps added up in one go; the next look at the history does the next ones.
MOST_AT_ONCE = 50


def store(engine: Engine, *, sweep_ids: Iterable[int]) -> int:
    """Add up those of the sweeps that have ended for good and were not added up before.

    Read and written in transactions of their own: reading may take a while, and no other writer
    should wait for it.

    Returns:
        How many were stored.
    """
    with reading(engine) as session:
        rows = _rows(session, set(sweep_ids))
    if not rows:
        return 0
    with transaction(engine) as session:
        insert = insert_for(session, SweepSummaryRow)
        newer = {name: insert.excluded[name] for name in rows[0] if name != "sweep_id"}
        session.execute(insert.on_conflict_do_update(index_elements=["sweep_id"], set_=newer), rows)
    return len(rows)


def _rows(session: Session, sweep_ids: set[int]) -> list[dict[str, object]]:
    known = select(SweepSummaryRow.sweep_id).where(
        SweepSummaryRow.sweep_id.in_(sweep_ids), SweepSummaryRow.layout == sparks.LAYOUT
    )
    new = sorted(sweep_ids - set(session.scalars(known)))[:MOST_AT_ONCE]
    counts = progress.of_sweeps(session, sweep_ids=new) if new else {}
    ended = {id: found for id, found in counts.items() if found.total and found.good == found.total}
    curves = sparks.of_sweeps(session, sweep_ids=list(ended))
    return [
        {
            "sweep_id": sweep_id,
            "completed": found.counts[TrialState.COMPLETED],
            "diverged": found.counts[TrialState.DIVERGED],
            "fresh": found.fresh,
            "finished_at": found.finished_at,
            "layout": sparks.LAYOUT,
            "curves": {"rows": curves[sweep_id]},
        }
        for sweep_id, found in ended.items()
    ]
