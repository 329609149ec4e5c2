"""Cells of sweeps that programs elsewhere train, and runs that they log without a sweep."""

from fastapi import APIRouter
from sqlalchemy.orm import Session

from backend.db import transaction
from backend.deps import EngineDep, ReporterDep, WriterDep
from backend.routes.parameters import SweepId, TrialId, errors
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellClaimed,
    CellRead,
    CellReport,
    RunCreate,
    TrialState,
)
from backend.services import shards, studies, submission, sweeps
from backend.services.accounts import Caller

router = APIRouter(prefix="/api", tags=["cells"])

#: States after which a search may go on.
ENDED = (TrialState.COMPLETED, TrialState.DIVERGED, TrialState.FAILED)


@router.post("/sweeps/{sweep_id}/cells", responses=errors(400, 404, 413))
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


@router.post("/sweeps/{sweep_id}/cells/{trial_id}", responses=errors(400, 404, 409, 413))
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


@router.post("/runs", status_code=201, responses=errors(400, 404, 413))
def open_run(payload: RunCreate, engine: EngineDep, caller: WriterDep) -> CellRead:
    """Begin to log a run as it happens, or go on with it; report on it as on a cell.

    A study that is given by a name is made if the caller has none of that name.
    """
    with transaction(engine) as session:
        trial_id = submission.open_run(session, run=payload, by=caller)
        return shards.read_cell(session, trial_id=trial_id)
