"""Replays: trials trained again alone and recorded; asked for, leased to a worker, stored."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.errors import Conflict, NotFound
from backend.models import RecordingRow, ShardState, TrialRow
from backend.services import offers
from backend.services.errands import OPEN, Errands
from backend.services.trials import COUNTED, finite, spec_of
from ib_core.sweep import ENGINE_VERSION, Recording, TrialSpec

if TYPE_CHECKING:  # its module carries torch, which the web process does without
    from ib_core.sweep import Agreement

#: Long enough for a step of any trial, since it is renewed between steps.
LEASE_SECONDS = 300.0
REPLAYS = Errands(RecordingRow, RecordingRow.trial_id, seconds=LEASE_SECONDS, doing="replayed")


@dataclass(frozen=True, slots=True)
class ReplayClaim:
    """A worker's lease on a replay.

    Attributes:
        trial_id: Which trial.
        lease: Tells it from every other claim of the same replay.
        device: As asked for.
        spec: What to train, as `TrialSpec.from_dict` reads it.
        known: The stored outcome and losses.
    """

    trial_id: int
    lease: int
    device: str
    spec: dict[str, Any]
    known: dict[str, Any]


def request(session: Session, *, trial_id: int, device: str, owner_id: int | None) -> bool:
    """Ask for a trial's replay; return whether it is new: one that waits, or runs, is not.

    Raises:
        NotFound: There is no such trial.
        Conflict: It cannot be trained again here.
    """
    trial = session.get(TrialRow, trial_id, with_for_update=True)
    if trial is None:
        raise NotFound("trial", trial_id)
    if trial.state not in COUNTED:
        raise Conflict(
            "Only a trial that has completed or diverged can be replayed.",
            hint=f"This one is {trial.state.value}.",
        )
    if trial.imported or trial.engine_version != ENGINE_VERSION:
        raise Conflict(
            "This trial was not trained by this engine, so nothing here could give its numbers.",
            hint="Submit its settings as a sweep of your own, and replay that.",
        )
    row = session.get(RecordingRow, trial_id, with_for_update=True)
    if row is not None and row.state in OPEN:
        return False
    if row is None:
        row = RecordingRow(trial_id=trial_id)
        session.add(row)
    row.state, row.device, row.owner_id = ShardState.QUEUED, device, owner_id
    row.needs = _needs(session, trial)
    row.attempts, row.progress, row.error, row.sent_at = 0, 0.0, None, None
    session.flush()
    return True


def _needs(session: Session, trial: TrialRow) -> str | None:
    spec = TrialSpec.from_dict(spec_of(trial))
    with offers.known_again(session, [(spec, trial.data_hash)]).told():
        return offers.needs_of([spec])


def claim(
    session: Session, *, trial_id: int, worker: str, offers: tuple[str, ...] = ()
) -> ReplayClaim | None:
    """Lease a waiting replay to this worker; None if there is nothing to do for it."""
    needs = session.scalar(select(RecordingRow.needs).where(RecordingRow.trial_id == trial_id))
    if needs and not set(needs.split(",")) <= set(offers):
        return None
    lease = REPLAYS.claim(session, id=trial_id, worker=worker)
    if lease is None:
        return None
    trial = session.get_one(TrialRow, trial_id)
    row = session.get_one(RecordingRow, trial_id)
    known = {name: getattr(trial, name) for name in ("train_loss", "test_loss")}
    known["outcome"] = trial.state.value
    return ReplayClaim(trial_id, lease, row.device, spec_of(trial), known)


def renew(session: Session, *, claim: ReplayClaim, progress: float) -> bool:
    """Hold on to a replay and note how far it is; False if the lease was lost."""
    held = REPLAYS.renew(session, id=claim.trial_id, lease=claim.lease)
    if held:
        session.get_one(RecordingRow, claim.trial_id).progress = min(max(progress, 0.0), 1.0)
    return held


def finish(
    session: Session, *, claim: ReplayClaim, recording: Recording, agreement: "Agreement"
) -> bool:
    """Store what was recorded; False if the lease was lost."""
    off = None if agreement.off is None else finite(agreement.off)
    told = {"same": agreement.same, "off": off, "sentence": agreement.sentence}
    found = {"data": recording.to_bytes(), "agreement": told, "progress": 1.0}
    return REPLAYS.finish(session, id=claim.trial_id, lease=claim.lease, **found)


def fail(session: Session, *, claim: ReplayClaim, error: str) -> bool:
    """Give a replay back because it broke, for good after a few attempts."""
    return REPLAYS.fail(session, id=claim.trial_id, lease=claim.lease, error=error)


def release(session: Session, *, claim: ReplayClaim) -> bool:
    """Give a replay back because the worker stops."""
    return REPLAYS.release(session, id=claim.trial_id, lease=claim.lease)
