"""A sweep on its way: how far it is, when it will be done, what happened since somebody looked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from backend.errors import NotFound
from backend.models import (
    AGENTS,
    ShardRow,
    StudyRow,
    SweepRow,
    SweepSummaryRow,
    SweepTrialRow,
    TrialRow,
)
from backend.schemas import (
    MissingOfferRead,
    Page,
    SweepRead,
    SweepState,
    TrialEvent,
    TrialState,
)
from backend.services import errands, offers, read_cursor, workers, write_cursor
from backend.services.shards import OPEN, obstacles, seconds_left
from backend.services.sweeps.searched import read_search
from backend.services.trials import BEGUN, COUNTED, OUTCOMES, UNFINISHED, spans_of, to_event, within

MOST_ERRORS = 3
#: Trials handed out in one go; the rest follows in the next round.
MOST_NEWS = 500
ENDED_STATES = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)
DONE = "done~"


@dataclass(slots=True)
class Progress:
    """The trials of a sweep by state."""

    counts: dict[TrialState, int] = field(default_factory=lambda: dict.fromkeys(TrialState, 0))
    fresh: int = 0  # finished trials that the sweep brought itself
    finished_at: datetime | None = None

    @property
    def total(self) -> int:
        """Number of trials."""
        return sum(self.counts.values())

    @property
    def unfinished(self) -> int:
        """Trials that still have to end."""
        return sum(self.counts[state] for state in UNFINISHED)

    @property
    def good(self) -> int:
        """Trials with a result; divergence is one."""
        return sum(self.counts[state] for state in COUNTED)

    def by_name(self) -> dict[str, int]:
        """Return every state's count, zeros included, so that readers need no defaults."""
        return {state.value: count for state, count in self.counts.items()}


def progress_of(session: Session, *, sweep_ids: Iterable[int]) -> dict[int, Progress]:
    """Return the progress of each sweep, in three queries at most."""
    wanted = list(sweep_ids)
    stored = _stored_progress(session, wanted)
    open_ones = [sweep_id for sweep_id in wanted if sweep_id not in stored]
    return stored | (_counted_progress(session, open_ones) if open_ones else {})


def _stored_progress(session: Session, sweep_ids: Sequence[int]) -> dict[int, Progress]:
    """Return the progress of those sweeps that were added up when all of their trials had ended."""
    names = ("sweep_id", "completed", "diverged", "fresh", "finished_at")
    query = select(*(getattr(SweepSummaryRow, name) for name in names))
    found = {}
    for row in session.execute(query.where(SweepSummaryRow.sweep_id.in_(sweep_ids))):
        found[row.sweep_id] = Progress(fresh=row.fresh, finished_at=row.finished_at)
        found[row.sweep_id].counts[TrialState.COMPLETED] = row.completed
        found[row.sweep_id].counts[TrialState.DIVERGED] = row.diverged
    return found


def _counted_progress(session: Session, sweep_ids: Sequence[int]) -> dict[int, Progress]:
    """Count what somebody has begun; what waits is the rest, may be much, and need not be read."""
    found, spans = {id: Progress() for id in sweep_ids}, spans_of(session, sweep_ids=sweep_ids)
    query = (
        select(
            SweepTrialRow.sweep_id,
            TrialRow.state,
            SweepTrialRow.reused,
            func.count(),
            func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
        )
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id.in_(sweep_ids), BEGUN, within(spans.values()))
        .group_by(SweepTrialRow.sweep_id, TrialRow.state, SweepTrialRow.reused)
    )
    for sweep_id, state, reused, count, finished_at in session.execute(query):
        progress = found[sweep_id]
        progress.counts[state] += count
        progress.fresh += 0 if reused or state in UNFINISHED else count
        moments = (progress.finished_at, finished_at)
        progress.finished_at = max(filter(None, moments), default=None)
    for sweep_id, span in spans.items():
        found[sweep_id].counts[TrialState.QUEUED] = max(span.trials - found[sweep_id].total, 0)
    return found


