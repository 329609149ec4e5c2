"""Contradictions, made by force, are found and mended without losing a result."""

import pytest
from sqlalchemy import delete, text, update

from backend.db import clock, transaction
from backend.models import CurveRow, ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import maintenance, shards, sweeps
from tests.factories import claim, submit, train, train_all


def kinds(session) -> list[str]:
    return [problem.kind for problem in maintenance.check(session)]


def mend(session) -> None:
    maintenance.repair(session)
    assert maintenance.check(session) == []


def test_a_healthy_database_has_no_problems(session) -> None:
    train_all(session, submit(session, seeds=(1,)))
    claim(session, submit(session, seeds=(2,)).shard_ids[0])
    submit(session, seeds=(3,))
    sweeps.cancel(session, sweep_id=submit(session, seeds=(4,)).sweep.id)
    assert maintenance.check(session) == []


def test_trials_of_no_sweep_are_deleted(session) -> None:
    train_all(session, submit(session))
    session.execute(delete(SweepTrialRow).where(SweepTrialRow.position >= 10))
    assert kinds(session) == ["orphan_trials", "short_sweeps"]
    found = maintenance.repair(session)
    assert found[0].sentence.startswith("Trials that belong to no sweep: ")
    assert kinds(session) == ["short_sweeps"]  # told, but nothing can bring the links back
    assert not found[1].repairable


def test_waiting_trials_without_a_shard_get_one(session) -> None:
    made = submit(session)
    session.execute(update(TrialRow).values(shard_id=None))
    assert kinds(session) == ["trials_without_shard", "idle_shards"]
    mend(session)
    for item in shards.due(session):
        train(session, item.shard_id)
    assert sweeps.get(session, sweep_id=made.sweep.id).state is SweepState.COMPLETED


def test_running_trials_of_an_ended_shard_are_trained_again(session) -> None:
    made = submit(session)
    claim(session, made.shard_ids[0])
    ended = {"state": ShardState.DONE, "finished_at": clock()}
    session.execute(update(ShardRow).values(ended))
    assert kinds(session) == ["trials_without_shard"]
    mend(session)
    assert sweeps.get(session, sweep_id=made.sweep.id).progress["queued"] == 12


def test_running_trials_of_a_waiting_shard_are_trained_again(session) -> None:
    made = submit(session)
    session.execute(update(TrialRow).values(state=TrialState.RUNNING))
    assert kinds(session) == ["running_in_waiting_shard"]
    mend(session)
    assert sweeps.get(session, sweep_id=made.sweep.id).progress["queued"] == 12


def test_a_lease_that_nobody_took_back_is_taken_back(session) -> None:
    made = submit(session)
    claim(session, made.shard_ids[0])
    session.execute(update(ShardRow).values(lease_until=clock(-1000)))
    assert kinds(session) == ["silent_shards"]
    mend(session)
    assert sweeps.get(session, sweep_id=made.sweep.id).progress["queued"] == 12


def test_shards_without_work_are_closed(session) -> None:
    train_all(session, submit(session))
    session.execute(update(ShardRow).values(state=ShardState.QUEUED))
    assert kinds(session) == ["idle_shards"]
    mend(session)


def test_curves_of_no_trial_are_deleted(sqlite_database) -> None:
    with transaction() as session:
        train_all(session, submit(session))
    with transaction() as session:
        session.connection().exec_driver_sql("COMMIT")
        session.connection().exec_driver_sql("PRAGMA foreign_keys=OFF")
        session.connection().exec_driver_sql("BEGIN IMMEDIATE")
        session.execute(text("UPDATE curves SET trial_id = trial_id + 1000 WHERE trial_id = 1"))
        assert kinds(session) == ["lost_curves"]
        mend(session)
        assert session.query(CurveRow).count() == 11


def test_repair_never_touches_a_result(session) -> None:
    train_all(session, submit(session, seeds=(1,)), loss=0.25)
    submit(session, seeds=(2,))
    unfinished = TrialRow.state == TrialState.QUEUED
    session.execute(update(TrialRow).where(unfinished).values(shard_id=None))
    before = session.query(TrialRow.id, TrialRow.train_loss).filter(~unfinished).all()
    mend(session)
    assert session.query(TrialRow.id, TrialRow.train_loss).filter(~unfinished).all() == before


def test_many_rows_are_named_in_part(session) -> None:
    submit(session)
    session.execute(update(TrialRow).values(shard_id=None))
    sentence = maintenance.check(session)[0].sentence
    assert sentence.startswith("Trials that wait although no open shard holds them: ")
    assert sentence.endswith(" and 7 more.")


@pytest.mark.parametrize("kind", maintenance.CHECKS)
def test_every_check_runs_on_an_empty_database(session, kind) -> None:
    assert list(maintenance.CHECKS[kind].find(session)) == []


def test_rows_that_no_answer_can_hold_are_named(session) -> None:
    submit(session)
    nested = '{"a":' * 900 + "1" + "}" * 900
    for position, options in enumerate((r'{"a": "\ud800"}', nested)):
        chosen = "SELECT trial_id FROM sweep_trials WHERE position = :position"
        session.execute(
            text(f"UPDATE trials SET options = :options WHERE id = ({chosen})"),
            {"options": options, "position": position},
        )
    (found,) = maintenance.check(session)
    assert (found.kind, len(found.ids), found.repairable) == ("unreadable_trials", 2, False)
