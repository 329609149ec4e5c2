"""What a step costs, measured: asked for, leased to a worker, and shown in scorecards.

A row is a race of methods on one network. As with shards the row is the truth and a message a hint:
it may be lost or come twice. A race is short, so a lease is not renewed; it is simply long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.errors import Conflict
from backend.models import ShardState, SweepRow, SweepTrialRow, TimingRow, TrialRow
from backend.schemas import TimingRead, TimingsRead
from backend.services import analysis
from backend.services.analysis import Key
from backend.services.shards import LOST_SECONDS, queue_for
from backend.services.workers import live_by_device
from backend.settings import get_settings
from ib_core.sweep import ENGINE_VERSION, TrialSpec, read_options

BASELINE = "eb"
#: Longer than any race; a worker that is known to have died is not waited for.
LEASE_SECONDS = 900.0
#: Announcements sent in one go.
MOST_SENT = 50
OPEN = (ShardState.QUEUED, ShardState.RUNNING)
#: The rate of the steps that are timed: what a step costs does not depend on it.
SMALL_RATE = 1e-3
#: Settings of a network, and the methods that race on it.
Network = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TimingClaim:
    """A worker's lease on a race.

    Attributes:
        timing_id: Which.
        lease: Tells it from every other claim of the same race.
        device: As asked for.
        trials: What takes steps, by the names under which results are stored; EB among them.
    """

    timing_id: int
    lease: int
    device: str
    trials: dict[str, TrialSpec]


def request(
    session: Session, *, study_id: int, device: str, owner_id: int | None
) -> tuple[TimingsRead, list[int]]:
    """Ask for the step costs of every network of a study; return them and what to announce.

    A race that already waits, or runs, for the same network, device and methods is not asked for
    twice.

    Raises:
        Conflict: The study holds nothing that could be timed here.
    """
    networks: dict[str, Network] = {}
    for key in _keys(session, study_id):
        alone: Network = (analysis.network_of(key), {BASELINE: {}})
        _, methods = networks.setdefault(analysis.network_hash(key), alone)
        methods[analysis.name_of(key)] = analysis.method_of(key)
    if not networks:
        raise Conflict(
            "This study has no trials of this engine, so there is no network to time.",
            hint="Run a sweep in it first.",
        )
    new = []
    for network_hash, (network, methods) in networks.items():
        if not _asked_for(session, network_hash, device, methods):
            row = TimingRow(
                state=ShardState.QUEUED,
                device=device,
                network_hash=network_hash,
                network=network,
                methods=methods,
                owner_id=owner_id,
            )
            session.add(row)
            session.flush()
            new.append(row.id)
    return of_study(session, study_id=study_id), new


def _asked_for(
    session: Session, network_hash: str, device: str, methods: Mapping[str, Any]
) -> bool:
    waiting = select(TimingRow.methods).where(
        TimingRow.network_hash == network_hash,
        TimingRow.device == device,
        TimingRow.state.in_(OPEN),
    )
    return any(methods.keys() <= known.keys() for known in session.scalars(waiting))


def _keys(session: Session, study_id: int) -> list[Key]:
    """Return the study's series that this engine trains; EB first within a network."""
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    query = select(*analysis.KEY_COLUMNS).where(
        TrialRow.id.in_(members),
        TrialRow.imported.is_(False),
        TrialRow.engine_version == ENGINE_VERSION,
    )
    keys = {analysis.key_of(study_id, tuple(row)) for row in session.execute(query.distinct())}
    return sorted(keys, key=analysis.series_order)


def of_study(session: Session, *, study_id: int) -> TimingsRead:
    """Return the newest race of every network of a study."""
    hashes = {analysis.network_hash(key) for key in _keys(session, study_id)}
    newest = (
        select(func.max(TimingRow.id))
        .where(TimingRow.network_hash.in_(hashes))
        .group_by(TimingRow.network_hash)
    )
    rows = session.scalars(select(TimingRow).where(TimingRow.id.in_(newest)).order_by(TimingRow.id))
    return TimingsRead(
        study_id=study_id,
        items=[
            TimingRead(
                id=row.id,
                state=row.state.value,
                task=row.network["task"],
                methods=list(dict.fromkeys(name.partition(" ")[0] for name in row.methods)),
                device=row.device,
                measured_on=row.measured_on,
                error=row.error,
                created_at=row.created_at,
                finished_at=row.finished_at,
            )
            for row in rows
        ],
    )


