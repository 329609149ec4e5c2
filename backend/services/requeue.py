"""What becomes of a shard that did not end well: again, in pieces, or not at all."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.models import ShardRow, ShardState, TrialRow
from backend.schemas import TrialState
from backend.services.progress import UNFINISHED
from backend.services.results import readable
from backend.services.trials import chunks, is_wanted, lock
from backend.settings import get_settings

LONGEST_BACKOFF = 60.0

#: A shard that waits for a worker, and has not been announced to any.
WAITING: dict[str, Any] = {
    "state": ShardState.QUEUED,
    "worker": None,
    "lease_until": None,
    "sent_at": None,
    "queue": None,
    "progress": 0.0,
}


def put_back(session: Session, *, shard_id: int) -> None:
    """Give back a shard that was stopped on purpose; this burns no attempt."""
    unfinished = _unfinished(session, shard_id)
    if not unfinished:
        return _close(session, shard_id)
    attempts = {"attempts": ShardRow.attempts - 1, "not_before": None}
    _set(session, shard_id, **WAITING, **attempts)
    _requeue_trials(session, unfinished, attempts=TrialRow.attempts - 1)


def try_again(
    session: Session, *, shard_id: int, attempts: int, error: str, split: bool = True
) -> None:
    """Give back a shard after a fault, or fail what is left of it once its attempts are used up.

    Before the last attempt the trials part ways, if `split`: one that kills its worker every time
    must not take its neighbours along.
    """
    settings = get_settings()
    unfinished = _unfinished(session, shard_id)
    reason = readable(error)
    if not unfinished:
        return _close(session, shard_id)
    if attempts >= settings.max_attempts:
        return _give_up(session, shard_id, unfinished, reason)
    wait = clock(min(settings.retry_seconds * 2 ** (attempts - 1), LONGEST_BACKOFF))
    _requeue_trials(session, unfinished)
    if split and attempts == settings.max_attempts - 1 and len(unfinished) > 1:
        _split(session, shard_id, unfinished, attempts, wait, reason)
    else:
        _set(session, shard_id, **WAITING, not_before=wait, message=f"Trying again: {reason}")
    return None


def drop_unwanted(session: Session, *, shard_id: int) -> int:
    """Cancel the shard's unfinished trials that no sweep wants any more."""
    mine = (TrialRow.shard_id == shard_id, TrialRow.state.in_(UNFINISHED))
    orphans = session.scalars(select(TrialRow.id).where(*mine, ~is_wanted())).all()
    return cancel_unwanted(session, orphans) if orphans else 0


def cancel_unwanted(session: Session, trial_ids: Sequence[int]) -> int:
    """Cancel those of the trials that are unfinished and that no sweep wants; return how many."""
    lock(session, trial_ids)
    gone = {"state": TrialState.CANCELLED, "finished_at": clock()}
    return sum(
        changed_rows(
            session,
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state.in_(UNFINISHED), ~is_wanted())
            .values(gone),
        )
        for chunk in chunks(trial_ids)
    )


def close_empty(session: Session, *, shard_ids: Sequence[int]) -> None:
    """Cancel waiting shards whose trials have all been cancelled."""
    for chunk in chunks(shard_ids):
        busy = select(TrialRow.shard_id).where(
            TrialRow.shard_id.in_(chunk), TrialRow.state.in_(UNFINISHED)
        )
        session.execute(
            update(ShardRow)
            .where(
                ShardRow.id.in_(chunk),
                ShardRow.state == ShardState.QUEUED,
                ShardRow.id.not_in(busy),
            )
            .values(state=ShardState.CANCELLED, finished_at=clock())
        )


def _unfinished(session: Session, shard_id: int) -> Sequence[int]:
    drop_unwanted(session, shard_id=shard_id)
    mine = (TrialRow.shard_id == shard_id, TrialRow.state.in_(UNFINISHED))
    query = select(TrialRow.id).where(*mine).order_by(TrialRow.id)
    return session.scalars(query.with_for_update()).all()


def _requeue_trials(session: Session, trial_ids: Sequence[int], **values: Any) -> None:
    for chunk in chunks(trial_ids):
        session.execute(
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state == TrialState.RUNNING)
            .values(state=TrialState.QUEUED, started_at=None, **values)
        )


def _give_up(session: Session, shard_id: int, trial_ids: Sequence[int], reason: str) -> None:
    for chunk in chunks(trial_ids):
        session.execute(
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state.in_(UNFINISHED))
            .values(state=TrialState.FAILED, error=reason, finished_at=clock())
        )
    _set(session, shard_id, state=ShardState.FAILED, error=reason, finished_at=clock())


def _split(
    session: Session,
    shard_id: int,
    trial_ids: Sequence[int],
    attempts: int,
    wait: clock,
    reason: str,
) -> None:
    whole = session.get_one(ShardRow, shard_id, populate_existing=True)
    share = {
        **WAITING,
        "device": whole.device,
        "trials": 1,
        "seconds": whole.seconds / len(trial_ids),
        "memory_bytes": whole.memory_bytes // len(trial_ids),
        "attempts": attempts,
        "message": f"Alone after: {reason}",
    }
    made = session.scalars(
        insert(ShardRow).returning(ShardRow.id, sort_by_parameter_order=True),
        [share] * len(trial_ids),
    ).all()
    moves = [{"id": t, "shard_id": s} for t, s in zip(trial_ids, made, strict=True)]
    session.execute(update(TrialRow), moves)
    session.execute(update(ShardRow).where(ShardRow.id.in_(made)).values(not_before=wait))
    note = f"Split into {len(made)} shards of one trial."
    ended = {"state": ShardState.FAILED, "error": reason, "message": note, "finished_at": clock()}
    _set(session, shard_id, **ended)


def _close(session: Session, shard_id: int) -> None:
    """End a shard that has nothing left to train."""
    _set(session, shard_id, state=ShardState.DONE, progress=1.0, finished_at=clock())


def _set(session: Session, shard_id: int, **values: Any) -> None:
    session.execute(update(ShardRow).where(ShardRow.id == shard_id).values(values))
