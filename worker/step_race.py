"""One race of steps from claim to finish: what each method's step costs on one network."""

import logging

from sqlalchemy.orm import Session

from backend.services import timings
from backend.services.timings import BASELINE, TimingClaim
from backend.services.workers import Worker
from ib_core.bench import race_methods
from worker.stopping import StopFlag
from worker.training import engine_device, explain, write_until_it_works

log = logging.getLogger(__name__)


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
