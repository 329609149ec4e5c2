"""When a sweep will be done, and what it is waiting for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from backend.models import ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.schemas import TrialState
from backend.services import workers
from backend.services.progress import UNFINISHED, Progress

OPEN = (ShardState.QUEUED, ShardState.RUNNING)
#: Forecasts are corrected by how long so many shards really took.
LOOK_BACK = 20
#: Of shards shorter than this, claiming and storing take longer than training: they tell nothing.
TELLING_SECONDS = 0.5
MOST_ERRORS = 3

NO_WORKER = "no worker is alive: start one with etascope worker"
NO_GPU = "waiting for a gpu worker"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a person who waits would like to know."""

    eta_seconds: float | None
    messages: list[str]


def of_sweep(session: Session, *, sweep_id: int, progress: Progress, cancelled: bool) -> Outlook:
    """Return when the sweep will be done and what is in its way."""
    messages = _failures(session, sweep_id) if progress.counts[TrialState.FAILED] else []
    if not progress.unfinished:
        return Outlook(None, messages)
    running = progress.counts[TrialState.RUNNING]
    if cancelled:
        return Outlook(None, [*messages, f"stopping: {running} trials are still running"])
    live = workers.live_by_device(session)
    mine = _open_shards(session, sweep_id)
    return Outlook(
        _eta(session, [shard_id for shard_id, _ in mine], live),
        [*_obstacles(mine, live), *_notes(session, sweep_id), *messages],
    )


def _open_shards(session: Session, sweep_id: int) -> Sequence[tuple[int, str]]:
    query = (
        select(ShardRow.id, ShardRow.device)
        .join(TrialRow, TrialRow.shard_id == ShardRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(UNFINISHED))
        .distinct()
    )
    return session.execute(query).all()


def _eta(session: Session, shard_ids: Sequence[int], live: dict[str, int]) -> float | None:
    """Return the work up to the sweep's last shard, other people's included, per live worker."""
    if not shard_ids or not live:
        return None
    needs_gpu = ShardRow.device == "cuda"
    left = func.sum(ShardRow.seconds * (1 - ShardRow.progress))
    query = (
        select(_sum_if(needs_gpu), left)
        .select_from(ShardRow)
        .where(ShardRow.state.in_(OPEN), ShardRow.id <= max(shard_ids))
    )
    on_gpu, everything = session.execute(query).one()
    if on_gpu and not live.get("cuda"):
        return None
    longest = max((on_gpu or 0) / max(live.get("cuda", 0), 1), (everything or 0) / _all(live))
    return float(longest) * pace(session)


def _sum_if(condition: ColumnElement[bool]) -> ColumnElement[float]:
    left = ShardRow.seconds * (1 - ShardRow.progress)
    return func.sum(case((condition, left), else_=0.0))


def _all(live: dict[str, int]) -> int:
    return sum(live.values())


def pace(session: Session) -> float:
    """Return how much longer shards lately took than forecast; 1 before there are any.

    A machine's speed is measured once, perhaps while it was starting; its work tells better.
    """
    query = (
        select(ShardRow.seconds, ShardRow.started_at, ShardRow.finished_at)
        .where(
            ShardRow.state == ShardState.DONE,
            ShardRow.started_at.is_not(None),
            ShardRow.seconds >= TELLING_SECONDS,
        )
        .order_by(ShardRow.id.desc())
        .limit(LOOK_BACK)
    )
    forecast = taken = 0.0
    for seconds, started_at, finished_at in session.execute(query):
        if started_at and finished_at:
            forecast += seconds
            taken += max(0.0, (finished_at - started_at).total_seconds())
    return taken / forecast if forecast > 0 and taken > 0 else 1.0


def obstacles(devices: Sequence[str], live: dict[str, int]) -> list[str]:
    """Return why work for these devices would not start at once."""
    if not live:
        return [NO_WORKER]
    return [NO_GPU] if "cuda" in devices and not live.get("cuda") else []


def _obstacles(shards: Sequence[tuple[int, str]], live: dict[str, int]) -> list[str]:
    return obstacles([device for _, device in shards], live)


def _notes(session: Session, sweep_id: int) -> list[str]:
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
