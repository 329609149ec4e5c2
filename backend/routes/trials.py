"""One trial: its outcome, its curve, what was recorded of its way, and its replay."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.db import reading, transaction
from backend.deps import CallerDep, EngineDep, QueueDep, ReadDep, WriterDep
from backend.routes.parameters import Query, TrialId, errors
from backend.routes.sweeps import BROKER_AWAY, announce_errands
from backend.schemas import CurveRead, RecordingRead, ReplayCreate, TrialRead
from backend.services import accounts, replays, trials

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
        new = replays.request(
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
