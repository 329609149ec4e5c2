"""Trials replayed by a worker for real: claimed, trained alone, compared, stored."""

from dataclasses import replace

import pytest
from sqlalchemy import func, insert, select

from backend.db import clock, reading, transaction
from backend.errors import Conflict
from backend.models import RecordingRow, ShardState, SweepRow, TrialRow, UserRow
from backend.schemas import RecordingRead
from backend.services import shards, studies, sweeps, trials
from backend.services.errands import (
    REPLAYS,
    claim_replay,
    fail_replay,
    renew_replay,
    request_replay,
)
from backend.services.workers import Worker
from ib_core.sweep import TrialSpec, Wish, run_trials
from tests.factories import claim, result, submit, sweep_spec
from worker import training
from worker.reporter import StopFlag, Stopped

WORKER = Worker("one", "host", 1, "cpu")


def trained(
    record: tuple[str, ...] = (), methods: tuple[str, ...] = ("eb", "ib")
) -> dict[tuple[str, float], int]:
    """Train EB and IB at two rates for real; return the trials' ids."""
    with transaction() as session:
        made = submit(
            session, methods=methods, learning_rates=(1.0, 3.0), seeds=(1,), record=record
        )
        found = {}
        for shard_id in made.shard_ids:
            taken = claim(session, shard_id)
            specs = [
                replace(
                    TrialSpec.from_dict(one.spec), wish=Wish(one.record) if one.record else None
                )
                for one in taken.trials
            ]
            results = dict(zip((t.id for t in taken.trials), run_trials(specs), strict=True))
            shards.report(session, claim=taken, finished=results)
            shards.finish(session, claim=taken)
            found |= {(r.spec.method, r.spec.lr): id for id, r in results.items()}
    return found


def asked(trial_id: int) -> None:
    with transaction() as session:
        assert request_replay(session, trial_id=trial_id, device="auto", owner_id=None)


def answer(trial_id: int) -> RecordingRead:
    with reading() as session:
        return trials.recording(session, trial_id=trial_id)


def test_a_replay_gives_the_stored_numbers_and_stores_a_recording(database, quick) -> None:
    ids = trained()
    broken = ids["eb", 3.0]
    assert answer(broken).state == "none"
    asked(broken)
    with transaction() as session:  # a second wish changes nothing
        assert not request_replay(session, trial_id=broken, device="auto", owner_id=None)
        before = session.get_one(TrialRow, broken).train_loss
    training.replay(broken, worker=WORKER, stopping=StopFlag())
    found = answer(broken)
    assert (found.state, found.same) == ("done", True)
    assert "digit by digit" in found.agreement
    assert found.steps[0] == 0
    assert found.broke_at is not None
    assert len(found.weights) == len(found.layers) == 1
    assert any("2/rate = 0.667" in sentence for sentence in found.story)
    assert [(one.trial_id, one.recorded) for one in found.beside] == [(ids["ib", 3.0], False)]
    with reading() as session:
        assert session.get_one(TrialRow, broken).train_loss == before
        assert "sharpness" in "".join(trials.export_recording(session, trial_id=broken))
    training.replay(broken, worker=WORKER, stopping=StopFlag())  # nothing left to claim
    with reading() as session:
        assert session.get_one(RecordingRow, broken).attempts == 1


def test_a_replay_says_how_far_off_it_is(database, quick) -> None:
    trial_id = trained()["ib", 1.0]
    with transaction() as session:
        session.get_one(TrialRow, trial_id).train_loss = 123.0
    asked(trial_id)
    training.replay(trial_id, worker=WORKER, stopping=StopFlag())
    found = answer(trial_id)
    assert found.same is False
    assert "off by" in found.agreement


def test_a_sweep_that_records_stores_it_with_the_result(database, quick) -> None:
    ids = trained(record=("norms",))
    found = answer(ids["ib", 1.0])
    assert found.state == "done"
    assert found.agreement is None
    assert found.sharpness == []
    assert found.total == len(found.steps) > 2
    assert [one.recorded for one in found.beside] == [True]