def state_of(progress: Progress, *, cancelled: bool, searching: bool = False) -> SweepState:
    """Return the state that a sweep's trials add up to.

    Args:
        progress: Of its trials.
        cancelled: Whether somebody asked it to stop.
        searching: Whether another round may follow; between two of them it is running.
    """
    if progress.good == progress.total and not searching:
        return SweepState.COMPLETED
    if cancelled:
        return SweepState.CANCELLED
    if progress.unfinished or searching:
        started = progress.counts[TrialState.RUNNING] or progress.fresh or not progress.unfinished
        return SweepState.RUNNING if started else SweepState.QUEUED
    return SweepState.FAILED if progress.counts[TrialState.FAILED] else SweepState.CANCELLED


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a person who waits would like to know."""

    eta_seconds: float | None
    messages: list[str]


def forecast(session: Session, *, sweep_id: int, progress: Progress, cancelled: bool) -> Forecast:
    """Return when the sweep will be done and what is in its way."""
    messages = _failures(session, sweep_id) if progress.counts[TrialState.FAILED] else []
    if not progress.unfinished:
        return Forecast(None, messages)
    running = progress.counts[TrialState.RUNNING]
    if cancelled:
        return Forecast(None, [*messages, f"stopping: {running} trials are still running"])
    live = workers.live_by_device(session)
    mine = _open_shards(session, sweep_id)
    devices = [device for _, device in mine]
    elsewhere = AGENTS in devices
    return Forecast(
        None if elsewhere else seconds_left(session, [shard_id for shard_id, _ in mine], live),
        [
            *(_agents(sweep_id, running) if elsewhere else obstacles(devices, live)),
            *_shard_messages(session, sweep_id),
            *messages,
        ],
    )


def _agents(sweep_id: int, running: int) -> list[str]:
    """Return what a sweep of cells waits for: nothing, once somebody has claimed one."""
    return [] if running else [f"waiting for agents: etascope agent {sweep_id} -- your program"]


def _open_shards(session: Session, sweep_id: int) -> Sequence[tuple[int, str]]:
    query = (
        select(ShardRow.id, ShardRow.device)
        .join(TrialRow, TrialRow.shard_id == ShardRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(UNFINISHED))
        .distinct()
    )
    return session.execute(query).all()


def _shard_messages(session: Session, sweep_id: int) -> list[str]:
    """Return what the sweep's open shards have to say."""
    query = (
        select(ShardRow.message)
        .join(TrialRow, TrialRow.shard_id == ShardRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(
            SweepTrialRow.sweep_id == sweep_id,
            TrialRow.state.in_(UNFINISHED),
            ShardRow.state.in_(OPEN),
            ShardRow.message.is_not(None),
        )
        .distinct()
        .limit(MOST_ERRORS)
    )
    return [_first_line(message) for message in session.scalars(query) if message]


def _failures(session: Session, sweep_id: int) -> list[str]:
    query = (
        select(TrialRow.error, func.count())
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state == TrialState.FAILED)
        .group_by(TrialRow.error)
        .order_by(func.count().desc())
        .limit(MOST_ERRORS)
    )
    return [
        f"{count} {'trial' if count == 1 else 'trials'} failed: {_first_line(error or '')}"
        for error, count in session.execute(query)
    ]


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def get(session: Session, *, sweep_id: int) -> SweepRead:
    """Return a sweep and how far it is."""
    found = progress_of(session, sweep_ids=[sweep_id])[sweep_id]
    return _to_read(session, row_of(session, sweep_id), found)


def page(
    session: Session, *, study_id: int, limit: int, cursor: str | None = None
) -> Page[SweepRead]:
    """Return a page of a study's sweeps, oldest first."""
    if session.get(StudyRow, study_id) is None:
        raise NotFound("study", study_id)
    after = read_cursor(cursor, int)[0] if cursor else 0
    query = select(SweepRow.id).where(SweepRow.study_id == study_id, SweepRow.id > after)
    ids = session.scalars(query.order_by(SweepRow.id).limit(limit + 1)).all()
    return Page(
        items=[get(session, sweep_id=sweep_id) for sweep_id in ids[:limit]],
        next_cursor=write_cursor(ids[limit - 1]) if len(ids) > limit else None,
    )


def is_cancelled(session: Session, *, sweep_id: int) -> bool:
    """Return whether somebody asked a sweep to stop."""
    return row_of(session, sweep_id).cancelled_at is not None


def is_searching(session: Session, *, sweep_id: int) -> bool:
    """Return whether another round of a search may follow."""
    return bool(row_of(session, sweep_id).searching)


def row_of(session: Session, sweep_id: int) -> SweepRow:
    """Return a sweep as it is now."""
    row = session.get(SweepRow, sweep_id, populate_existing=True)
    if row is None:
        raise NotFound("sweep", sweep_id)
    return row