def claim(session: Session, *, timing_id: int, worker: str) -> TimingClaim | None:
    """Lease a waiting race to this worker; None if there is nothing to do for it."""
    won = session.execute(
        update(TimingRow)
        .where(TimingRow.id == timing_id, TimingRow.state == ShardState.QUEUED)
        .values(
            state=ShardState.RUNNING,
            worker=worker,
            lease=TimingRow.lease + 1,
            attempts=TimingRow.attempts + 1,
            lease_until=clock(LEASE_SECONDS),
        )
        .returning(TimingRow.lease, TimingRow.device)
    ).one_or_none()
    if won is None:
        return None
    # Not by RETURNING: there SQLite gives 3 for a stored 3.0.
    network, methods = session.execute(
        select(TimingRow.network, TimingRow.methods).where(TimingRow.id == timing_id)
    ).one()
    trials = {name: _trial(network, name, own) for name, own in methods.items()}
    return TimingClaim(timing_id, won.lease, won.device, trials)


def _trial(network: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> TrialSpec:
    options = {**network["options"], **{k: v for k, v in own.items() if k != "batch_rule"}}
    return TrialSpec(
        method=name.partition(" ")[0],
        batch_rule=own.get("batch_rule"),
        lr=SMALL_RATE,
        seed=1,
        epochs=1,
        **{k: v for k, v in network.items() if k != "options"},
        options=read_options(options),
    )


def finish(
    session: Session, *, claim: TimingClaim, results: Mapping[str, Any], measured_on: str
) -> bool:
    """Store what was measured; False if the lease was lost."""
    ended = {
        "state": ShardState.DONE,
        "results": dict(results),
        "measured_on": measured_on[:300],
        "error": None,
        "finished_at": clock(),
    }
    return changed_rows(session, update(TimingRow).where(*_held(claim)).values(ended)) == 1


def fail(session: Session, *, claim: TimingClaim, error: str) -> bool:
    """Give the race back because it broke, for good after a few attempts."""
    return bool(_give_back(session, error, *_held(claim)))


def _held(claim: TimingClaim) -> tuple[ColumnElement[bool], ...]:
    return (
        TimingRow.id == claim.timing_id,
        TimingRow.state == ShardState.RUNNING,
        TimingRow.lease == claim.lease,
    )


def _give_back(session: Session, error: str, *which: ColumnElement[bool]) -> int:
    running = (TimingRow.state == ShardState.RUNNING, *which)
    spent = TimingRow.attempts >= get_settings().max_attempts
    free = {"worker": None, "lease_until": None, "sent_at": None}
    failed = {"state": ShardState.FAILED, "error": error, "finished_at": clock(), **free}
    again = {"state": ShardState.QUEUED, **free}
    ended = changed_rows(session, update(TimingRow).where(*running, spent).values(failed))
    return ended + changed_rows(session, update(TimingRow).where(*running).values(again))


def abandon(session: Session, *, workers: Sequence[str]) -> int:
    """Take races back from training processes that have died; return how many."""
    error = "The worker died while it measured this."
    return _give_back(session, error, TimingRow.worker.in_(workers))


def pending(session: Session) -> bool:
    """Return whether a reaper has anything to do here, found without a write."""
    unheard = or_(TimingRow.sent_at.is_(None), TimingRow.sent_at < clock(-LOST_SECONDS))
    waiting = and_(TimingRow.state == ShardState.QUEUED, unheard)
    expired = and_(TimingRow.state == ShardState.RUNNING, TimingRow.lease_until < clock())
    return bool(session.scalar(select(exists().where(or_(waiting, expired)))))


def due(session: Session, *, depths: Mapping[str, int] | None = None) -> list[tuple[int, str]]:
    """Return the races to announce now with their queues, and note that they have been.

    Taken back first: races of workers that have been silent for too long.

    Args:
        session: A session that may write.
        depths: How many messages wait in each queue: what is in none of them was lost.
    """
    error = "The worker stopped answering while it measured this."
    _give_back(session, error, TimingRow.lease_until < clock())
    gpu_lives = bool(live_by_device(session).get("cuda"))
    query = (
        select(TimingRow.id, TimingRow.device, TimingRow.sent_at)
        .where(TimingRow.state == ShardState.QUEUED, _unheard(depths or {}))
        .order_by(TimingRow.id)
        .limit(MOST_SENT)
        .with_for_update(skip_locked=True)
    )
    found = [(id, queue_for(device, gpu_lives)) for id, device, _ in session.execute(query)]
    sent = update(TimingRow).where(TimingRow.id.in_([id for id, _ in found]))
    session.execute(sent.values(sent_at=clock()))
    return found


def _unheard(depths: Mapping[str, int]) -> ColumnElement[bool]:
    never = TimingRow.sent_at.is_(None)
    old = TimingRow.sent_at < clock(-get_settings().resend_seconds)
    if depths and not any(depths.values()):
        return or_(never, TimingRow.sent_at < clock(-LOST_SECONDS))
    return or_(never, old)


def mark_unsent(session: Session, *, timing_ids: Sequence[int]) -> None:
    """Take back a note: the broker did not take the message."""
    unclaimed = (TimingRow.id.in_(list(timing_ids)), TimingRow.state == ShardState.QUEUED)
    session.execute(update(TimingRow).where(*unclaimed).values(sent_at=None))
