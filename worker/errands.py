"""One errand from claim to finish: a trial replayed alone and recorded, a race of steps."""

import logging
import time
from collections.abc import Callable, Collection

from sqlalchemy.orm import Session

from backend.services import errands, timings
from backend.services.errands import ReplayClaim
from backend.services.timings import BASELINE, TimingClaim
from backend.services.workers import Worker
from ib_core.bench import race_methods
from ib_core.sweep import (
    Observer,
    TrialSpec,
    agreement,
    can_fork,
    is_own,
    replay_trial,
    run_trials,
)
from worker.heartbeat import StopFlag
from worker.reporter import LeaseLost, Stopped
from worker.training import engine_device, explain, guard, write_until_it_works

log = logging.getLogger(__name__)

#: Between two renewals of the lease, which is much longer.
RENEW_SECONDS = 2.0


class _Renewer(Observer):
    """Renews the lease while a replay trains, and ends it if it should not go on."""

    def __init__(self, claim: ReplayClaim, stopping: StopFlag) -> None:
        self.claim, self._stopping = claim, stopping
        self._last = time.monotonic()

    def progress(self, fraction: float) -> Collection[int]:
        """Hold on to the replay."""
        if self._stopping.is_set():
            raise Stopped
        if time.monotonic() - self._last >= RENEW_SECONDS:
            self._last = time.monotonic()
            held = write_until_it_works(
                self._stopping,
                lambda session: errands.renew_replay(session, claim=self.claim, progress=fraction),
                what=f"renew the replay of trial {self.claim.trial_id}",
            )
            if not held:
                raise LeaseLost
        return ()


def replay(trial_id: int, *, worker: Worker, stopping: StopFlag) -> None:
    """Claim a replay, train it and store what was recorded."""
    claim = write_until_it_works(
        stopping,
        lambda session: errands.claim_replay(
            session, trial_id=trial_id, worker=worker.name, offers=worker.offers
        ),
        what=f"claim the replay of trial {trial_id}",
    )
    if claim is None:
        log.info("Replay of trial %d: nothing to do.", trial_id)
        return
    log.info("Replay of trial %d.", trial_id)
    device = engine_device(claim.device, worker.device)
    try:
        spec = TrialSpec.from_dict(claim.spec)
        guarded = can_fork(device) and is_own(spec)
        found = replay_trial(
            spec,
            device=device,
            observer=_Renewer(claim, stopping),
            run=guard(worker.threads).run if guarded else run_trials,
        )
    except LeaseLost:
        log.warning("Replay of trial %d is another worker's now.", trial_id)
        return
    except Stopped:
        log.info("Replay of trial %d goes back to the queue.", trial_id)
        _end(claim, stopping, lambda session: errands.release_replay(session, claim=claim))
        return
    except (Exception, SystemExit) as error:  # a user's file may call sys.exit
        log.exception("Replay of trial %d failed.", trial_id)
        sentence = explain(error)
        _end(
            claim,
            stopping,
            lambda session: errands.fail_replay(session, claim=claim, error=sentence),
        )
        return
    assert found is not None  # nobody calls it off
    same = agreement(found.result, claim.known)
    _end(
        claim,
        stopping,
        lambda session: errands.finish_replay(
            session, claim=claim, recording=found.recording, agreement=same
        ),
    )


def _end(claim: ReplayClaim, stopping: StopFlag, write: Callable[[Session], bool]) -> None:
    what = f"end the replay of trial {claim.trial_id}"
    if not write_until_it_works(stopping, write, what=what):
        log.warning("The replay of trial %d was taken back before it ended.", claim.trial_id)


def measure(timing_id: int, *, worker: Worker, stopping: StopFlag) -> None:
    """Claim a race, run it and store its ratios; a second delivery finds nothing to claim."""
    claim = write_until_it_works(
        stopping,
        lambda session: timings.claim(session, timing_id=timing_id, worker=worker.name),
        what=f"claim timing {timing_id}",
    )
    if claim is None:
        log.info("Timing %d: nothing to do.", timing_id)
        return
    log.info("Timing %d: %d methods.", timing_id, len(claim.trials))
    device = engine_device(claim.device, worker.device)
    try:
        found = race_methods(claim.trials, baseline=BASELINE, device=device)
    except Exception as error:
        log.exception("Timing %d failed.", timing_id)
        _fail(claim, explain(error), stopping)
        return
    results = {
        name: {"value": one.value, "low": one.low, "high": one.high, "rounds": one.rounds}
        for name, one in found.items()
    }
    threads = f"{worker.threads} thread{'s' if worker.threads > 1 else ''}"
    where = f"{device} ({worker.device_name or worker.host}, {threads})"

    def store(session: Session) -> bool:
        return timings.finish(session, claim=claim, results=results, measured_on=where)

    if not write_until_it_works(stopping, store, what=f"end timing {timing_id}"):
        log.warning("Timing %d was taken back before it ended.", timing_id)


def _fail(claim: TimingClaim, error: str, stopping: StopFlag) -> None:
    def write(session: Session) -> bool:
        return timings.fail(session, claim=claim, error=error)

    write_until_it_works(stopping, write, what=f"end timing {claim.timing_id}")
