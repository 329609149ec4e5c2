"""Workers: who has been heard of, and who still lives."""

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, insert_for, passed
from backend.models import ShardRow, ShardState, WorkerRow
from backend.schemas import WorkerRead
from backend.settings import get_settings

#: Silent workers are shown for so long, then forgotten.
REMEMBERED_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Worker:
    """A training process as it introduces itself."""

    name: str
    host: str
    pid: int
    device: str
    device_name: str = ""
    queues: tuple[str, ...] = ()
    threads: int = 1
    version: str = ""
    namespace: str = ""  # where `pid` means this process; see `local_namespace`
    versions: dict[str, str] = field(default_factory=dict)
    offers: tuple[str, ...] = ()  # keys of what it brings along; see `backend.services.offers`
    left_out: dict[str, str] = field(default_factory=dict)  # what it should bring, and why not

    def details(self) -> dict[str, Any]:
        """Return what is kept as JSON."""
        return {
            "queues": list(self.queues),
            "threads": self.threads,
            "version": self.version,
            "namespace": self.namespace,
            "versions": self.versions,
            "offers": list(self.offers),
            "left_out": self.left_out,
        }


def register(session: Session, *, worker: Worker) -> None:
    """Write the worker down, or write it down again after a restart."""
    values = {
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "device": worker.device,
        "device_name": worker.device_name[:200],
        "details": worker.details(),
        "shard_id": None,
        "trials_done": 0,
        "busy_seconds": 0.0,
        "started_at": clock(),
        "heartbeat_at": clock(),
        "stopping_at": None,
    }
    insert = insert_for(session, WorkerRow).values(values)
    fresh = {name: insert.excluded[name] for name in values if name != "name"}
    session.execute(insert.on_conflict_do_update(index_elements=["name"], set_=fresh))


def beat(session: Session, *, name: str, shard_id: int | None, stopping: bool = False) -> bool:
    """Say that the worker lives and what it does; False if it is not written down any more."""
    known = update(WorkerRow).where(WorkerRow.name == name)
    values: dict[str, Any] = {"heartbeat_at": clock(), "shard_id": shard_id}
    if stopping:
        values["stopping_at"] = func.coalesce(WorkerRow.stopping_at, clock())
    return changed_rows(session, known.values(values)) == 1


def credit(session: Session, *, name: str, trials: int, seconds: float) -> None:
    """Add finished trials to what the worker has done."""
    session.execute(
        update(WorkerRow)
        .where(WorkerRow.name == name)
        .values(
            trials_done=WorkerRow.trials_done + trials,
            busy_seconds=WorkerRow.busy_seconds + seconds,
        )
    )


def remove(session: Session, *, name: str) -> None:
    """Forget a worker that has stopped."""
    session.execute(delete(WorkerRow).where(WorkerRow.name == name))


def find_dead(session: Session) -> list[str]:
    """Return the workers whose process on this very machine is gone.

    This finds a killed worker within seconds, where its lease would take half a minute to end.
    """
    here = select(WorkerRow).where(WorkerRow.host == socket.gethostname())
    return [
        row.name
        for row in session.scalars(here)
        if row.details.get("namespace") == local_namespace() and not _runs(row.pid)
    ]


def leases(session: Session, *, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return which of the workers hold which shards."""
    held = select(ShardRow.worker, ShardRow.id).where(
        ShardRow.worker.in_(names), ShardRow.state == ShardState.RUNNING
    )
    return [(str(name), shard_id) for name, shard_id in session.execute(held)]


def local_namespace() -> str:
    """Return a name that two processes share if and only if they can see each other's ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return sys.platform if sys.platform == "darwin" else ""


def _runs(pid: int | None) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def forget_silent(session: Session) -> int:
    """Forget workers that have been silent for a day."""
    old = WorkerRow.heartbeat_at < clock(-REMEMBERED_SECONDS)
    return changed_rows(session, delete(WorkerRow).where(old))


def live_by_device(session: Session) -> dict[str, int]:
    """Return how many live workers there are on each device."""
    query = (
        select(WorkerRow.device, func.count())
        .where(_alive(), WorkerRow.stopping_at.is_(None))
        .group_by(WorkerRow.device)
    )
    return dict(session.execute(query).all())


@dataclass(frozen=True, slots=True)
class LiveOffers:
    """What living workers bring along.

    Attributes:
        by_worker: The device and the keys of each.
        hosts: The machines that have a key.
        left_out: By name what a worker should have brought, in a sentence that says why not.
    """

    by_worker: tuple[tuple[str, frozenset[str]], ...]
    hosts: dict[str, list[str]]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """Every key that somebody has."""
        return set(self.hosts)

    def devices(self, needs: str) -> set[str]:
        """Return the devices of workers that have all that a shard needs."""
        wanted = set(needs.split(","))
        return {device for device, keys in self.by_worker if wanted <= keys}

    def met(self, needs: str) -> bool:
        """Return whether some worker has all that a shard needs."""
        return bool(self.devices(needs))


def live_offers(session: Session) -> LiveOffers:
    """Return what living workers bring along."""
    columns = (WorkerRow.device, WorkerRow.host, WorkerRow.details)
    query = select(*columns).where(_alive(), WorkerRow.stopping_at.is_(None))
    by_worker: list[tuple[str, frozenset[str]]] = []
    hosts: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    for device, host, details in session.execute(query.order_by(WorkerRow.name)):
        keys = frozenset(details.get("offers", ()))
        by_worker.append((device, keys))
        for key in keys:
            hosts.setdefault(key, []).append(host)
        for name, why in details.get("left_out", {}).items():
            left_out[name] = f"on {host} {why}"
    return LiveOffers(tuple(by_worker), hosts, left_out)


def offers_of(session: Session, *, name: str) -> list[str]:
    """Return the keys of what a worker brings along."""
    details = session.scalar(select(WorkerRow.details).where(WorkerRow.name == name))
    return list((details or {}).get("offers", ()))


def list_all(session: Session) -> list[WorkerRead]:
    """Return every worker heard of within a day, the living first."""
    query = (
        select(WorkerRow, ShardRow.trials, _alive().label("alive"))
        .outerjoin(ShardRow, ShardRow.id == WorkerRow.shard_id)
        .order_by(_alive().desc(), WorkerRow.name)
    )
    return [_to_read(row, trials, bool(alive)) for row, trials, alive in session.execute(query)]


def _alive() -> ColumnElement[bool]:
    return ~passed(WorkerRow.heartbeat_at, ago=get_settings().lease_seconds)


def _to_read(row: WorkerRow, trials: int | None, alive: bool) -> WorkerRead:
    details = row.details
    minutes = row.busy_seconds / 60
    return WorkerRead(
        name=row.name,
        host=row.host,
        device=row.device,
        device_name=row.device_name,
        queues=details.get("queues", []),
        alive=alive,
        state=_state(row, alive),
        current_shard=row.shard_id if alive else None,
        trials=trials if alive else None,
        started_at=row.started_at,
        last_heartbeat=row.heartbeat_at,
        trials_done=row.trials_done,
        trials_per_minute=row.trials_done / minutes if minutes > 0 else None,
        version=details.get("version", ""),
    )


def _state(row: WorkerRow, alive: bool) -> Literal["idle", "busy", "stopping", "silent"]:
    if not alive:
        return "silent"
    if row.stopping_at is not None:
        return "stopping"
    return "busy" if row.shard_id is not None else "idle"
