"""Recordings: what was kept of trials' ways, stored, answered and exported."""

import csv
import io
import math
from collections.abc import Iterator, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import database_time, insert_for
from backend.errors import InvalidInput, NotFound
from backend.models import RecordingRow, ShardState, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import BesideRead, RecordingRead
from ib_core.sweep import Recording, recording_answer, tell

#: Fewer rows than this would not show a break.
FEWEST_ROWS = 16
#: What trials that may stand side by side have in common: all but the method.
PAIRED = (
    *("task", "profile", "activation", "lr", "seed", "clip", "mu", "epochs", "batch_size"),
    *("data_hash", "engine_version"),
)
MOST_BESIDE = 20


def wishes(session: Session, *, trial_ids: list[int]) -> dict[int, tuple[str, ...]]:
    """Return what sweeps that are not called off want recorded of these trials."""
    query = (
        select(SweepTrialRow.trial_id, SweepRow.spec)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepTrialRow.trial_id.in_(trial_ids), SweepRow.cancelled_at.is_(None))
    )
    found: dict[int, set[str]] = {}
    for trial_id, spec in session.execute(query):
        found.setdefault(trial_id, set()).update(spec.get("record") or ())
    return {trial_id: tuple(sorted(what)) for trial_id, what in found.items() if what}


def store_recordings(session: Session, by_trial: Mapping[int, Recording]) -> None:
    """Store what shards recorded; a replay that waits, or is done, knows more and stays."""
    if not by_trial:
        return
    now = database_time(session)
    rows = [
        {
            "trial_id": trial_id,
            "state": ShardState.DONE,
            "data": recording.to_bytes(),
            "created_at": now,
            "finished_at": now,
        }
        for trial_id, recording in by_trial.items()
    ]
    session.execute(insert_for(session, RecordingRow).on_conflict_do_nothing(), rows)


def recording(session: Session, *, trial_id: int, rows: int | None = None) -> RecordingRead:
    """Return what was recorded of a trial and its story, thinned to so many rows."""
    if rows is not None and rows < FEWEST_ROWS:
        raise InvalidInput(
            f"A recording needs at least {FEWEST_ROWS} rows; got {rows}.", field="rows"
        )
    trial = session.get(TrialRow, trial_id)
    if trial is None:
        raise NotFound("trial", trial_id)
    beside = _beside(session, trial)
    row = session.get(RecordingRow, trial_id)
    if row is None:
        return RecordingRead(trial_id=trial_id, state="none", beside=beside)
    about = {
        "trial_id": trial_id,
        "state": row.state.value,
        "progress": row.progress,
        "error": row.error,
        "agreement": (row.agreement or {}).get("sentence"),
        "same": (row.agreement or {}).get("same"),
        "beside": beside,
    }
    if row.data is None:
        return RecordingRead(**about)
    whole = Recording.from_bytes(row.data)
    story = tell(whole, trial.diverged_at_step)
    shown = whole if rows is None else whole.thin(rows)
    return RecordingRead(
        **about,
        **recording_answer(shown),
        total=len(whole.rows),
        stored_bytes=len(row.data),
        story=list(story.sentences),
        broke_at=story.broke_at,
        first_layer=None if story.growth is None else story.growth.layer,
        finished_at=row.finished_at,
    )


def _beside(session: Session, trial: TrialRow) -> list[BesideRead]:
    """Return the trials of other methods at the same rate with the same seed."""
    alike = [getattr(TrialRow, name).is_not_distinct_from(getattr(trial, name)) for name in PAIRED]
    query = (
        select(TrialRow.id, TrialRow.method, TrialRow.state, RecordingRow.data.is_not(None))
        .outerjoin(RecordingRow, RecordingRow.trial_id == TrialRow.id)
        .where(*alike, TrialRow.id != trial.id, TrialRow.imported.is_(False))
        .order_by(TrialRow.method, TrialRow.id)
        .limit(MOST_BESIDE)
    )
    return [
        BesideRead(trial_id=id, method=method, state=state, recorded=bool(recorded))
        for id, method, state, recorded in session.execute(query)
    ]


def export_recording(session: Session, *, trial_id: int) -> Iterator[str]:
    """Return a trial's whole recording as lines of CSV; empty where there is no finite number.

    Raises:
        NotFound: There is none.
    """
    row = session.get(RecordingRow, trial_id)
    if row is None or row.data is None:
        raise NotFound("recording of trial", trial_id)
    names, lines = Recording.from_bytes(row.data).table()

    def written() -> Iterator[str]:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for step, *numbers in lines:
            writer.writerow([int(step), *("" if not math.isfinite(n) else n for n in numbers)])
        yield text.getvalue()

    return written()
