"""One trial and its curve."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.deps import CallerDep, ReadDep
from backend.routes.parameters import Query, TrialId, errors
from backend.schemas import CurveRead, TrialRead
from backend.services import trials

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
