"""Finished trials without training: what a worker would have stored, made up in its place."""

import math
from collections.abc import Sequence

from sqlalchemy import Engine, select, update

from backend.db import clock, transaction
from backend.models import ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.services import shards
from backend.services.shards import ClaimedTrial
from ib_core.sweep import CurvePoint, Divergence, Outcome, TrialResult, TrialSpec

#: Where the made-up EB begins to break, and how many evaluations a trial reports.
BREAKING_RATE = 2.0
POINTS = 11


def finish_everything(engine: Engine) -> int:
    """Claim every waiting shard and record made-up results; return how many trials that were."""
    with transaction(engine) as session:
        waiting: Sequence[int] = session.scalars(
            select(ShardRow.id).where(ShardRow.state == ShardState.QUEUED)
        ).all()
    count = 0
    for shard_id in waiting:
        with transaction(engine) as session:
            claim = shards.claim(session, shard_id=shard_id, worker="bench")
            if claim is not None:
                finished = {trial.id: made_up(trial) for trial in claim.trials}
                count += len(shards.report(session, claim=claim, finished=finished))
                shards.finish(session, claim=claim)
    return count


def touch(engine: Engine, *, sweep_id: int) -> None:
    """Let one trial end once more, so that no kept answer about its study is true any longer."""
    with transaction(engine) as session:
        members = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id == sweep_id)
        found = session.scalars(members.limit(1)).one()
        session.execute(update(TrialRow).where(TrialRow.id == found).values(finished_at=clock()))


def made_up(trial: ClaimedTrial) -> TrialResult:
    """Return a result that depends on rate, method and seed roughly as real ones do."""
    spec = TrialSpec.from_dict(trial.spec)
    away = abs(math.log10(spec.lr))
    noise = (hash((spec.seed, spec.lr)) % 1000) / 10_000
    broken = spec.method == "eb" and spec.lr > BREAKING_RATE
    lost = broken and spec.seed % 3 == 0
    loss = math.nan if lost else 0.1 + 0.2 * away + noise + (50.0 if broken else 0.0)
    return TrialResult(
        spec=spec,
        outcome=Outcome.DIVERGED if broken else Outcome.COMPLETED,
        initial_loss=2.3,
        train_loss=loss,
        test_loss=loss * 1.05,
        train_accuracy=0.1 if broken else 0.9 - noise,
        test_accuracy=0.1 if broken else 0.88 - noise,
        divergence=Divergence(2, "loss") if broken else None,
        seconds=0.5 + noise,
        curve=_curve(loss),
        fingerprint=trial.fingerprint,
        record={"engine": "bench", "note": "made up by etascope bench, never trained"},
        error=None,
    )


def _curve(last: float) -> tuple[CurvePoint, ...]:
    end = last if math.isfinite(last) else 1e6
    return tuple(
        CurvePoint(step, step / 2, 2.3 + (end - 2.3) * step / (POINTS - 1), 2.4, 0.5, 0.5)
        for step in range(POINTS)
    )