def test_a_killed_workers_replay_is_taken_over_and_its_late_result_refused(database, quick) -> None:
    trial_id = trained()["eb", 1.0]
    asked(trial_id)
    with transaction() as session:
        lost = claim_replay(session, trial_id=trial_id, worker="dead")
        assert lost is not None
        session.get_one(RecordingRow, trial_id).lease_until = clock(-1)
    with transaction() as session:
        assert REPLAYS.due(session) == [(trial_id, "cpu")]
    training.replay(trial_id, worker=WORKER, stopping=StopFlag())
    assert answer(trial_id).state == "done"
    with transaction() as session:
        assert not renew_replay(session, claim=lost, progress=0.5)
        assert not fail_replay(session, claim=lost, error="late")


def test_a_worker_that_stops_gives_the_replay_back(database, quick, monkeypatch) -> None:
    trial_id = trained()["eb", 1.0]
    asked(trial_id)

    def stopped(*_args, **_options):
        raise Stopped

    monkeypatch.setattr(training, "replay_trial", stopped)
    training.replay(trial_id, worker=WORKER, stopping=StopFlag())
    with reading() as session:
        row = session.get_one(RecordingRow, trial_id)
        assert (row.state.value, row.attempts, row.worker) == ("queued", 0, None)


def test_a_replay_that_breaks_fails_after_a_few_attempts(database, quick, monkeypatch) -> None:
    trial_id = trained()["eb", 1.0]
    asked(trial_id)

    def broken(*_args, **_options):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(training, "replay_trial", broken)
    for _ in range(3):
        training.replay(trial_id, worker=WORKER, stopping=StopFlag())
    found = answer(trial_id)
    assert (found.state, found.error) == ("failed", "RuntimeError: no such thing")
    asked(trial_id)  # it may be tried again


def test_only_what_ended_here_can_be_replayed(database, quick) -> None:
    with transaction() as session:
        made = submit(session, methods=("eb",), learning_rates=(1.0,), seeds=(1,))
        waiting = claim(session, made.shard_ids[0]).trials[0].id
        with pytest.raises(Conflict, match="completed or diverged"):
            request_replay(session, trial_id=waiting, device="auto", owner_id=None)
    done = trained()["ib", 3.0]
    with transaction() as session:
        session.get_one(TrialRow, done).engine_version = "0"
        with pytest.raises(Conflict, match="not trained by this engine"):
            request_replay(session, trial_id=done, device="auto", owner_id=None)


GRID = {"methods": ("eb", "ib"), "learning_rates": (1.0, 3.0), "seeds": (1,)}


def waiting() -> set[int]:
    """Return the trials whose replays wait for a worker."""
    query = select(RecordingRow.trial_id).where(RecordingRow.state == ShardState.QUEUED)
    with reading() as session:
        return set(session.scalars(query))


def test_known_trials_that_a_sweep_wants_recorded_are_replayed(database, quick) -> None:
    ids = trained()
    with transaction() as session:
        plain = sweeps.dry_run(session, spec=sweep_spec(**GRID))
        wished = sweeps.dry_run(session, spec=sweep_spec(**GRID, record=("sharpness",)))
        made = submit(session, **GRID, record=("sharpness",))
    assert (plain.reused, plain.replays, plain.cost_seconds) == (4, 0, 0.0)
    assert (wished.reused, wished.replays, wished.shards) == (4, 4, 4)
    assert wished.cost_seconds > 0
    assert made.sweep.messages == ["4 trials are still to be replayed to be recorded"]
    assert waiting() == set(ids.values())
    for trial_id in ids.values():
        training.replay(trial_id, worker=WORKER, stopping=StopFlag())
        assert len(answer(trial_id).sharpness) > 1
    with transaction() as session:
        again = submit(session, **GRID, record=("norms", "sharpness"))
        assert sweeps.dry_run(session, spec=sweep_spec(**GRID, record=("norms",))).replays == 0
    assert (again.sweep.messages, waiting()) == ([], set())


def test_what_was_recorded_is_not_replayed_unless_more_is_wished_for(database, quick) -> None:
    ids = trained(record=("norms",))
    with transaction() as session:
        submit(session, **GRID, record=("norms",))
    assert waiting() == set()
    with transaction() as session:
        submit(session, **GRID, record=("norms", "sharpness"))
    assert waiting() == set(ids.values())
    with transaction() as session:  # twice asked for is done once
        submit(session, **GRID, record=("norms", "sharpness"))
        assert session.scalar(select(func.count()).select_from(RecordingRow)) == 4
    assert len(answer(ids["eb", 1.0]).weights) == 1  # what there is stays until then


