"""What one worker does alone, under a lease: races and replays; and replays asked for and stored.

As with shards the row is the truth and a message a hint: it may be lost or come twice. Whoever
holds a lease is told apart from those before by its number.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import changed_rows, clock, passed
from backend.errors import Conflict, NotFound
from backend.models import RecordingRow, ShardState, SweepRow, SweepTrialRow, TimingRow, TrialRow
from backend.services import offers, shards
from backend.services.shards import LOST_SECONDS, queue_of
from backend.services.trials import (
    COUNTED,
    chunks,
    finite,
    spec_of,
    unrecorded,
    want_recordings,
    wishes,
)
from backend.services.workers import live_by_device, live_offers
from backend.settings import get_settings
from ib_core.sweep import ENGINE_VERSION, Recording, TrialSpec

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

    def claim(
        self, session: Session, *, id: int, worker: str, offers: Collection[str] = ()
    ) -> int | None:
        """Lease a waiting errand to this worker; None if there is nothing to do for it.

        Args:
            session: A session that may write.
            id: Which errand.
            worker: Who asks.
            offers: The keys of what it brings along.
        """
        table = self.table
        needs = session.scalar(select(table.needs).where(self.key == id))
        if needs and not set(needs.split(",")) <= set(offers):
            return None
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
        unheard = or_(table.sent_at.is_(None), passed(table.sent_at, ago=LOST_SECONDS))
        # What nobody who lives can do is no reason to look again every few seconds.
        can = shards.servable(session, table, live_offers(session))
        waiting = and_(table.state == ShardState.QUEUED, unheard, can)
        expired = and_(table.state == ShardState.RUNNING, self._expired())
        return bool(session.scalar(select(exists().where(or_(waiting, expired)))))

    def queues(self, session: Session) -> set[str]:
        """Return the queues on which those that wait are announced now."""
        return set(self._places(session).values())

    def announced(self, session: Session) -> Counter[str]:
        """Return how many waiting errands have been announced on each queue."""
        table, places = self.table, self._places(session)
        query = select(table.device, table.needs, func.count()).where(
            table.state == ShardState.QUEUED, table.sent_at.is_not(None)
        )
        found: Counter[str] = Counter()
        for device, needs, count in session.execute(query.group_by(table.device, table.needs)):
            if (device, needs) in places:
                found[places[device, needs]] += count
        return found

    def due(
        self,
        session: Session,
        *,
        depths: Mapping[str, int] | None = None,
        beside: Mapping[str, int] | None = None,
    ) -> list[tuple[int, str]]:
        """Return the errands to announce now with their queues, and note that they have been.

        These are errands never sent, sent to a queue that is empty although nobody has claimed
        them, or sent long ago to a queue that holds fewer messages than it should. Taken back
        first: errands of workers that have been silent for too long.

        Args:
            session: A session that may write.
            depths: How many messages wait in each queue; without it only what was never sent is.
            beside: How many messages of others should be in each queue.
        """
        table = self.table
        error = f"The worker stopped answering while it {self.doing} this."
        self._give_back(session, error, self._expired())
        places, sent = self._places(session), self.announced(session) + Counter(beside or {})
        query = (
            select(self.key, table.device, table.needs)
            .where(table.state == ShardState.QUEUED)
            .where(shards.servable(session, table, live_offers(session)))
            .where(self._unheard(places, depths or {}, sent))
            .order_by(self.key)
            .limit(MOST_SENT)
            .with_for_update(skip_locked=True)
        )
        found = [(id, places[device, needs]) for id, device, needs in session.execute(query)]
        told = update(table).where(self.key.in_([id for id, _ in found]))
        session.execute(told.values(sent_at=clock()))
        return found

    def _places(self, session: Session) -> dict[tuple[str, str | None], str]:
        """Return the queue for every device and needs that a waiting errand has."""
        gpu_lives, live = bool(live_by_device(session).get("cuda")), live_offers(session)
        table = self.table
        waiting = select(table.device, table.needs).where(table.state == ShardState.QUEUED)
        return {
            (device, needs): queue_of(device, needs, gpu_lives, live)
            for device, needs in session.execute(waiting.distinct())
        }

    def _expired(self) -> ColumnElement[bool]:
        return passed(self.table.lease_until, longest=2 * self.seconds)

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

    def _unheard(
        self,
        places: Mapping[tuple[str, str | None], str],
        depths: Mapping[str, int],
        sent: Mapping[str, int],
    ) -> ColumnElement[bool]:
        table = self.table
        cases: list[ColumnElement[bool]] = [table.sent_at.is_(None)]
        for (device, needs), queue in places.items():
            if queue not in depths or depths[queue] >= max(1, sent.get(queue, 0)):
                continue  # it may still be there, and repeating it only makes the queue longer
            ago = LOST_SECONDS if depths[queue] == 0 else get_settings().resend_seconds
            here = (table.device == device, table.needs.is_not_distinct_from(needs))
            cases.append(and_(*here, passed(table.sent_at, ago=ago)))
        return or_(*cases)


_FREE: dict[str, Any] = {"worker": None, "lease_until": None, "sent_at": None}


# --- Replays: trials trained again alone and recorded


if TYPE_CHECKING:  # its module carries torch, which the web process does without
    from ib_core.sweep import Agreement

#: Long enough for a step of any trial, since it is renewed between steps.
REPLAY_SECONDS = 300.0
REPLAYS = Errands(RecordingRow, RecordingRow.trial_id, seconds=REPLAY_SECONDS, doing="replayed")


@dataclass(frozen=True, slots=True)
class ReplayClaim:
    """A worker's lease on a replay.

    Attributes:
        trial_id: Which trial.
        lease: Tells it from every other claim of the same replay.
        device: As asked for.
        spec: What to train, as `TrialSpec.from_dict` reads it.
        known: The stored outcome and losses.
    """

    trial_id: int
    lease: int
    device: str
    spec: dict[str, Any]
    known: dict[str, Any]


def request_replay(session: Session, *, trial_id: int, device: str, owner_id: int | None) -> bool:
    """Ask for a trial's replay; return whether it is new: one that waits, or runs, is not.

    Raises:
        NotFound: There is no such trial.
        Conflict: It cannot be trained again here.
    """
    trial = session.get(TrialRow, trial_id, with_for_update=True)
    if trial is None:
        raise NotFound("trial", trial_id)
    if trial.state not in COUNTED:
        raise Conflict(
            "Only a trial that has completed or diverged can be replayed.",
            hint=f"This one is {trial.state.value}.",
        )
    if trial.imported or trial.engine_version != ENGINE_VERSION:
        raise Conflict(
            "This trial was not trained by this engine, so nothing here could give its numbers.",
            hint="Submit its settings as a sweep of your own, and replay that.",
        )
    row = session.get(RecordingRow, trial_id, with_for_update=True)
    if row is not None and row.state in OPEN:
        return False
    if row is None:
        row = RecordingRow(trial_id=trial_id)
        session.add(row)
    row.state, row.device, row.owner_id = ShardState.QUEUED, device, owner_id
    row.needs = _needs(session, trial)
    row.attempts, row.progress, row.error, row.sent_at = 0, 0.0, None, None
    session.flush()
    return True


def _needs(session: Session, trial: TrialRow) -> str | None:
    spec = TrialSpec.from_dict(spec_of(trial))
    with offers.known_again(session, [(spec, trial.data_hash)]).told():
        return offers.needs_of([spec])


def replays_of(session: Session, *, sweep_ids: Sequence[int]) -> Sequence[int]:
    """Return the trials whose open replays these sweeps wish for, perhaps with others."""
    specs = session.execute(select(SweepRow.id, SweepRow.spec).where(SweepRow.id.in_(sweep_ids)))
    recording = [sweep_id for sweep_id, spec in specs if spec.get("record")]
    held = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id.in_(recording))
    query = select(RecordingRow.trial_id).where(
        RecordingRow.trial_id.in_(held), RecordingRow.state.in_(OPEN)
    )
    return session.scalars(query.order_by(RecordingRow.trial_id)).all() if recording else []


def call_off_replays(session: Session, *, trial_ids: Sequence[int]) -> int:
    """Take back the open replays of these trials that no sweep needs; return how many.

    What somebody with an account asked for stays. Who trains one learns it when its lease is
    renewed. A recording from before is kept. The caller has locked the trials.
    """
    needed = set(unrecorded(session, wishes(session, trial_ids=trial_ids), about_to=True))
    gone = 0
    for chunk in chunks([one for one in trial_ids if one not in needed]):
        mine = (
            RecordingRow.trial_id.in_(chunk),
            RecordingRow.state.in_(OPEN),
            RecordingRow.owner_id.is_(None),
        )
        older = update(RecordingRow).where(*mine, RecordingRow.data.is_not(None))
        kept = {**_FREE, "state": ShardState.DONE, "progress": 1.0}
        gone += changed_rows(session, older.values(kept))
        gone += changed_rows(session, delete(RecordingRow).where(*mine))
    return gone


def want_replays_again(session: Session, *, sweep_id: int, device: str) -> None:
    """Ask once more for what a sweep that goes on wishes recorded; its trials are locked."""
    held = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id == sweep_id)
    lacking = unrecorded(session, wishes(session, trial_ids=session.scalars(held).all()))
    rows = (session.get_one(TrialRow, one) for one in lacking)
    want_recordings(session, needs={row.id: _needs(session, row) for row in rows}, device=device)


def claim_replay(
    session: Session, *, trial_id: int, worker: str, offers: tuple[str, ...] = ()
) -> ReplayClaim | None:
    """Lease a waiting replay to this worker; None if there is nothing to do for it."""
    lease = REPLAYS.claim(session, id=trial_id, worker=worker, offers=offers)
    if lease is None:
        return None
    trial = session.get_one(TrialRow, trial_id)
    row = session.get_one(RecordingRow, trial_id)
    known = {name: getattr(trial, name) for name in ("train_loss", "test_loss")}
    known["outcome"] = trial.state.value
    return ReplayClaim(trial_id, lease, row.device, spec_of(trial), known)


def renew_replay(session: Session, *, claim: ReplayClaim, progress: float) -> bool:
    """Hold on to a replay and note how far it is; False if the lease was lost."""
    held = REPLAYS.renew(session, id=claim.trial_id, lease=claim.lease)
    if held:
        session.get_one(RecordingRow, claim.trial_id).progress = min(max(progress, 0.0), 1.0)
    return held


def finish_replay(
    session: Session, *, claim: ReplayClaim, recording: Recording, agreement: "Agreement"
) -> bool:
    """Store what was recorded; False if the lease was lost."""
    off = None if agreement.off is None else finite(agreement.off)
    told = {"same": agreement.same, "off": off, "sentence": agreement.sentence}
    found = {"data": recording.to_bytes(), "agreement": told, "progress": 1.0}
    return REPLAYS.finish(session, id=claim.trial_id, lease=claim.lease, **found)


def fail_replay(session: Session, *, claim: ReplayClaim, error: str) -> bool:
    """Give a replay back because it broke, for good after a few attempts."""
    return REPLAYS.fail(session, id=claim.trial_id, lease=claim.lease, error=error)


def release_replay(session: Session, *, claim: ReplayClaim) -> bool:
    """Give a replay back because the worker stops."""
    return REPLAYS.release(session, id=claim.trial_id, lease=claim.lease)
