"""What a worker is asked, from claim to finish: a shard, or an errand (a replay, a race of steps).

Divergence is a result; whatever else goes wrong is told.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TypeVar

from sqlalchemy.orm import Session

from backend.db import reason, transaction
from backend.queue import get_queue
from backend.services import errands, shards, timings, workers
from backend.services.errands import ReplayClaim
from backend.services.shards import Claim
from backend.services.timings import BASELINE, TimingClaim
from backend.services.workers import Worker
from backend.settings import get_settings, process_about
from ib_core.bench import Ratio, race_methods
from ib_core.errors import IBError, said_where
from ib_core.sweep import (
    Guard,
    LaneDied,
    Observer,
    TrialSpec,
    Wish,
    agreement,
    can_fork,
    is_own,
    replay_trial,
    run_trials,
)
from ib_core.tasks import OWN_TASKS
from worker.device import shares
from worker.own_files import race
from worker.reporter import (
    STOPPING_SECONDS,
    Heartbeat,
    LeaseLost,
    Reporter,
    StopFlag,
    Stopped,
    until_it_works,
)

T = TypeVar("T")

log = logging.getLogger(__name__)


def train(shard_id: int, *, heartbeat: Heartbeat, stopping: StopFlag) -> None:
    """Claim a shard, train it and report on it; a second delivery finds nothing to claim."""
    worker = heartbeat.worker
    claim = write_until_it_works(
        stopping,
        lambda session: shards.claim(
            session, shard_id=shard_id, worker=worker.name, offers=heartbeat.offers
        ),
        what=f"claim shard {shard_id}",
    )
    if claim is None:
        log.info("Shard %d: nothing to do.", shard_id)
        return
    with process_about(shard_id=shard_id, trial_ids=[trial.id for trial in claim.trials]):
        _work(claim, heartbeat, stopping)


def _work(claim: Claim, heartbeat: Heartbeat, stopping: StopFlag) -> None:
    worker, shard_id = heartbeat.worker, claim.shard_id
    log.info("Shard %d: %d trials, attempt %d.", shard_id, len(claim.trials), claim.attempt)
    began = time.monotonic()
    reporter = Reporter(claim, stopping=stopping, flush_seconds=get_settings().flush_seconds)
    with heartbeat.during(reporter):
        _train_and_report(claim, reporter.start(), worker, stopping)
        _credit(stopping, worker.name, len(reporter.stored), time.monotonic() - began)
    if reporter.stored:
        _plan_rounds()
    log.info("Shard %d: %d trials stored.", shard_id, len(reporter.stored))


def _plan_rounds() -> None:
    """Plan the next round of a search that these results may have been the last for.

    Only to be quick: what fails or is killed here, the next reaper does.
    """
    try:
        get_queue().plan_rounds()
    except Exception:
        log.warning("The next round of a search is left to the reaper.", exc_info=True)


def _train_and_report(claim: Claim, reporter: Reporter, worker: Worker, stopping: StopFlag) -> None:
    specs = [
        replace(TrialSpec.from_dict(one.spec), wish=Wish(one.record) if one.record else None)
        for one in claim.trials
    ]
    device = engine_device(claim.device, worker.device)
    try:
        try:
            run = runner(specs, device, worker.threads)
            run(specs, device=device, observer=reporter)
        finally:
            reporter.close()  # what is finished is kept, whatever happened to the rest
    except LeaseLost:
        log.warning("Shard %d is another worker's now.", claim.shard_id)
    except Stopped:
        log.info("Shard %d goes back to the queue.", claim.shard_id)
        _end(stopping, claim, lambda session: shards.release(session, claim=claim))
    except (Exception, SystemExit) as error:  # a user's file may call sys.exit
        log.exception("Shard %d failed.", claim.shard_id)
        _fail(stopping, claim, error)
    else:
        _end(stopping, claim, lambda session: shards.finish(session, claim=claim))


def runner(specs: Sequence[TrialSpec], device: str, threads: int) -> Callable[..., object]:
    """Return what trains these trials: users' code and the catalogue's share no process.

    Args:
        specs: The trials.
        device: Where.
        threads: Of this process.
    """
    if not can_fork(device):
        return run_trials
    if any(map(is_own, specs)):
        return guard(threads).run
    return run_trials if _State.apart is None else _State.apart.run


class _State:
    """The process beside this one in which the catalogue trains, where there is one."""

    apart: Guard | None = None


def keep_apart(threads: int) -> None:
    """Begin a process for the catalogue: in this one users' code, which may change torch, is read.

    Args:
        threads: Of it.
    """
    _State.apart = Guard(fresh=True, threads=threads)
    _State.apart.start("cpu")


@cache
def guard(threads: int) -> Guard:
    """Return the process beside this one in which users' code trains.

    Args:
        threads: Of this process, which tell how many others there are to share memory with.
    """
    return Guard(stall=get_settings().stall_seconds, shares=shares(threads))


def engine_device(asked: str, kind: str) -> str:
    """Return the device a shard is trained on here."""
    return kind if asked == "auto" else asked


def _fail(stopping: StopFlag, claim: Claim, error: BaseException) -> None:
    # Missing data, say, are missing for every trial; other faults may be one trial's alone.
    alone = not isinstance(error, IBError)
    if isinstance(error, LaneDied):
        alone = error.split
    sentence = explain(error, str(claim.trials[0].spec["task"]))

    def write(session: Session) -> bool:
        return shards.fail(session, claim=claim, error=sentence, split=alone)

    _end(stopping, claim, write)


def explain(error: BaseException, task: str) -> str:
    """Return a fault as one sentence; the traceback is in the worker's log.

    Of a fault in a user's file the line is told: frames before the engine's are ours. Where none
    was running any more, it is that of the task's model.
    """
    trace = error.__traceback__
    while trace is not None and "ib_core" not in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next
    if trace is None:
        return error.message if isinstance(error, IBError) else f"{type(error).__name__}: {error}"
    return said_where(error.with_traceback(trace), getattr(OWN_TASKS.get(task), "model", None))


def _end(stopping: StopFlag, claim: Claim, write: Callable[[Session], bool]) -> None:
    if not write_until_it_works(stopping, write, what=f"end shard {claim.shard_id}"):
        log.warning("Shard %d was taken back before it ended.", claim.shard_id)


def _credit(stopping: StopFlag, worker: str, trials: int, seconds: float) -> None:
    def write(session: Session) -> None:
        workers.credit(session, name=worker, trials=trials, seconds=seconds)

    write_until_it_works(stopping, write, what="count trials")


def write_until_it_works(stopping: StopFlag, action: Callable[[Session], T], *, what: str) -> T:
    """Return what a transaction gives, repeated while the database is away."""

    def once() -> T:
        with transaction() as session:
            return action(session)

    return until_it_works(
        once, what=what, give_up=lambda waited: stopping.is_set() and waited > STOPPING_SECONDS
    )


# --- Errands: a trial replayed alone and recorded, a race of steps

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
        found = replay_trial(
            spec,
            device=device,
            observer=_Renewer(claim, stopping),
            run=runner([spec], device, worker.threads),
        )
    except LeaseLost:
        log.warning("Replay of trial %d is another worker's now.", trial_id)
        return
    except Stopped:
        log.info("Replay of trial %d goes back to the queue.", trial_id)
        _end_replay(claim, stopping, lambda session: errands.release_replay(session, claim=claim))
        return
    except (Exception, SystemExit) as error:  # a user's file may call sys.exit
        log.exception("Replay of trial %d failed.", trial_id)
        sentence = explain(error, str(claim.spec["task"]))
        _end_replay(
            claim,
            stopping,
            lambda session: errands.fail_replay(session, claim=claim, error=sentence),
        )
        return
    assert found is not None  # nobody calls it off
    same = agreement(found.result, claim.known)
    _end_replay(
        claim,
        stopping,
        lambda session: errands.finish_replay(
            session, claim=claim, recording=found.recording, agreement=same
        ),
    )


def _end_replay(claim: ReplayClaim, stopping: StopFlag, write: Callable[[Session], bool]) -> None:
    what = f"end the replay of trial {claim.trial_id}"
    if not write_until_it_works(stopping, write, what=what):
        log.warning("The replay of trial %d was taken back before it ended.", claim.trial_id)


#: Seconds between two renewals of a race's lease: rare, because a write slows the turn it is in.
RENEW_RACE_SECONDS = 20.0
#: What a race of users' code may take besides: its process has to start and to read the files.
STARTING_SECONDS = 60.0
#: A race of users' code that takes longer hangs.
LONGEST_RACE_SECONDS = 900.0


def measure(timing_id: int, *, worker: Worker, stopping: StopFlag, own: Sequence[str] = ()) -> None:
    """Claim a race, run it and store its ratios; a second delivery finds nothing to claim.

    Args:
        timing_id: Which.
        worker: Who runs it.
        stopping: Whether it is to stop.
        own: What the worker brings along: users' code races in a process that reads it again.
    """
    claim = write_until_it_works(
        stopping,
        lambda session: timings.claim(
            session, timing_id=timing_id, worker=worker.name, offers=worker.offers
        ),
        what=f"claim timing {timing_id}",
    )
    if claim is None:
        log.info("Timing %d: nothing to do.", timing_id)
        return
    log.info("Timing %d: %d methods.", timing_id, len(claim.trials))
    device = engine_device(claim.device, worker.device)
    try:
        with _renewing(claim):
            found = _race(claim, device, worker, own)
    except (Exception, SystemExit) as error:
        log.exception("Timing %d failed.", timing_id)
        _fail_timing(claim, explain(error, ""), stopping)
        return
    results = timings.told(found)
    threads = f"{worker.threads} thread{'s' if worker.threads > 1 else ''}"
    where = f"{device} ({worker.device_name or worker.host}, {threads})"

    def store(session: Session) -> bool:
        return timings.finish(session, claim=claim, results=results, measured_on=where)

    if not write_until_it_works(stopping, store, what=f"end timing {timing_id}"):
        log.warning("Timing %d was taken back before it ended.", timing_id)


@contextmanager
def _renewing(claim: TimingClaim) -> Iterator[None]:
    """Hold on to a race for as long as the block runs; a thread does, for steps tell nobody."""
    ended = threading.Event()

    def renew() -> None:
        held = True
        while held and not ended.wait(RENEW_RACE_SECONDS):
            try:
                with transaction() as session:
                    held = timings.renew(session, claim=claim)
            except Exception as error:  # the lease outlasts a few of these
                log.warning("Cannot renew timing %d: %s", claim.timing_id, reason(error))

    thread = threading.Thread(target=renew, name="race", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _race(
    claim: TimingClaim, device: str, worker: Worker, own: Sequence[str]
) -> Mapping[str, Ratio]:
    if _State.apart is None and not any(map(is_own, claim.trials.values())):
        return race_methods(claim.trials, baseline=BASELINE, device=device)
    return race(
        own,
        claim.trials,
        needs=claim.needs,
        device=device,
        baseline=BASELINE,
        threads=worker.threads,
        most=min(get_settings().stall_seconds + STARTING_SECONDS, LONGEST_RACE_SECONDS),
    )


def _fail_timing(claim: TimingClaim, error: str, stopping: StopFlag) -> None:
    def write(session: Session) -> bool:
        return timings.fail(session, claim=claim, error=error)

    write_until_it_works(stopping, write, what=f"end timing {claim.timing_id}")
