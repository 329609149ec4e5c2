"""Submitting a sweep: what is shared, what is trained, what is refused."""

import time
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from backend.db import transaction
from backend.errors import Conflict, InvalidInput, NotFound, TooLarge
from backend.models import ShardRow, SweepTrialRow, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import shards, sweeps
from backend.settings import get_settings
from ib_core.datasets import data_hash
from ib_core.sweep.result import Outcome, fingerprint
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import find_task
from tests.factories import TASK, claim, new_study, result, submit, sweep_spec, train_all


def count(session, table) -> int:
    return session.scalar(select(func.count()).select_from(table))


def test_a_new_sweep_is_queued_whole(session) -> None:
    submitted = submit(session)
    sweep = submitted.sweep
    assert (sweep.state, sweep.total, sweep.reused) == (SweepState.QUEUED, 12, 0)
    assert sweep.progress == dict.fromkeys(TrialState, 0) | {"queued": 12}
    assert sweep.spec["learning_rates"] == [0.1, 1.0, 3.0]
    assert count(session, TrialRow) == 12
    assert len(submitted.shard_ids) == count(session, ShardRow) >= 1


def test_every_trial_is_in_exactly_one_shard(session) -> None:
    submitted = submit(session)
    sizes = [len(claim(session, id).trials) for id in submitted.shard_ids]
    assert sum(sizes) == 12


def test_a_trial_comes_out_of_the_database_as_it_went_in(session) -> None:
    spec = sweep_spec(learning_rates=(0.1, 1 / 3, 1e-12, 1e12), clips=(None, 0.1 + 0.2))
    made = sweeps.submit(session, study_id=new_study(session).id, spec=spec, body={}, owner_id=None)
    found = [t.spec for id in made.shard_ids for t in claim(session, id).trials]
    wanted = [trial.as_dict() for trial in spec.expand()]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_a_claimed_trial_has_the_address_it_was_stored_under(session) -> None:
    """Even where a driver returns 3 for 3.0, which is equal but hashes to another address."""
    made = submit(session, learning_rates=(0.1, 1.0, 3.0), clips=(None, 1.0), mu=2.0)
    data = data_hash(find_task(TASK).dataset)
    for shard_id in made.shard_ids:
        for trial in claim(session, shard_id).trials:
            assert fingerprint(TrialSpec.from_dict(trial.spec), data) == trial.fingerprint


def test_repeating_a_finished_sweep_trains_nothing(session) -> None:
    first = submit(session)
    train_all(session, first)
    again = submit(session)
    assert again.shard_ids == []
    assert (again.sweep.state, again.sweep.reused) == (SweepState.COMPLETED, 12)


def test_extending_a_grid_trains_only_what_is_missing(session) -> None:
    train_all(session, submit(session))
    wider = submit(session, learning_rates=(0.1, 1.0, 3.0, 5.0), seeds=(1, 2, 3))
    assert (wider.sweep.total, wider.sweep.reused) == (24, 12)
    assert sum(len(claim(session, id).trials) for id in wider.shard_ids) == 12


def test_trials_that_another_sweep_is_training_are_not_trained_twice(session) -> None:
    first = submit(session)
    running = claim(session, first.shard_ids[0])
    second = submit(session)
    assert second.shard_ids == []
    assert second.sweep.reused == 12
    assert second.sweep.progress["running"] == len(running.trials)
    train_all(session, first) if len(first.shard_ids) > 1 else None
    finished = {t.id: result(t) for t in running.trials}
    shards.report(session, claim=running, finished=finished)
    assert sweeps.get(session, sweep_id=second.sweep.id).progress["completed"] >= len(finished)


def test_failed_and_cancelled_trials_are_trained_again_by_a_new_sweep(session) -> None:
    failed = submit(session, seeds=(1,))
    train_all(session, failed, outcome=Outcome.FAILED)
    cancelled = submit(session, seeds=(2,))
    sweeps.cancel(session, sweep_id=cancelled.sweep.id)
    both = submit(session, seeds=(1, 2))
    assert both.sweep.reused == 0
    assert both.sweep.progress["queued"] == 12
    assert train_all(session, both).state is SweepState.COMPLETED


