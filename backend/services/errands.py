"""What one worker does alone, under a lease: the rows of races and of replays.

As with shards the row is the truth and a message a hint: it may be lost or come twice. Whoever
holds a lease is told apart from those before by its number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, null, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import changed_rows, clock
from backend.models import RecordingRow, ShardState, TimingRow
from backend.services.shards import LOST_SECONDS, queue_of
from backend.services.workers import live_by_device, live_offers
from backend.settings import get_settings

#: Announcements sent in one go.
MOST_SENT = 50
OPEN = (ShardState.QUEUED, ShardState.RUNNING)


class Errands:
    """The errands of one table.

    Args:
        table: Whose rows.
        key: What tells them apart.
        seconds: How long a lease is.
        doing: What a worker does with one, as in "while it measured this".
    """

    def __init__(
        self,
        table: type[TimingRow] | type[RecordingRow],
        key: InstrumentedAttribute[int],
        *,
        seconds: float,
        doing: str,
    ) -> None:
        self.table, self.key, self.seconds, self.doing = table, key, seconds, doing

    def claim(self, session: Session, *, id: int, worker: str) -> int | None:
        """Lease a waiting errand to this worker; None if there is nothing to do for it."""
        table = self.table
        won: int | None = session.scalar(
            update(table)
            .where(self.key == id, table.state == ShardState.QUEUED)
            .values(
                state=ShardState.RUNNING,
                worker=worker,
                lease=table.lease + 1,
                attempts=table.attempts + 1,
                lease_until=clock(self.seconds),
            )
            .returning(table.lease)
        )
        return won

    def renew(self, session: Session, *, id: int, lease: int) -> bool:
        """Hold on for another lease; False if it was lost."""
        return self._change(session, {"lease_until": clock(self.seconds)}, *self._held(id, lease))

    def finish(self, session: Session, *, id: int, lease: int, **found: Any) -> bool:
        """Store what was found; False if the lease was lost."""
        ended = {"state": ShardState.DONE, "error": None, "finished_at": clock(), **found}
        return self._change(session, ended, *self._held(id, lease))

    def fail(self, session: Session, *, id: int, lease: int, error: str) -> bool:
        """Give an errand back because it broke, for good after a few attempts."""
        return bool(self._give_back(session, error, *self._held(id, lease)))

    def release(self, session: Session, *, id: int, lease: int) -> bool:
        """Give an errand back because the worker stops; this burns no attempt."""
        free = {**_FREE, "state": ShardState.QUEUED, "attempts": self.table.attempts - 1}
        return self._change(session, free, *self._held(id, lease))

    def abandon(self, session: Session, *, workers: Sequence[str]) -> int:
        """Take errands back from training processes that have died; return how many."""
        error = f"The worker died while it {self.doing} this."
        return self._give_back(session, error, self.table.worker.in_(workers))

    def pending(self, session: Session) -> bool:
        """Return whether a reaper has anything to do here, found without a write."""
        table = self.table
        unheard = or_(table.sent_at.is_(None), table.sent_at < clock(-LOST_SECONDS))
        waiting = and_(table.state == ShardState.QUEUED, unheard)
        expired = and_(table.state == ShardState.RUNNING, table.lease_until < clock())
        return bool(session.scalar(select(exists().where(or_(waiting, expired)))))

    def due(
        self, session: Session, *, depths: Mapping[str, int] | None = None
    ) -> list[tuple[int, str]]:
        """Return the errands to announce now with their queues, and note that they have been.

        Taken back first: errands of workers that have been silent for too long.

        Args:
            session: A session that may write.
            depths: How many messages wait in each queue: what is in none of them was lost.
        """
        table = self.table
        error = f"The worker stopped answering while it {self.doing} this."
        self._give_back(session, error, table.lease_until < clock())
        gpu_lives, live = bool(live_by_device(session).get("cuda")), live_offers(session)
        needed = getattr(table, "needs", null())  # a race needs nothing that a worker brings along
        query = (
            select(self.key, table.device, needed)
            .where(table.state == ShardState.QUEUED, self._unheard(depths or {}))
            .order_by(self.key)
            .limit(MOST_SENT)
            .with_for_update(skip_locked=True)
        )
        found = [
            (id, queue_of(device, needs, gpu_lives, live))
            for id, device, needs in session.execute(query)
            if not needs or live.met(needs)
        ]
        sent = update(table).where(self.key.in_([id for id, _ in found]))
        session.execute(sent.values(sent_at=clock()))
        return found

    def mark_unsent(self, session: Session, *, ids: Sequence[int]) -> None:
        """Take back a note: the broker did not take the message."""
        unclaimed = (self.key.in_(list(ids)), self.table.state == ShardState.QUEUED)
        session.execute(update(self.table).where(*unclaimed).values(sent_at=None))

    def _held(self, id: int, lease: int) -> tuple[ColumnElement[bool], ...]:
        table = self.table
        return (self.key == id, table.state == ShardState.RUNNING, table.lease == lease)

    def _change(
        self, session: Session, values: Mapping[str, Any], *which: ColumnElement[bool]
    ) -> bool:
        return changed_rows(session, update(self.table).where(*which).values(values)) == 1

    def _give_back(self, session: Session, error: str, *which: ColumnElement[bool]) -> int:
        table = self.table
        running = (table.state == ShardState.RUNNING, *which)
        spent = table.attempts >= get_settings().max_attempts
        failed = {"state": ShardState.FAILED, "error": error, "finished_at": clock(), **_FREE}
        again = {"state": ShardState.QUEUED, **_FREE}
        ended = changed_rows(session, update(table).where(*running, spent).values(failed))
        return ended + changed_rows(session, update(table).where(*running).values(again))

    def _unheard(self, depths: Mapping[str, int]) -> ColumnElement[bool]:
        table = self.table
        never = table.sent_at.is_(None)
        old = table.sent_at < clock(-get_settings().resend_seconds)
        if depths and not any(depths.values()):
            return or_(never, table.sent_at < clock(-LOST_SECONDS))
        return or_(never, old)


_FREE: dict[str, Any] = {"worker": None, "lease_until": None, "sent_at": None}
