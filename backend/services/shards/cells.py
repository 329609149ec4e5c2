"""Cells: shards of one trial each that somebody's program claims, trains and reports on.

Leases, attempts and the reaper are the workers' own. What differs is trust: what a program reports
cannot be computed again from a trial's address, so only who holds the lease is believed.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from sqlalchemy import case, delete, insert, select, update
from sqlalchemy.orm import Session

from backend.db import database_time
from backend.errors import Conflict, InvalidInput, NotFound, TooLarge
from backend.models import AGENTS, CurveRow, ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.schemas import CellAnswer, CellPoint, CellRead, CellReport, CellResult, TrialState
from backend.services.shards.leases import Claim, claim, drop_unwanted, fail, finish, heartbeat
from backend.services.shards.leases import release as give_back
from backend.services.shards.planning import WAITING, is_ready
from backend.services.trials import (
    COLUMNS,
    OUTCOMES,
    add_points,
    finite,
    insert_or_replace_curve,
    readable,
    unpack,
)
from backend.settings import get_settings
from ib_core.errors import InvalidSpec
from ib_core.sweep import Search, count_seeds, explodes_above, log_grid

#: The client thins what it logs long before; a program that does not is told to.
MOST_POINTS = 10_000
#: Cells looked at for one claim: so many others may be claimed at the same moment, or wait for
#: their next attempt.
MOST_TRIED = 100
LONGEST_METHOD = 32
LOSSES = COLUMNS[2:]


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A grid of cells: free names, and settings that only its program understands."""

    task: str
    methods: tuple[str, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    clips: tuple[float | None, ...] = (None,)
    epochs: int = 1
    batch_size: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    search: Search | None = None  # then the rates are those of its first round

    @property
    def size(self) -> int:
        """Number of cells, of a search in its first round."""
        return len(self.methods) * len(self.learning_rates) * len(self.seeds) * len(self.clips)

    def as_spec(self) -> dict[str, Any]:
        """Return what is stored as the sweep's grid; asking for it again makes the same one."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        del plain["search"]
        searched = {} if self.search is None else {"search": self.search.as_dict()}
        return {**plain, **searched, "where": AGENTS}

    def rows(self, sweep_id: int) -> list[dict[str, Any]]:
        """Return the cells as rows of trials.

        Their addresses hold the sweep: another sweep's program may be another one, so that cells
        are shared with nobody.
        """
        grid = product(self.methods, self.clips, self.learning_rates, self.seeds)
        spec = self.as_spec()
        return [cell_row(spec, sweep_id, *one) for one in grid]


def cell_row(
    spec: Mapping[str, Any], sweep_id: int, method: str, clip: float | None, lr: float, seed: int
) -> dict[str, Any]:
    """Return a cell of a stored sweep as a row of trials."""
    return {
        **columns_of(spec["task"], method, lr, seed, spec["settings"]),
        "clip": clip,
        "epochs": spec["epochs"],
        "batch_size": spec["batch_size"],
        "fingerprint": address(AGENTS, sweep_id, method, clip, lr, seed),
    }


def columns_of(
    task: str, method: str, lr: float, seed: int, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns that every trial of a program elsewhere has."""
    return {
        "task": task,
        "profile": "",
        "method": method,
        "batch_rule": None,
        "activation": None,
        "lr": lr,
        "seed": seed,
        "mu": 0.0,
        "options": dict(settings),
        "state": TrialState.QUEUED,
    }


def address(*parts: Any) -> str:
    """Return an address that no trial of a worker can have."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_grid(body: Mapping[str, Any]) -> CellGrid:
    """Return the cells a body in canonical form asks for.

    Raises:
        InvalidSpec: With one sentence that names the setting.
    """
    _check_taken(body)
    rates, seeds = body["learning_rates"], body.get("seeds", 3)
    search = rates if isinstance(rates, Mapping) and "find" in rates else None
    if isinstance(rates, Mapping):
        rates = () if search else log_grid(rates["from"], rates["to"], rates["count"])
    grid = CellGrid(
        task=_word(body["task"], "task", 100),
        methods=_once(
            [_word(name, "methods", LONGEST_METHOD) for name in body.get("methods", ["default"])],
            "methods",
        ),
        learning_rates=_once(sorted(float(rate) for rate in rates), "learning_rates"),
        seeds=_once(count_seeds(seeds) if isinstance(seeds, int) else seeds, "seeds"),
        clips=_once(body.get("clip") or [None], "clip"),
        epochs=body.get("epochs", 1),
        batch_size=body.get("batch_size"),
        settings=body.get("settings", {}),
    )
    return grid if search is None else _searching(grid, search)


def _searching(grid: CellGrid, search: Mapping[str, Any]) -> CellGrid:
    """Return the first round of a search in place of a grid."""
    if "from" not in search or "to" not in search:
        raise InvalidSpec("A search of agents needs from and to.", field="learning_rates")
    runs = len(grid.methods) * len(grid.seeds) * len(grid.clips)
    found = Search.of(search, (search["from"], search["to"]), runs)
    return replace(grid, learning_rates=found.coarse, search=found)


def _check_taken(body: Mapping[str, Any]) -> None:
    taken = {"task", "methods", "learning_rates", "seeds", "clip", "epochs", "batch_size"}
    for name in body.keys() - taken - {"where", "settings", "note"}:
        raise InvalidSpec(
            f"{name} means nothing to an agent's program; say it in settings.", field=name
        )
    for name in ("epochs", "batch_size"):
        if isinstance(body.get(name), list):
            raise InvalidSpec(f"An agent's cells have one {name}; submit a sweep each.", field=name)
    if "task" not in body or "learning_rates" not in body:
        absent = "task" if "task" not in body else "learning_rates"
        raise InvalidSpec("Cells of agents need a task and learning rates.", field=absent)


def _word(text: str, field: str, longest: int) -> str:
    if not text.isprintable() or not 1 <= len(text) <= longest:
        raise InvalidSpec(
            f"A name here has 1 to {longest} printable characters; got {text[:40]!r}.", field=field
        )
    return text


def _once(values: Iterable[Any], field: str) -> tuple[Any, ...]:
    found = tuple(values)
    for value in found:
        if found.count(value) > 1:
            raise InvalidSpec(f"{value} is given twice.", field=field)
    return found


def plan_cells(session: Session, *, trial_ids: Sequence[int]) -> None:
    """Give each of the trials a shard of its own, for agents to claim."""
    if not trial_ids:
        return
    row = {**WAITING, "device": AGENTS, "trials": 1, "seconds": 0.0, "memory_bytes": 0}
    made = session.scalars(
        insert(ShardRow).returning(ShardRow.id, sort_by_parameter_order=True),
        [row] * len(trial_ids),
    ).all()
    moves = [{"id": one, "shard_id": two} for one, two in zip(trial_ids, made, strict=True)]
    session.execute(update(TrialRow), moves)


def claim_cell(session: Session, *, sweep_id: int, agent: str) -> Claim | None:
    """Lease the first waiting cell of a sweep to an agent; None if nothing waits just now."""
    first = _first_queued(session, sweep_id)
    still = select(ShardRow.id).where(
        ShardRow.id.in_(first),
        ShardRow.device == AGENTS,
        ShardRow.state == ShardState.QUEUED,
        is_ready(),
    )
    # One, and not all of them: what is locked here, others who claim pass over.
    free = still.order_by(ShardRow.id).limit(1).with_for_update(skip_locked=True)
    for _ in first:
        shard_id = session.scalar(free)
        taken = claim(session, shard_id=shard_id, worker=agent) if shard_id else None
        if taken is not None:
            # What a lost holder logged is not this one's training.
            ids = [trial.id for trial in taken.trials]
            session.execute(delete(CurveRow).where(CurveRow.trial_id.in_(ids)))
            return taken
    return None


def _first_queued(session: Session, sweep_id: int) -> Sequence[int]:
    """Return the shards of a sweep's first queued cells, in order.

    Each cell is found by its id. Of tables filled a moment ago PostgreSQL knows nothing: given a
    join, or a state to look for, it may go through all queued trials for each of them.
    """
    queued = case((TrialRow.state == TrialState.QUEUED, TrialRow.shard_id))
    mine = TrialRow.id == SweepTrialRow.trial_id
    shard = select(queued).where(mine).scalar_subquery().label("shard")
    members = SweepTrialRow.sweep_id == sweep_id
    each = select(shard, SweepTrialRow.position).where(members).subquery()
    query = select(each.c.shard).where(each.c.shard.is_not(None)).order_by(each.c.position)
    return session.scalars(query.limit(MOST_TRIED)).all()


def read_cell(session: Session, *, trial_id: int) -> CellRead:
    """Return a cell as its holder needs it, with the lease it has now."""
    query = (
        select(TrialRow, ShardRow.lease, ShardRow.attempts, CurveRow.points, SweepTrialRow.sweep_id)
        .outerjoin(ShardRow, ShardRow.id == TrialRow.shard_id)  # of old ones none is left
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
        .where(TrialRow.id == trial_id)
    )
    row, lease, attempts, points, sweep_id = session.execute(
        query, execution_options={"populate_existing": True}
    ).one()
    same = ("task", "method", "lr", "seed", "clip", "epochs", "batch_size", "state")
    return CellRead(
        sweep_id=sweep_id,
        trial_id=trial_id,
        lease=lease or 0,
        attempt=attempts or 0,
        **{name: getattr(row, name) for name in same},
        settings=row.options,
        lease_seconds=get_settings().lease_seconds,
        points=points or 0,
    )


def report_cell(
    session: Session, *, sweep_id: int, trial_id: int, report: CellReport
) -> CellAnswer:
    """Take in what a program says about its cell, and return where the cell is now.

    Only who holds the lease changes anything; the same report again changes nothing.

    Raises:
        NotFound: The sweep has no such cell.
        Conflict: Points are missing between those stored and those sent.
        InvalidInput: The report contradicts itself.
    """
    held = _holding(session, sweep_id, trial_id, report.lease)
    if held is None:
        return _answer(session, trial_id, report)
    log = _with_points(session, trial_id, report)
    heartbeat(session, claim=held, progress=report.progress)
    if report.result is not None:
        _store_result(session, held, trial_id, report.result, log)
        finish(session, claim=held)
    elif trial_id not in drop_unwanted(session, claim=held):
        finish(session, claim=held)
    elif report.fault is not None:
        fail(session, claim=held, error=report.fault or "It broke without a word.", split=False)
    elif report.release:
        give_back(session, claim=held)
    return _answer(session, trial_id, report, taken=True)


def _holding(session: Session, sweep_id: int, trial_id: int, lease: int) -> Claim | None:
    """Return the claim that a lease is, locked; None if it has been lost or has ended."""
    query = (
        select(ShardRow, TrialRow.state)
        .join(TrialRow, TrialRow.shard_id == ShardRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.id == trial_id)
        .where(ShardRow.device == AGENTS)
    )
    found = session.execute(query.with_for_update(of=ShardRow)).one_or_none()
    if found is None:
        raise NotFound(f"cell of sweep {sweep_id} with the trial", trial_id)
    row = found[0]
    if row.state is not ShardState.RUNNING or row.lease != lease:
        return None
    return Claim(row.id, lease, row.attempts, row.worker or "", row.device, row.seconds, ())


def _answer(
    session: Session, trial_id: int, report: CellReport, *, taken: bool = False
) -> CellAnswer:
    """Return where a cell is; a result that came after its lease had run out is nobody's."""
    query = (
        select(TrialRow.state, ShardRow.state, ShardRow.lease, CurveRow.points)
        .join(ShardRow, ShardRow.id == TrialRow.shard_id)
        .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
        .where(TrialRow.id == trial_id)
    )
    state, shard_state, latest, points = session.execute(query).one()
    known = taken or report.result is None or shard_state in (ShardState.RUNNING, ShardState.DONE)
    return CellAnswer(
        held=shard_state is ShardState.RUNNING and latest == report.lease,
        yours=latest == report.lease and known,
        state=state,
        points=points or 0,
    )


def _with_points(session: Session, trial_id: int, report: CellReport) -> Any:
    """Return the curve with the report's points behind it, stored; those known are passed over."""
    blocks = select(CurveRow.data, CurveRow.validation).where(CurveRow.trial_id == trial_id)
    found = session.execute(blocks).one_or_none()
    stored = unpack(*found) if found else np.empty((len(COLUMNS), 0))
    count = stored.shape[1]
    if report.start > count:
        raise Conflict(
            f"Points from number {report.start} on came, but only {count} are stored.",
            field="start",
            hint=f"Send them from number {count} on.",
        )
    new = report.points[count - report.start :]
    if not new:
        return stored
    if count + len(new) > MOST_POINTS:
        raise TooLarge(f"A cell's log has at most {MOST_POINTS:,} points.", field="points")
    steps = [*stored[0, -1:].tolist(), *(point.step for point in new)]
    if any(after <= before for before, after in pairwise(steps)):
        raise InvalidInput(
            "The steps of a log rise from point to point; these do not.", field="points"
        )
    whole = add_points(stored, [_numbers(point) for point in new])
    insert_or_replace_curve(session, trial_id, whole)
    return whole


def _numbers(point: CellPoint) -> list[float]:
    values = (getattr(point, name) for name in LOSSES)
    return [point.step, point.epoch, *(math.nan if one is None else one for one in values)]


def _store_result(
    session: Session, held: Claim, trial_id: int, result: CellResult, log: Any
) -> None:
    initial = result.initial_loss
    if initial is None and log.shape[1] and log[0, 0] == 0:
        initial = finite(float(log[2, 0]))
    # Stored is what was measured before training; judged by is the first that there is.
    logged = log[2][np.isfinite(log[2])][:1].tolist()
    state = _judge(result, next(iter(logged), None) if initial is None else initial)
    # Asked for apart: SQLite's RETURNING and arithmetic on times differ from PostgreSQL's.
    began = session.scalar(select(TrialRow.started_at).where(TrialRow.id == trial_id))
    now = database_time(session)
    taken = (now - began).total_seconds() if began else 0.0
    failed = state is TrialState.FAILED
    values = {
        "state": state,
        "finished_at": now,
        "initial_loss": initial,
        **{name: getattr(result, name) for name in LOSSES},
        "diverged_at_step": result.diverged_at_step if state is TrialState.DIVERGED else None,
        "seconds": max(0.0, taken) if result.seconds is None else result.seconds,
        "record": {"agent": held.worker, "attempt": held.attempt},
        "error": readable(result.error or "Its program gave no reason.") if failed else None,
    }
    mine = (TrialRow.id == trial_id, TrialRow.state == TrialState.RUNNING)
    session.execute(update(TrialRow).where(*mine).values(values))


def _judge(result: CellResult, first: float | None) -> TrialState:
    """Return a cell's outcome as its program says, else as we would judge it."""
    loss = result.train_loss
    if result.outcome == "completed" and loss is None:
        raise InvalidInput(
            "A completed cell needs a finite train_loss; without one it has diverged or failed.",
            field="result.train_loss",
        )
    if result.outcome is not None:
        return next(state for state, name in OUTCOMES.items() if name == result.outcome)
    exploded = loss is not None and first is not None and loss > explodes_above(first)
    return TrialState.DIVERGED if loss is None or exploded else TrialState.COMPLETED