def test_a_wish_that_comes_while_a_trial_trains_is_met_by_a_replay(database, quick) -> None:
    with transaction() as session:
        made = submit(session, **GRID)
        taken = [claim(session, shard_id) for shard_id in made.shard_ids]
    with transaction() as session:
        late = submit(session, **GRID, record=("norms",))
        assert late.shard_ids == []
    assert waiting() == set()
    with transaction() as session:
        for one in taken:
            finished = {trial.id: result(trial) for trial in one.trials}
            shards.report(session, claim=one, finished=finished)
    assert waiting() == {trial.id for one in taken for trial in one.trials}


def wished(*record: str) -> int:
    """Submit the grid with a wish; return the sweep's id."""
    with transaction() as session:
        return submit(session, **GRID, record=record).sweep.id


def cancel(sweep_id: int) -> None:
    with transaction() as session:
        sweeps.cancel(session, sweep_id=sweep_id)


def test_cancelling_a_sweep_calls_off_the_replays_that_only_it_wished_for(database, quick) -> None:
    ids = set(trained().values())
    first, second = wished("norms"), wished("sharpness")
    by_hand = min(ids)
    asked_for = {"trial_id": by_hand, "device": "auto"}
    cancel(first)
    assert waiting() == ids, "another sweep wishes for them"
    cancel(second)
    assert waiting() == set()
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(RecordingRow)) == 0
        assert sweeps.get(session, sweep_id=second).replays == 0
    with transaction() as session:
        name = session.scalars(insert(UserRow).values(name="anna").returning(UserRow.id)).one()
        assert request_replay(session, **asked_for, owner_id=name)
    cancel(wished("norms"))
    assert waiting() == {by_hand}, "somebody asked for it"
    with transaction() as session:
        sweeps.retry(session, sweep_id=second)
    assert waiting() == ids


def test_a_replay_that_was_called_off_ends_and_leaves_what_was_recorded(
    database, quick, monkeypatch
) -> None:
    ids = trained(record=("norms",))
    sweep_id = wished("norms", "sharpness")
    trial_id = min(ids.values())
    before = answer(trial_id)
    real, renewed = training.replay_trial, []

    def called_off(*args, **options):
        cancel(sweep_id)
        monkeypatch.setattr(training, "RENEW_SECONDS", 0.0)
        renewed.append(True)
        return real(*args, **options)

    monkeypatch.setattr(training, "replay_trial", called_off)
    training.replay(trial_id, worker=WORKER, stopping=StopFlag())
    found = answer(trial_id)
    assert renewed
    assert (found.state, found.agreement, before.sharpness) == ("done", None, [])
    assert (found.weights, found.sharpness) == (before.weights, [])


def test_deleting_a_study_calls_off_its_replays_of_others_trials(database, quick) -> None:
    ids = set(trained().values())
    wished_in = wished("norms")
    assert waiting() == ids
    with transaction() as session:
        study_id = session.get_one(SweepRow, wished_in).study_id
        assert studies.delete(session, study_id=study_id) == 0, "another study has its trials"
    assert waiting() == set()


def test_a_replay_that_failed_is_asked_for_again(database, quick) -> None:
    trial_id = trained()["eb", 1.0]
    one = {"methods": ("eb",), "learning_rates": (1.0,), "seeds": (1,), "record": ("norms",)}
    with transaction() as session:
        submit(session, **one)
        session.get_one(RecordingRow, trial_id).error = "It broke."
        session.get_one(RecordingRow, trial_id).state = ShardState.FAILED
    with transaction() as session:
        submit(session, **one)
    assert waiting() == {trial_id}
    with reading() as session:
        assert session.get_one(RecordingRow, trial_id).error is None


def test_a_rate_that_is_no_step_size_is_not_compared_with(database, quick) -> None:
    ids = trained(("norms", "sharpness"), methods=("eb", "sps"))
    plain, ceiling = answer(ids["eb", 1.0]), answer(ids["sps", 1.0])
    assert set(plain.rates) == {1.0}
    assert len(ceiling.rates) == len(ceiling.steps)
    assert set(ceiling.rates) == {None}
    assert ceiling.sharpness
    assert ["2/rate" in " ".join(one.story) for one in (plain, ceiling)] == [True, False]
