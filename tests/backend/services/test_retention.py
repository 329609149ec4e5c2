"""What is forgotten after a while, and what never is."""

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.db import clock
from backend.models import AuditRow, CurveRow, ShardRow, ShardState, TrialRow
from backend.services import maintenance, sweeps
from backend.settings import Settings
from tests import factories

DAY = 24 * 3600.0


def count(session: Session, table: type) -> int:
    return session.scalars(select(func.count()).select_from(table)).one()


def age(session: Session, days: float) -> None:
    """Make everything that has ended so many days older."""
    ended = update(ShardRow).where(ShardRow.finished_at.is_not(None))
    session.execute(ended.values(finished_at=clock(-days * DAY)))
    session.execute(update(AuditRow).values(at=clock(-days * DAY)))


def test_old_shards_go_and_every_result_stays(session: Session) -> None:
    done = factories.train_all(session, factories.submit(session))
    waiting = factories.submit(session, seeds=(7,))
    age(session, 31)
    assert maintenance.clean(session, settings=Settings()) == {"shards": 1}
    assert count(session, ShardRow) == len(waiting.shard_ids)
    assert count(session, CurveRow) == 12
    assert sweeps.get(session, sweep_id=done.id) == done
    assert maintenance.check(session) == []


def test_what_is_younger_than_asked_for_stays(session: Session) -> None:
    factories.train_all(session, factories.submit(session))
    age(session, 29)
    assert maintenance.clean(session, settings=Settings()) == {}
    age(session, 1000)
    assert maintenance.clean(session, settings=Settings(keep_shards_days=0)) == {}


def test_an_ended_shard_that_trials_still_wait_in_is_kept_however_old(session: Session) -> None:
    waiting = factories.submit(session)
    factories.train_all(session, factories.submit(session, seeds=(7,)))
    session.execute(update(ShardRow).values(state=ShardState.DONE, finished_at=clock()))
    age(session, 1000)
    assert maintenance.clean(session, settings=Settings()) == {"shards": 1}
    assert set(session.scalars(select(ShardRow.id))) == set(waiting.shard_ids)


def test_who_did_what_is_kept_for_ever_unless_told_otherwise(session: Session) -> None:
    session.add(AuditRow(at=clock(), action="study.delete", target_kind="study", target_id=1))
    session.flush()
    age(session, 400)
    assert maintenance.clean(session, settings=Settings()) == {}
    assert maintenance.clean(session, settings=Settings(keep_audit_days=365)) == {"audit": 1}


def test_a_trial_whose_shard_was_forgotten_can_be_trained_again(session: Session) -> None:
    submitted = factories.submit(session, methods=("eb",), learning_rates=(0.1,), seeds=(1,))
    sweeps.cancel(session, sweep_id=submitted.sweep.id)
    age(session, 100)
    assert maintenance.clean(session, settings=Settings()) == {"shards": 1}
    assert session.scalars(select(TrialRow.shard_id)).all() == [None]
    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    assert len(again.shard_ids) == 1
    assert maintenance.check(session) == []