def test_the_order_of_a_grid_does_not_make_other_trials(session) -> None:
    submit(session, seeds=(1, 2), methods=("eb", "ib"))
    again = submit(session, seeds=(2, 1), methods=("ib", "eb"))
    assert again.sweep.reused == 12


@pytest.mark.parametrize(
    "change", [{"epochs": 2}, {"mu": 0.1}, {"clips": (1.0,)}, {"activation": "relu"}]
)
def test_another_setting_makes_another_trial(session, change) -> None:
    submit(session)
    assert submit(session, **change).sweep.reused == 0


def test_one_key_and_one_body_make_one_sweep(session) -> None:
    study = new_study(session)
    made = [submit(session, study.id, idempotency_key="k", body={"a": 1}) for _ in range(2)]
    assert made[0].sweep.id == made[1].sweep.id
    assert made[1].shard_ids == []
    assert count(session, SweepTrialRow) == 12


def test_one_key_and_two_bodies_are_a_conflict(session) -> None:
    study = new_study(session)
    submit(session, study.id, idempotency_key="k", body={"a": 1})
    with pytest.raises(Conflict, match="used before, for another sweep"):
        submit(session, study.id, idempotency_key="k", body={"a": 2})


def test_one_key_may_be_used_in_two_studies(session) -> None:
    made = {submit(session, idempotency_key="k").sweep.id for _ in range(2)}
    assert len(made) == 2


def test_a_missing_study_is_said_to_be_missing(database) -> None:
    with pytest.raises(NotFound, match="no study 77"), transaction() as session:
        submit(session, 77)


def test_nothing_is_stored_when_the_transaction_fails(database) -> None:
    def submit_two() -> None:
        with transaction() as session:
            submit(session)
            submit(session, 77)

    with pytest.raises(NotFound):
        submit_two()
    with transaction() as session:
        assert [count(session, t) for t in (TrialRow, ShardRow, SweepTrialRow)] == [0, 0, 0]


def test_a_sweep_above_the_services_limit_is_refused(session, monkeypatch) -> None:
    monkeypatch.setattr(get_settings(), "max_trials", 11)
    with pytest.raises(TooLarge, match="at most 11 trials; this one has 12"):
        submit(session)


def test_an_unknown_device_is_refused(session) -> None:
    spec = replace(sweep_spec(), device="tpu")
    with pytest.raises(InvalidInput, match="auto, cpu, cuda; got 'tpu'"):
        sweeps.dry_run(session, spec=spec)


def test_a_dry_run_tells_what_submitting_does(session) -> None:
    train_all(session, submit(session, seeds=(1,)))
    forecast = sweeps.dry_run(session, spec=sweep_spec())
    assert (forecast.trials, forecast.reused) == (12, 6)
    assert forecast.cost_seconds > 0
    assert forecast.messages == ["no worker is alive: start one with etascope worker"]
    submitted = submit(session)
    assert (submitted.sweep.reused, len(submitted.shard_ids)) == (6, forecast.shards)


def test_a_dry_run_stores_nothing(session) -> None:
    sweeps.dry_run(session, spec=sweep_spec())
    assert count(session, TrialRow) == 0


def test_two_thousand_trials_are_submitted_in_a_moment(database) -> None:
    rates = tuple(0.001 * n for n in range(1, 101))
    with transaction() as session:
        study = new_study(session)
        began = time.process_time()  # not the wall's: the machine may be busy with other things
        made = submit(session, study.id, learning_rates=rates, seeds=tuple(range(1, 11)))
        took = time.process_time() - began
    assert made.sweep.total == 2000
    assert took < 2.0, f"took {took:.2f} s"
