"""Sweeps: grids of trials on one task, as people submit them.

| module | for |
| --- | --- |
| `submitting` | what people do to a sweep: submit, forecast, cancel, retry |
| `searched` | what a search knows and has found |
| `following` | a sweep on its way: how far, until when, what happened since somebody looked |

Here are the rounds of a search, planned when the last has ended, by whoever notices first. A
worker that has stored results looks, and so does every reaper: a planner that was killed has left
nothing behind, and the next one comes to the same round (`ib_core.sweep.rounds`). Two that look at
once are told apart by the round's number, changed by compare-and-set under the study's lock, which
cancelling takes as well.

From a request's body to sweeps: `backend.services.submission`.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows
from backend.models import AGENTS, SweepRow, SweepTrialRow, TrialRow
from backend.services import offers, shards
from backend.services.sweeps.following import (
    DONE,
    News,
    Position,
    Progress,
    ended_ids,
    get,
    is_cancelled,
    is_searching,
    news,
    page,
    progress_of,
    resume,
    row_of,
    state_of,
)
from backend.services.sweeps.searched import Searched, load
from backend.services.sweeps.submitting import (
    Place,
    Submitted,
    add_cells,
    add_trials,
    cancel,
    dry_run,
    forecast_cells,
    retry,
    submit,
    submit_cells,
    touch,
)
from backend.services.trials import UNFINISHED
from ib_core.sweep import ENGINE_VERSION, Ask, next_round, trial_of

__all__ = [
    "DONE",
    "News",
    "Position",
    "Progress",
    "Submitted",
    "cancel",
    "dry_run",
    "due_rounds",
    "end_search",
    "ended_ids",
    "forecast_cells",
    "get",
    "is_cancelled",
    "is_searching",
    "news",
    "page",
    "plan_round",
    "progress_of",
    "resume",
    "retry",
    "state_of",
    "submit",
    "submit_cells",
]


def due_rounds(session: Session) -> Sequence[int]:
    """Return the sweeps whose search may go on: their last round has ended."""
    busy = (
        exists()
        .where(SweepTrialRow.sweep_id == SweepRow.id)
        .where(TrialRow.id == SweepTrialRow.trial_id, TrialRow.state.in_(UNFINISHED))
    )
    query = select(SweepRow.id).where(
        SweepRow.searching.is_(True), SweepRow.cancelled_at.is_(None), ~busy
    )
    return session.scalars(query.order_by(SweepRow.id)).all()


def plan_round(session: Session, *, sweep_id: int) -> list[int]:
    """Plan a search's next round if the last has ended; return the shards to announce.

    Rounds whose trials are all known already pass at once. A search that has nothing left to
    find or to spend is over.
    """
    touch(session, row_of(session, sweep_id).study_id)
    while True:
        row = row_of(session, sweep_id)
        if not row.searching or row.cancelled_at is not None:
            return []
        found = load(session, row)
        if found.unfinished:
            return []
        # Results of another engine's version would not belong to one bracket.
        ours = row.engine_version in (None, ENGINE_VERSION)
        asked = next_round(found.search, found.known) if ours else []
        if not asked:
            end_search(session, sweep_id=sweep_id)
            return []
        if not _move_on(session, row, asked):
            return []
        shard_ids, reused = _add(session, row, found, asked)
        if reused:
            more = update(SweepRow).where(SweepRow.id == sweep_id)
            session.execute(more.values(reused=SweepRow.reused + reused))
        if reused < len(asked):
            return shard_ids


def _add(
    session: Session, row: SweepRow, found: Searched, asked: Sequence[Ask]
) -> tuple[list[int], int]:
    place = Place(row.id, first=found.trials, round=len(found.sizes) + 1)
    if row.device == AGENTS:
        named: list[tuple[Any, Ask]] = [(ask.series, ask) for ask in asked]
        cells = [
            shards.cell_row(row.spec, row.id, method, clip, ask.lr, ask.seed)
            for (method, clip), ask in named
        ]
        add_cells(session, rows=cells, at=place)
        return [], 0
    assert found.data_hash is not None
    grid = shards.grid_of_trials([trial_of(ask) for ask in asked], found.data_hash)
    known = offers.known_again(session, [(spec, found.data_hash) for spec in found.specs])
    with known.told():
        return add_trials(session, grid=grid, at=place, device=row.device)


def _move_on(session: Session, row: SweepRow, asked: Sequence[Ask]) -> bool:
    """Count the next round; False if somebody else has."""
    rates = sorted({*row.spec["learning_rates"], *(ask.lr for ask in asked)})
    same = (SweepRow.id == row.id, SweepRow.round == row.round, SweepRow.searching.is_(True))
    moved = {
        "round": (row.round or 0) + 1,
        "total": SweepRow.total + len(asked),
        "spec": {**row.spec, "learning_rates": rates},
    }
    return changed_rows(session, update(SweepRow).where(*same).values(moved)) == 1


def end_search(session: Session, *, sweep_id: int) -> None:
    """Note that no further round will come."""
    ended = update(SweepRow).where(SweepRow.id == sweep_id, SweepRow.round.is_not(None))
    session.execute(ended.values(searching=False))
