"""What waits: shards to announce, leases that ran out, how much there is and how long it takes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select, update
from sqlalchemy.orm import Session

from backend.db import clock, database_time, passed
from backend.models import AGENTS, RecordingRow, ShardRow, ShardState, TimingRow, TrialRow
from backend.schemas import QueueRead, TrialState
from backend.services import workers
from backend.services.shards.planning import is_ready, try_again
from backend.services.trials import UNFINISHED
from backend.settings import get_settings

CPU, GPU = "cpu", "gpu"
QUEUES = (CPU, GPU)
#: The database is the queue; the broker holds no more announcements than this at a time.
WINDOW = 200
#: A message that was sent so long ago and is in no queue has been lost.
LOST_SECONDS = 5.0
#: Leases looked at in one go, so that a pass stays short.
MOST_EXPIRED = 100
OPEN = (ShardState.QUEUED, ShardState.RUNNING)
#: Forecasts are corrected by how long so many shards really took.
MOST_TELLING = 20
#: Of shards shorter than this, claiming and storing take longer than training: they tell nothing.
TELLING_SECONDS = 0.5
NO_WORKER = "no worker is alive: start one with etascope worker"
NO_GPU = "waiting for a gpu worker"
NO_AGENT = "its cells wait for agents: etascope agent SWEEP -- your program"
#: What workers train; cells are claimed, never announced.
OURS = ShardRow.device != AGENTS
#: Shards whose time makes the mean.
MOST_AVERAGED = 100


@dataclass(frozen=True, slots=True)
class Announcement:
    """A shard, and the queue on which workers should hear of it."""

    shard_id: int
    queue: str


@dataclass(frozen=True, slots=True)
class Pending:
    """Whether there is anything for a reaper to do, found without a write."""

    waiting: bool
    expired: bool
    queues: tuple[str, ...] = ()  # besides `QUEUES`, where shards with needs were announced


def pending(session: Session) -> Pending:
    """Return whether shards may have to be announced, and whether leases have run out."""
    unheard = or_(ShardRow.sent_at.is_(None), passed(ShardRow.sent_at, ago=LOST_SECONDS))
    # What nobody who lives can train is no reason to look again every few seconds.
    servable_now = servable(session, ShardRow, workers.live_offers(session))
    waiting = exists().where(ShardRow.state == ShardState.QUEUED, OURS, unheard, servable_now)
    expired = exists().where(ShardRow.state == ShardState.RUNNING, _ran_out())
    found_waiting, found_expired = session.execute(select(waiting, expired)).one()
    special = select(ShardRow.queue).where(
        ShardRow.state == ShardState.QUEUED,
        ShardRow.needs.is_not(None),
        ShardRow.queue.is_not(None),
    )
    queues = tuple(sorted(str(queue) for queue in session.scalars(special.distinct())))
    return Pending(bool(found_waiting), bool(found_expired), queues)


def _ran_out() -> ColumnElement[bool]:
    """Return the condition that a lease has ended, or is longer than any lease can be."""
    return passed(ShardRow.lease_until, longest=2 * get_settings().lease_seconds)


def due(session: Session, *, depths: Mapping[str, int] | None = None) -> list[Announcement]:
    """Return the shards to announce now, and note that they have been.

    These are shards never sent, sent to a queue that is empty although nobody has claimed them,
    or sent long ago to a queue that holds fewer messages than it should.

    Args:
        session: A session that may write.
        depths: How many messages wait in each of the broker's queues, if known.
    """
    gpu_lives = bool(workers.live_by_device(session).get("cuda"))
    live = workers.live_offers(session)
    unheard = _unheard(depths or {}, announced(session), gpu_lives)
    can = (*_waiting(), servable(session, ShardRow, live))
    heard = select(func.count()).select_from(ShardRow).where(*can, ~unheard)
    room = WINDOW - (session.scalar(heard) or 0)
    if room <= 0:
        return []
    query = (
        select(ShardRow.id, ShardRow.device, ShardRow.needs)
        .where(*can, unheard)
        .order_by(ShardRow.id)
        .limit(room)
        .with_for_update(skip_locked=True)
    )
    found = [
        Announcement(id, queue_of(device, needs, gpu_lives, live))
        for id, device, needs in session.execute(query)
    ]
    mark_sent(session, announcements=found)
    return found


def servable(
    session: Session,
    table: type[ShardRow] | type[TimingRow] | type[RecordingRow],
    live: workers.LiveOffers,
) -> ColumnElement[bool]:
    """Return the condition that some living worker has what waiting rows of a table need.

    Asked in queries: what nobody can do would fill their answers, and hide what stands behind it.
    """
    waiting = (table.state == ShardState.QUEUED, table.needs.is_not(None))
    asked = session.scalars(select(table.needs).where(*waiting).distinct())
    met = [needs for needs in asked if needs and live.met(needs)]
    return or_(table.needs.is_(None), table.needs == "", table.needs.in_(met))


def special_queues(keys: Iterable[str], queues: Iterable[str]) -> list[str]:
    """Return the queues on which a worker hears of shards that need what it brings along."""
    return [f"{queue}-{key}" for key in keys for queue in queues]


def queue_of(device: str, needs: str | None, gpu_lives: bool, live: workers.LiveOffers) -> str:
    """Return where to announce a shard: one that needs an offer on a queue of that offer."""
    if not needs:
        return queue_for(device, gpu_lives)
    queue = queue_for(device, "cuda" in live.devices(needs))
    return special_queues([needs.partition(",")[0]], [queue])[0]


def _waiting() -> tuple[ColumnElement[bool], ...]:
    return (ShardRow.state == ShardState.QUEUED, OURS, is_ready())


def announced(session: Session) -> dict[str, int]:
    """Return how many waiting shards have been announced on each queue."""
    query = select(ShardRow.queue, func.count()).where(*_waiting(), ShardRow.sent_at.is_not(None))
    return {str(queue): count for queue, count in session.execute(query.group_by(ShardRow.queue))}


def _unheard(
    depths: Mapping[str, int], sent: Mapping[str, int], gpu_lives: bool
) -> ColumnElement[bool]:
    queues = {*QUEUES, *depths}
    empty = [queue for queue in queues if depths.get(queue) == 0]
    # As long as every announcement may still be in the queue, repeating them only makes it longer.
    short = [queue for queue in queues if depths.get(queue, 0) < sent.get(queue, 0)]
    old = passed(ShardRow.sent_at, ago=get_settings().resend_seconds)
    cases = [
        ShardRow.sent_at.is_(None),
        and_(ShardRow.queue.in_(empty), passed(ShardRow.sent_at, ago=LOST_SECONDS)),
        and_(ShardRow.queue.in_(short), old),
    ]
    if not gpu_lives:
        cases.append(and_(ShardRow.device == "auto", ShardRow.queue == GPU))
    return func.coalesce(or_(*cases), False)


def announce(session: Session, *, shard_ids: Sequence[int]) -> list[Announcement]:
    """Return the first of these new shards for sending at once; `due` brings the rest later."""
    gpu_lives = bool(workers.live_by_device(session).get("cuda"))
    live = workers.live_offers(session)
    query = (
        select(ShardRow.id, ShardRow.device, ShardRow.needs)
        .where(ShardRow.id.in_(list(shard_ids)[:WINDOW]), ShardRow.sent_at.is_(None))
        .order_by(ShardRow.id)
    )
    found = [
        Announcement(id, queue_of(device, needs, gpu_lives, live))
        for id, device, needs in session.execute(query)
        if needs is None or live.met(needs)
    ]
    mark_sent(session, announcements=found)
    return found


def mark_sent(session: Session, *, announcements: Sequence[Announcement]) -> None:
    """Remember where shards have been announced."""
    for queue in sorted({item.queue for item in announcements}):
        ids = [item.shard_id for item in announcements if item.queue == queue]
        if ids:
            sent = update(ShardRow).where(ShardRow.id.in_(ids))
            session.execute(sent.values(queue=queue, sent_at=clock()))


def mark_unsent(session: Session, *, shard_ids: Sequence[int]) -> None:
    """Take back a note: the broker did not take the message."""
    unclaimed = (ShardRow.id.in_(list(shard_ids)), ShardRow.state == ShardState.QUEUED)
    session.execute(update(ShardRow).where(*unclaimed).values(sent_at=None, queue=None))


def expire(session: Session) -> int:
    """Take shards back from workers that have been silent for too long; return how many."""
    query = (
        select(ShardRow.id, ShardRow.worker, ShardRow.attempts)
        .where(ShardRow.state == ShardState.RUNNING, _ran_out())
        .order_by(ShardRow.lease_until)
        .limit(MOST_EXPIRED)
        .with_for_update(skip_locked=True)
    )
    lost = session.execute(query).all()
    for shard_id, worker, attempts in lost:
        error = f"Worker {worker} stopped answering while it trained this."
        try_again(session, shard_id=shard_id, attempts=attempts, error=error)
    return len(lost)


def queue_for(device: str, gpu_lives: bool) -> str:
    """Return the queue that a shard's device means at the moment."""
    return GPU if device == "cuda" or (device == "auto" and gpu_lives) else CPU


