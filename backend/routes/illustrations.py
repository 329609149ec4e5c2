"""Numbers behind the toy pictures."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.deps import CallerDep
from backend.routes.parameters import Query, Word, errors
from backend.schemas import Loss, QuadraticRead, RaceRead, UpdateRead
from backend.services import illustrations, start

router = APIRouter(prefix="/api/illustrations", tags=["illustrations"])

#: Pure functions of their parameters.
CACHE = "private, max-age=86400"


class DescentQuery(Query):
    """What to descend, from where and how fast; the defaults are the paper's figure."""

    loss: Loss = "quadratic"
    curvature: float = Field(1.0, ge=1e-6, le=1e6, description="Second derivative at the minimum.")
    start: float = Field(2.0, ge=-1e6, le=1e6)
    lr: float = Field(1.75, ge=1e-6, le=1e6, description="Learning rate.")
    steps: int = Field(10, ge=1, le=200)


class UpdateQuery(Query):
    """The node and its step; the defaults are the paper's relu figure."""

    activation: Word = "relu"
    b: float = Field(1.0, ge=-1e6, le=1e6, description="Gradient at the node's output.")
    s: float = Field(0.3, ge=-1e6, le=1e6, description="Pre-activation before the step.")
    lr: float = Field(1.0, ge=1e-6, le=1e6, description="Learning rate.")
    z_sq: float = Field(1.0, ge=0, le=1e6, description="Squared norm of the layer's input.")
    mu: float = Field(0.0, ge=0, le=1e6, description="Ridge strength.")
    reach: float | None = Field(
        None, gt=0, le=1e12, description="Sample s from -reach to reach; by default all cases."
    )


@router.get("/quadratic", responses=errors())
def get_descent(
    query: Annotated[DescentQuery, QueryParameters()], response: Response, _: CallerDep
) -> QuadraticRead:
    """Return explicit and implicit descent on a one-dimensional loss."""
    response.headers["Cache-Control"] = CACHE
    return illustrations.descent(**query.model_dump())


@router.get("/update", responses=errors())
def get_update(
    query: Annotated[UpdateQuery, QueryParameters()], response: Response, _: CallerDep
) -> UpdateRead:
    """Return one node's explicit and implicit update, for both signs of b."""
    # With it comes torch, which takes half the memory of a web process and is needed nowhere else.
    from backend.services.illustrations import node_update

    response.headers["Cache-Control"] = CACHE
    return node_update(**query.model_dump())


@router.get("/race", responses=errors())
def get_race(response: Response, _: CallerDep) -> RaceRead:
    """Return the start page's race: explicit and implicit steps on digits, from stored trials."""
    response.headers["Cache-Control"] = CACHE
    return start.race()
