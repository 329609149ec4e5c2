"""A study, a sweep, a result in one call."""

from typing import Any

from sqlalchemy.orm import Session

from backend.schemas import StudyCreate, StudyRead, SweepRead
from backend.services import shards, studies, sweeps
from backend.services.shards import Claim, ClaimedTrial
from backend.services.sweeps import Submitted
from ib_core.sweep.result import CurvePoint, Divergence, Outcome, TrialResult
from ib_core.sweep.spec import SweepSpec, TrialSpec

#: One weight and nine numbers: the cheapest task there is.
TASK = "toy/quadratic"


def sweep_spec(**changes: Any) -> SweepSpec:
    """Return a sweep of 2 methods x 3 rates x 2 seeds, with changes."""
    given: dict[str, Any] = {
        "task": TASK,
        "methods": ("eb", "ib"),
        "learning_rates": (0.1, 1.0, 3.0),
        "seeds": (1, 2),
    }
    given |= changes
    return SweepSpec.create(given.pop("task"), **given)


def new_study(session: Session, name: str = "A study", **fields: Any) -> StudyRead:
    """Return a stored study."""
    owner_id = fields.pop("owner_id", None)
    return studies.create(session, payload=StudyCreate(name=name, **fields), owner_id=owner_id)


def submit(session: Session, study_id: int | None = None, **changes: Any) -> Submitted:
    """Return a stored sweep, in a study of its own unless told otherwise."""
    key = changes.pop("idempotency_key", None)
    body = changes.pop("body", {"task": TASK})
    return sweeps.submit(
        session,
        study_id=study_id or new_study(session).id,
        spec=sweep_spec(**changes),
        body=body,
        owner_id=None,
        idempotency_key=key,
    )


def result(
    trial: ClaimedTrial,
    *,
    outcome: Outcome = Outcome.COMPLETED,
    loss: float = 0.5,
    points: int = 3,
    **changes: Any,
) -> TrialResult:
    """Return what an engine would report for the trial."""
    given: dict[str, Any] = {
        "spec": TrialSpec.from_dict(trial.spec),
        "outcome": outcome,
        "initial_loss": 1.0,
        "train_loss": loss,
        "test_loss": loss,
        "train_accuracy": None,
        "test_accuracy": None,
        "divergence": Divergence(2, "loss") if outcome is Outcome.DIVERGED else None,
        "seconds": 0.1,
        "curve": curve(points, last=loss),
        "fingerprint": trial.fingerprint,
        "record": {"engine": "test"},
        "error": "It broke." if outcome is Outcome.FAILED else None,
    }
    return TrialResult(**(given | changes))


def curve(points: int, last: float = 0.5) -> tuple[CurvePoint, ...]:
    """Return a curve that falls from 1 to `last`."""
    span = max(points - 1, 1)
    return tuple(
        CurvePoint(step, step / 10, 1 - (1 - last) * step / span, 1.0) for step in range(points)
    )


def claim(session: Session, shard_id: int, worker: str = "one") -> Claim:
    """Return a claim that must succeed."""
    taken = shards.claim(session, shard_id=shard_id, worker=worker)
    assert taken is not None
    return taken


def train(session: Session, shard_id: int, **fields: Any) -> Claim:
    """Claim a shard and finish all of its trials with equal results."""
    taken = claim(session, shard_id)
    finished = {trial.id: result(trial, **fields) for trial in taken.trials}
    shards.report(session, claim=taken, finished=finished)
    assert shards.finish(session, claim=taken)
    return taken


def train_all(session: Session, submitted: Submitted, **fields: Any) -> SweepRead:
    """Finish every shard of a sweep."""
    for shard_id in submitted.shard_ids:
        train(session, shard_id, **fields)
    return sweeps.get(session, sweep_id=submitted.sweep.id)
