"""What is not kept for ever: traces of work that is done, never results."""

from typing import Any

from sqlalchemy import ColumnElement, Select, delete, exists, select
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.models import AuditRow, ShardRow, ShardState, TrialRow
from backend.services import workers
from backend.services.progress import UNFINISHED
from backend.settings import Settings

DAY = 24 * 3600.0
ENDED = (ShardState.DONE, ShardState.FAILED, ShardState.CANCELLED)
#: So many rows at a time: a cleaning must not hold up the workers.
MOST_AT_ONCE = 5000


def clean(session: Session, *, settings: Settings) -> dict[str, int]:
    """Delete what the settings do not keep any longer; return how many rows of each kind.

    A shard tells how training went; once it has ended, nothing else depends on it.
    """
    found = {
        "workers": workers.forget_silent(session),
        "shards": _old_shards(session, settings.keep_shards_days),
        "audit": _old_audit(session, settings.keep_audit_days),
    }
    return {kind: count for kind, count in found.items() if count}


def _old_shards(session: Session, days: float) -> int:
    if not days:
        return 0
    busy = exists().where(TrialRow.shard_id == ShardRow.id, TrialRow.state.in_(UNFINISHED))
    old = _first(ShardRow.id, ShardRow.state.in_(ENDED), _before(ShardRow.finished_at, days), ~busy)
    return changed_rows(session, delete(ShardRow).where(ShardRow.id.in_(old)))


def _old_audit(session: Session, days: float) -> int:
    if not days:
        return 0
    old = _first(AuditRow.id, _before(AuditRow.at, days))
    return changed_rows(session, delete(AuditRow).where(AuditRow.id.in_(old)))


def _before(moment: Any, days: float) -> ColumnElement[bool]:
    found: ColumnElement[bool] = moment < clock(-days * DAY)
    return found


def _first(id_column: Any, *conditions: ColumnElement[bool]) -> Select[int]:
    return select(id_column).where(*conditions).order_by(id_column).limit(MOST_AT_ONCE)