def queue_state(session: Session) -> QueueRead:
    """Return how much work waits and how much is being done."""
    shards: dict[ShardState, int] = dict(
        session.execute(
            select(ShardRow.state, func.count())
            .where(ShardRow.state.in_((ShardState.QUEUED, ShardState.RUNNING)), OURS)
            .group_by(ShardRow.state)
        ).all()
    )
    trials: dict[TrialState, int] = dict(
        session.execute(
            select(TrialRow.state, func.count())
            .where(TrialRow.state.in_(UNFINISHED))
            .group_by(TrialRow.state)
        ).all()
    )
    gpu_lives = bool(workers.live_by_device(session).get("cuda"))
    by_queue = dict.fromkeys(QUEUES, 0)
    waiting = select(ShardRow.device, func.count()).where(ShardRow.state == ShardState.QUEUED, OURS)
    for device, count in session.execute(waiting.group_by(ShardRow.device)):
        by_queue[queue_for(device, gpu_lives)] += count
    return QueueRead(
        depth=shards.get(ShardState.QUEUED, 0),
        running=shards.get(ShardState.RUNNING, 0),
        trials_queued=trials.get(TrialState.QUEUED, 0),
        trials_running=trials.get(TrialState.RUNNING, 0),
        by_queue=by_queue,
        oldest_seconds=_oldest(session),
    )


