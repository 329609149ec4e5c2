"""Counts of everything, for machines that watch."""

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import ShardRow, ShardState, TrialRow
from backend.schemas import TrialState
from backend.services import dispatch, workers

#: Shards whose time makes the mean.
LOOK_BACK = 100


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
        waiting={name: float(n) for name, n in dispatch.read(session).by_queue.items()},
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
        .limit(LOOK_BACK)
    )
    taken: dict[str, list[float]] = {}
    for device, started, finished in session.execute(query):
        if started and finished:
            taken.setdefault(device, []).append((finished - started).total_seconds())
    return {device: sum(seconds) / len(seconds) for device, seconds in taken.items()}
