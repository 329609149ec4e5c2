"""Trials: their outcomes, curves, recordings and replays; cells that programs elsewhere train."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Query as QueryParameters
from pydantic import Field
from sqlalchemy.orm import Session

from backend.db import reading, transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    Query,
    QueueDep,
    ReadDep,
    ReporterDep,
    SweepId,
    TrialId,
    WriterDep,
    errors,
)
from backend.routes.sweeps import BROKER_AWAY, announce_errands
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellClaimed,
    CellRead,
    CellReport,
    CurveRead,
    RecordingRead,
    ReplayCreate,
    RunCreate,
    TrialRead,
    TrialState,
)
from backend.services import accounts, errands, shards, studies, submission, sweeps, trials
from backend.services.accounts import Caller

router = APIRouter(prefix="/api/trials", tags=["trials"])


class CurveQuery(Query):
    """How much of a curve to show."""

    after: int | None = Field(
        None, ge=-1, le=2**53, description="Only points after this step; for following live."
    )
    max_points: int | None = Field(
        None,
        ge=8,
        le=10_000,
        description="Thin to so many points; ends, extremes and the first loss that is not "
        "finite stay.",
    )


@router.get("/{trial_id}", responses=errors(404))
def get_trial(trial_id: TrialId, session: ReadDep, _: CallerDep) -> TrialRead:
    """Return a trial with its outcome and its reproducibility record."""
    return trials.get(session, trial_id=trial_id)


@router.get("/{trial_id}/curve", responses=errors(404))
def get_curve(
    trial_id: TrialId,
    query: Annotated[CurveQuery, QueryParameters()],
    session: ReadDep,
    _: CallerDep,
) -> CurveRead:
    """Return a trial's losses by step, also while it runs."""
    return trials.curve(session, trial_id=trial_id, after=query.after, points=query.max_points)


class RecordingQuery(Query):
    """How much of a recording to show."""

    rows: int | None = Field(
        None,
        ge=16,
        le=10_000,
        description="Thin to so many rows, half of them next to the break.",
    )


@router.get("/{trial_id}/recording", responses=errors(404))
def get_recording(
    trial_id: TrialId,
    query: Annotated[RecordingQuery, QueryParameters()],
    session: ReadDep,
    _: CallerDep,
) -> RecordingRead:
    """Return a trial's losses, norms and sharpness by step, and why it broke, in words."""
    return trials.recording(session, trial_id=trial_id, rows=query.rows)


@router.get(
    "/{trial_id}/recording/export",
    response_class=Response,
    responses={
        **errors(404),
        200: {"content": {"text/csv": {}}, "description": "One line a step, all of them."},
    },
)
def export_recording(trial_id: TrialId, session: ReadDep, _: CallerDep) -> Response:
    """Return a trial's whole recording as a table."""
    text = "".join(trials.export_recording(session, trial_id=trial_id))
    name = f'attachment; filename="trial-{trial_id}-recording.csv"'
    return Response(text, media_type="text/csv", headers={"Content-Disposition": name})


@router.post(
    "/{trial_id}/replay",
    status_code=202,
    responses={
        **errors(400, 404, 409),
        202: {"description": "Stored; a worker trains it again and records it."},
    },
)
def replay_trial(
    trial_id: TrialId,
    payload: ReplayCreate,
    engine: EngineDep,
    queue: QueueDep,
    caller: WriterDep,
) -> RecordingRead:
    """Have a worker train a trial again alone, recording every step around its break.

    What comes of it is compared with the stored numbers, which stay as they are.
    """
    with transaction(engine) as session:
        new = errands.request_replay(
            session, trial_id=trial_id, device=payload.device, owner_id=caller.user_id
        )
        if new:
            accounts.audit(session, by=caller, action="trial.replay", trial_id=trial_id)
    told = not new or announce_errands(queue.announce_replays)
    with reading(engine) as session:
        found = trials.recording(session, trial_id=trial_id, rows=100)
    if not told:
        found.messages.append(BROKER_AWAY.replace("the sweep", "the replay"))
    return found


# --- cells


cell_router = APIRouter(prefix="/api", tags=["cells"])

#: States after which a search may go on.
ENDED = (TrialState.COMPLETED, TrialState.DIVERGED, TrialState.FAILED)


@cell_router.post("/sweeps/{sweep_id}/cells", responses=errors(400, 404, 413))
def claim_cell(
    sweep_id: SweepId, payload: CellClaim, engine: EngineDep, caller: ReporterDep
) -> CellClaimed:
    """Claim the next waiting cell of a sweep that was submitted with `"where": "agents"`.

    Without a report for `lease_seconds` the cell is somebody else's.
    """
    with transaction(engine) as session:
        _check_owner(session, sweep_id, caller)
        taken = shards.claim_cell(session, sweep_id=sweep_id, agent=payload.agent)
        cell = shards.read_cell(session, trial_id=taken.trials[0].id) if taken else None
        progress = sweeps.progress_of(session, sweep_ids=[sweep_id])[sweep_id]
        cancelled = sweeps.is_cancelled(session, sweep_id=sweep_id)
        searching = sweeps.is_searching(session, sweep_id=sweep_id)
    return CellClaimed(
        cell=cell,
        state=sweeps.state_of(progress, cancelled=cancelled, searching=searching),
        # Between two rounds of a search nothing is unfinished, and yet more will come.
        unfinished=progress.unfinished or int(searching and not cancelled),
    )


@cell_router.post("/sweeps/{sweep_id}/cells/{trial_id}", responses=errors(400, 404, 409, 413))
def report_cell(
    sweep_id: SweepId,
    trial_id: TrialId,
    payload: CellReport,
    engine: EngineDep,
    caller: ReporterDep,
) -> CellAnswer:
    """Say that a cell's program lives, what it has logged, and how it ended.

    A report of a lost lease changes nothing, and the answer says so.
    """
    with transaction(engine) as session:
        _check_owner(session, sweep_id, caller)
        answer = shards.report_cell(session, sweep_id=sweep_id, trial_id=trial_id, report=payload)
        more = answer.state in ENDED and sweeps.is_searching(session, sweep_id=sweep_id)
    if more:  # apart: planning locks the study first, as cancelling does
        with transaction(engine) as session:
            sweeps.plan_round(session, sweep_id=sweep_id)
    return answer


def _check_owner(session: Session, sweep_id: int, caller: Caller) -> None:
    caller.check_owner(studies.of_sweep(session, sweep_id=sweep_id)[1])


@cell_router.post("/runs", status_code=201, responses=errors(400, 404, 413))
def open_run(payload: RunCreate, engine: EngineDep, caller: WriterDep) -> CellRead:
    """Begin to log a run as it happens, or go on with it; report on it as on a cell.

    A study that is given by a name is made if the caller has none of that name.
    """
    with transaction(engine) as session:
        trial_id = submission.open_run(session, run=payload, by=caller)
        return shards.read_cell(session, trial_id=trial_id)