def _to_read(session: Session, row: SweepRow, found: Progress) -> SweepRead:
    cancelled = row.cancelled_at is not None
    view = forecast(session, sweep_id=row.id, progress=found, cancelled=cancelled)
    missing, replays = _missing(session, row, found), _replays(session, row)
    words = "1 trial is" if replays == 1 else f"{replays} trials are"
    replayed = [f"{words} still to be replayed to be recorded"] if replays else []
    return SweepRead(
        id=row.id,
        study_id=row.study_id,
        state=state_of(found, cancelled=cancelled, searching=bool(row.searching)),
        spec=row.spec,
        progress=found.by_name(),
        total=row.total,
        reused=row.reused,
        eta_seconds=None if missing else view.eta_seconds,
        messages=[*(one.sentence for one in missing), *view.messages, *replayed],
        replays=replays,
        waiting_for=missing,
        note=row.note,
        created_at=row.created_at,
        finished_at=None if found.unfinished or row.searching else found.finished_at,
        cancelled=cancelled,
        engine_version=row.engine_version,
        search=None if row.round is None else read_search(session, row),
    )


def _replays(session: Session, row: SweepRow) -> int:
    """Return how many known trials are still to be trained again for their recordings."""
    if not row.spec.get("record") or row.cancelled_at is not None:
        return 0
    return len(errands.replays_of(session, sweep_ids=[row.id]))


def _missing(session: Session, row: SweepRow, found: Progress) -> list[MissingOfferRead]:
    """Return what a sweep waits for besides a free worker; only one with needs is asked about."""
    if not found.unfinished or row.cancelled_at is not None or not row.spec.get("needs"):
        return []
    return offers.missing_for(session, sweep_id=row.id)


@dataclass(slots=True)
class Position:
    """How far one listener has come.

    Attributes:
        at: When the newest trial it has heard of ended.
        trial_id: That trial.
        seen: Every trial it has heard of. By time alone one could be missed: a trial's time is
            taken before its transaction ends, so a later one may show up earlier.
        left: Trials that had ended when it last looked for them, and are still to be told.
    """

    at: datetime | None = None
    trial_id: int = 0
    seen: set[int] = field(default_factory=set)
    left: list[int] = field(default_factory=list)

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
        return self.sweep.state in ENDED_STATES and not running and not self.more

    def timed(self) -> Iterator[tuple[TrialEvent, datetime | None]]:
        """Return each trial with when it ended."""
        return zip(self.trials, self.ended_at, strict=True)


def resume(session: Session, *, sweep_id: int, position: Position) -> None:
    """Count as seen what had ended when the listener was cut off."""
    if position.at is None:
        return
    same = and_(TrialRow.finished_at == position.at, TrialRow.id <= position.trial_id)
    before = or_(TrialRow.finished_at < position.at, same)
    position.seen.update(session.scalars(_ended_trials(sweep_id).where(before)))


def news(session: Session, *, sweep_id: int, position: Position) -> News:
    """Return a sweep with the trials that ended since, and move the position past them."""
    sweep = get(session, sweep_id=sweep_id)
    ended = sum(sweep.progress.get(state.value, 0) for state in OUTCOMES)
    if not position.left and ended != len(position.seen):  # for each piece, it would take longest
        found = session.scalars(_ended_trials(sweep_id))
        position.left = [id_ for id_ in found if id_ not in position.seen]
    new, position.left = position.left[:MOST_NEWS], position.left[MOST_NEWS:]
    # What was begun again meanwhile is told when it has ended again.
    query = select(TrialRow).where(TrialRow.id.in_(new), TrialRow.state.in_(tuple(OUTCOMES)))
    rows = session.scalars(query.order_by(TrialRow.finished_at, TrialRow.id)).all() if new else []
    for row in rows:
        position.seen.add(row.id)
        position.move(row.id, row.finished_at)
    return News(
        sweep,
        [to_event(row) for row in rows],
        more=bool(position.left),
        ended_at=[row.finished_at for row in rows],
    )


def ended_ids(session: Session, *, sweep_id: int) -> set[int]:
    """Return every trial of a sweep that has ended by now."""
    return set(session.scalars(_ended_trials(sweep_id)))


def _ended_trials(sweep_id: int) -> Select[int]:
    return (
        select(TrialRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(tuple(OUTCOMES)))
        .order_by(TrialRow.finished_at, TrialRow.id)
    )
