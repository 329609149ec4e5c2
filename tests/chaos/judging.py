"""Whether anything was lost, doubled or changed, by witnesses the product knows nothing of."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine, func, select, text

from backend.db import PASSING_FAULTS, reading
from backend.models import CurveRow, ShardRow, SweepTrialRow, TrialRow
from backend.services import maintenance
from backend.services.trials import UNFINISHED
from backend.services.trials.curves import unpack

#: With everybody alive something has to end within this time.
STUCK_SECONDS = 120.0
ENDED = ("completed", "diverged")
RESULT = (
    "state",
    "initial_loss",
    "train_loss",
    "test_loss",
    "train_accuracy",
    "test_accuracy",
    "diverged_at_step",
    "diverged_where",
    "diverged_layer",
    "error",
)
#: Writes down every time a trial ends, inside the database.
WITNESS = """
CREATE TABLE witness (trial_id bigint NOT NULL, state text NOT NULL);
CREATE FUNCTION bear_witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO witness VALUES (NEW.id, NEW.state); RETURN NEW; END $$;
CREATE TRIGGER witness AFTER UPDATE OF state, train_loss, finished_at ON trials FOR EACH ROW
WHEN (NEW.state IN ('completed', 'diverged', 'failed')) EXECUTE FUNCTION bear_witness();
"""


@dataclass(frozen=True)
class Verdict:
    """What became of the trials that the service had accepted.

    Attributes:
        accepted: How many there were.
        lost: Those that have no result.
        doubled: Those that ended more than once, or are there more than once.
        changed: Those whose result is not, to the last bit, that of an undisturbed run.
        problems: What `db check` found.
        again: How many trials were begun more than once, because their worker was lost.
    """

    accepted: int
    lost: int
    doubled: int
    changed: int
    problems: list[str]
    again: int

    @property
    def good(self) -> bool:
        """Whether nothing at all went wrong."""
        return self.accepted > 0 and not (
            self.lost or self.doubled or self.changed or self.problems
        )


def drain(engine: Engine, stuck: Callable[[str], None]) -> None:
    """Wait until nothing waits; however much that is, it must keep becoming less."""
    fewest, since = math.inf, time.monotonic()
    while left := _unfinished(engine):
        if left < fewest:
            fewest, since = left, time.monotonic()
        if time.monotonic() - since > STUCK_SECONDS:
            return stuck(f"{left} trials are stuck: {open_shards(engine)}")
        time.sleep(0.5)
    return None


def _unfinished(engine: Engine) -> float:
    try:
        with reading(engine) as session:
            waiting = select(func.count()).select_from(TrialRow)
            return session.scalars(waiting.where(TrialRow.state.in_(UNFINISHED))).one()
    except PASSING_FAULTS:  # connections from before the last fault
        return math.inf


def open_shards(engine: Engine) -> list[tuple[object, ...]]:
    """Return what is known of some shards that do not end."""
    told = ("id", "state", "attempts", "worker", "lease_until", "not_before", "sent_at", "message")
    columns = [getattr(ShardRow, name) for name in told]
    with reading(engine) as session:
        query = select(*columns).where(ShardRow.state.in_(("queued", "running"))).limit(5)
        return [tuple(row) for row in session.execute(query)]


def results(engine: Engine, sweep_ids: list[int]) -> dict[str, str]:
    """Return the hash of every ended trial's result, curve and all, by its fingerprint."""
    columns = [getattr(TrialRow, name) for name in RESULT]
    query = (
        select(TrialRow.fingerprint, CurveRow.data, *columns)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id.in_(sweep_ids), TrialRow.state.in_(ENDED))
    )
    with reading(engine) as session:
        return {address: _hash(data, row) for address, data, *row in session.execute(query)}


def _hash(data: bytes | None, row: list[object]) -> str:
    digest = hashlib.sha256(repr([str(row[0]), *row[1:]]).encode())
    digest.update(unpack(data).tobytes() if data else b"no curve")
    return digest.hexdigest()


def judge(
    engine: Engine, sweep_ids: list[int], trials: int, undisturbed: dict[str, str]
) -> Verdict:
    """Return the verdict on the trials of accepted sweeps.

    Args:
        engine: The database all of it happened to.
        sweep_ids: The accepted sweeps.
        trials: How many trials they have together.
        undisturbed: From `results`, of the same sweeps where nothing happened.
    """
    found = results(engine, sweep_ids)
    with reading(engine) as session:
        ends = Counter(session.scalars(text("SELECT trial_id FROM witness")))
        fingerprints = Counter(session.scalars(select(TrialRow.fingerprint)))
        again = session.scalars(select(func.count()).where(TrialRow.attempts > 1)).one()
        problems = [problem.sentence for problem in maintenance.check(session)]
    twice = sum(count > 1 for count in (*ends.values(), *fingerprints.values()))
    return Verdict(
        accepted=trials,
        lost=trials - len(found),
        doubled=twice,
        changed=sum(undisturbed.get(address) != value for address, value in found.items()),
        problems=problems,
        again=again,
    )