def _oldest(session: Session) -> float | None:
    first = select(func.min(ShardRow.created_at, type_=ShardRow.created_at.type))
    created_at = session.scalar(first.where(ShardRow.state == ShardState.QUEUED, OURS))
    if created_at is None:
        return None
    return max(0.0, (database_time(session) - created_at).total_seconds())


def seconds_left(session: Session, shard_ids: Sequence[int], live: dict[str, int]) -> float | None:
    """Return the work up to the sweep's last shard, other people's included, per live worker."""
    if not shard_ids or not live:
        return None
    needs_gpu = ShardRow.device == "cuda"
    left = func.sum(ShardRow.seconds * (1 - ShardRow.progress))
    query = (
        select(_sum_if(needs_gpu), left)
        .select_from(ShardRow)
        .where(ShardRow.state.in_(OPEN), ShardRow.id <= max(shard_ids))
        # What waits for somebody's worker keeps nobody else waiting.
        .where(or_(ShardRow.needs.is_(None), ShardRow.id.in_(shard_ids)))
    )
    on_gpu, everything = session.execute(query).one()
    if on_gpu and not live.get("cuda"):
        return None
    longest = max((on_gpu or 0) / max(live.get("cuda", 0), 1), (everything or 0) / _all(live))
    return float(longest) * slowdown(session)


def _sum_if(condition: ColumnElement[bool]) -> ColumnElement[float]:
    left = ShardRow.seconds * (1 - ShardRow.progress)
    return func.sum(case((condition, left), else_=0.0))


def _all(live: dict[str, int]) -> int:
    return sum(live.values())


def slowdown(session: Session) -> float:
    """Return how much longer shards lately took than forecast; 1 before there are any.

    A machine's speed is measured once, perhaps while it was starting; its work tells better.
    """
    query = (
        select(ShardRow.seconds, ShardRow.started_at, ShardRow.finished_at)
        .where(
            ShardRow.state == ShardState.DONE,
            ShardRow.started_at.is_not(None),
            ShardRow.seconds >= TELLING_SECONDS,  # which cells are not: nothing is known of them
        )
        .order_by(ShardRow.id.desc())
        .limit(MOST_TELLING)
    )
    forecast = taken = 0.0
    for seconds, started_at, finished_at in session.execute(query):
        if started_at and finished_at:
            forecast += seconds
            taken += max(0.0, (finished_at - started_at).total_seconds())
    return taken / forecast if forecast > 0 and taken > 0 else 1.0


def obstacles(devices: Sequence[str], live: dict[str, int]) -> list[str]:
    """Return why work for these devices would not start at once."""
    if AGENTS in devices:
        return [NO_AGENT]
    if not live:
        return [NO_WORKER]
    return [NO_GPU] if "cuda" in devices and not live.get("cuda") else []


@dataclass(slots=True)
class Counts:
    """What a scrape shows; all by name."""

    waiting: dict[str, float] = field(default_factory=dict)
    shards: dict[str, float] = field(default_factory=dict)
    trials: dict[str, float] = field(default_factory=dict)
    shard_seconds: dict[str, float] = field(default_factory=dict)
    workers: dict[str, float] = field(default_factory=dict)
    heartbeats: dict[str, float] = field(default_factory=dict)


def count(session: Session) -> Counts:
    """Return the present counts; a state that no row has is 0, not absent."""
    states = select(TrialRow.state, func.count()).group_by(TrialRow.state)
    trials = dict.fromkeys((state.value for state in TrialState), 0.0)
    trials |= {state.value: float(n) for state, n in session.execute(states)}
    states_of_shards = select(ShardRow.state, func.count()).group_by(ShardRow.state)
    shards = dict.fromkeys((state.value for state in ShardState), 0.0)
    shards |= {state.value: float(n) for state, n in session.execute(states_of_shards)}
    known = workers.list_all(session)
    return Counts(
        waiting={name: float(n) for name, n in queue_state(session).by_queue.items()},
        shards=shards,
        trials=trials,
        shard_seconds=_shard_seconds(session),
        workers={state: float(n) for state, n in Counter(one.state for one in known).items()},
        heartbeats={one.name: one.last_heartbeat.timestamp() for one in known},
    )


def _shard_seconds(session: Session) -> dict[str, float]:
    query = (
        select(ShardRow.device, ShardRow.started_at, ShardRow.finished_at)
        .where(ShardRow.state == ShardState.DONE, ShardRow.started_at.is_not(None))
        .order_by(ShardRow.id.desc())
        .limit(MOST_AVERAGED)
    )
    taken: dict[str, list[float]] = {}
    for device, started, finished in session.execute(query):
        if started and finished:
            taken.setdefault(device, []).append((finished - started).total_seconds())
    return {device: sum(seconds) / len(seconds) for device, seconds in taken.items()}
