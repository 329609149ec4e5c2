"""What happened in a sweep since somebody last looked: the material of the event stream."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session

from backend.models import SweepTrialRow, TrialRow
from backend.schemas import SweepRead, SweepState, TrialEvent
from backend.services import sweeps
from backend.services.trials import OUTCOMES

#: Trials handed out in one go; the rest follows in the next round.
MOST_AT_ONCE = 500
ENDED = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)
DONE = "done~"


@dataclass(slots=True)
class Position:
    """How far one listener has come.

    Attributes:
        at: When the newest trial it has heard of ended.
        trial_id: That trial.
        seen: Every trial it has heard of. By time alone one could be missed: a trial's time is
            taken before its transaction ends, so a later one may show up earlier.
    """

    at: datetime | None = None
    trial_id: int = 0
    seen: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, text: str) -> "Position":
        """Return the position of a `Last-Event-ID`; anything unreadable means the beginning."""
        moment, _, trial_id = text.removeprefix(DONE).rpartition("~")
        try:
            at = datetime.fromisoformat(moment).astimezone(UTC)
            found = cls(at, int(trial_id))
        except (ValueError, OverflowError):
            return cls()
        return found if 0 < found.trial_id < 2**63 else cls()

    def write(self) -> str:
        """Return the position as an event id."""
        return f"{self.at.isoformat()}~{self.trial_id}" if self.at else "0"

    def move(self, trial_id: int, at: datetime | None) -> None:
        """Go past a trial, never back."""
        if at and (self.at is None or at >= self.at):
            self.at, self.trial_id = at, trial_id


@dataclass(frozen=True, slots=True)
class News:
    """One look at a sweep."""

    sweep: SweepRead
    trials: list[TrialEvent]
    more: bool
    ended_at: list[datetime | None] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing will happen any more.

        A cancelled sweep's last trials end only when their worker next looks.
        """
        counts = self.sweep.progress
        running = counts.get("running", 0) + counts.get("queued", 0)
        return self.sweep.state in ENDED and not running and not self.more

    def timed(self) -> Iterator[tuple[TrialEvent, datetime | None]]:
        """Return each trial with when it ended."""
        return zip(self.trials, self.ended_at, strict=True)


def resume(session: Session, *, sweep_id: int, position: Position) -> None:
    """Count as seen what had ended when the listener was cut off."""
    if position.at is None:
        return
    same = and_(TrialRow.finished_at == position.at, TrialRow.id <= position.trial_id)
    before = or_(TrialRow.finished_at < position.at, same)
    position.seen.update(session.scalars(_ended(sweep_id).where(before)))


def look(session: Session, *, sweep_id: int, position: Position) -> News:
    """Return a sweep with the trials that ended since, and move the position past them."""
    sweep = sweeps.get(session, sweep_id=sweep_id)
    ended = sum(sweep.progress.get(state.value, 0) for state in OUTCOMES)
    if ended == len(position.seen):
        return News(sweep, [], more=False)
    new = [id_ for id_ in session.scalars(_ended(sweep_id)) if id_ not in position.seen]
    query = select(TrialRow).where(TrialRow.id.in_(new[:MOST_AT_ONCE]))
    rows = session.scalars(query.order_by(TrialRow.finished_at, TrialRow.id)).all()
    for row in rows:
        position.seen.add(row.id)
        position.move(row.id, row.finished_at)
    return News(
        sweep,
        [_read(row) for row in rows],
        more=len(new) > MOST_AT_ONCE,
        ended_at=[row.finished_at for row in rows],
    )


def ended_ids(session: Session, *, sweep_id: int) -> set[int]:
    """Return every trial of a sweep that has ended by now."""
    return set(session.scalars(_ended(sweep_id)))


def _ended(sweep_id: int) -> Select[int]:
    return (
        select(TrialRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(tuple(OUTCOMES)))
        .order_by(TrialRow.finished_at, TrialRow.id)
    )


def _read(row: TrialRow) -> TrialEvent:
    return TrialEvent(
        id=row.id,
        state=row.state,
        outcome=OUTCOMES[row.state],
        task=row.task,
        method=row.method,
        lr=row.lr,
        seed=row.seed,
        clip=row.clip,
        train_loss=row.train_loss,
        test_loss=row.test_loss,
        seconds=row.seconds,
    )
