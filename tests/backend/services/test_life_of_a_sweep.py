"""Everything in any order: no trial is ever lost, doubled or stuck."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, select, update

from backend.db import clock, dispose_engines, reading, transaction
from backend.errors import Conflict
from backend.models import ShardRow, ShardState, StudyRow, SweepRow, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import maintenance, shards, studies, sweeps
from backend.settings import get_settings
from ib_core.sweep.result import Outcome
from tests.factories import new_study, result, submit

outcomes = st.sampled_from(Outcome)
seeds = st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True)


class LifeOfSweeps(RuleBasedStateMachine):
    """Users submit, cancel, retry and delete; workers claim, record, fail, vanish and return."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.finished: dict[str, float] = {}
        with transaction() as session:  # an example that failed leaves its rows behind
            for table in (StudyRow, TrialRow, ShardRow):
                session.execute(delete(table))

    @rule(seeds=seeds, methods=st.sampled_from([("eb",), ("ib",), ("eb", "ib")]))
    def submit(self, seeds: list[int], methods: tuple[str, ...]) -> None:
        with transaction() as session:
            study = new_study(session)
            submit(session, study.id, seeds=seeds, methods=methods, learning_rates=(0.1, 1.0))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if sweep_id := self._any(data, SweepRow.id):
            with transaction() as session:
                sweeps.cancel(session, sweep_id=sweep_id)

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if sweep_id := self._any(data, SweepRow.id):
            try:
                with transaction() as session:
                    sweeps.retry(session, sweep_id=sweep_id)
            except Conflict:
                pass

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if study_id := self._any(data, SweepRow.study_id):
            with transaction() as session:
                studies.delete(session, study_id=study_id)
                self._forget_deleted(session)

    @rule(target=claims, data=st.data())
    def claim(self, data: st.DataObject):
        shard_id = self._any(data, ShardRow.id)
        with transaction() as session:
            return shards.claim(session, shard_id=shard_id or 1, worker="worker")

    @rule(claim=claims, outcome=outcomes, data=st.data())
    def record(self, claim, outcome: Outcome, data: st.DataObject) -> None:
        if claim is None:
            return
        trial = data.draw(st.sampled_from(claim.trials))
        loss = data.draw(st.floats(0, 1))
        with transaction() as session:
            finished = {trial.id: result(trial, outcome=outcome, loss=loss)}
            stored = shards.report(session, claim=claim, finished=finished)
        if stored and outcome is not Outcome.FAILED:
            assert trial.fingerprint not in self.finished, "a trial was counted twice"
            self.finished[trial.fingerprint] = loss

    @rule(claim=consumes(claims), how=st.sampled_from(["finish", "release", "fail", "vanish"]))
    def end(self, claim, how: str) -> None:
        if claim is None:
            return
        with transaction() as session:
            if how == "finish":
                shards.finish(session, claim=claim)
            elif how == "release":
                shards.release(session, claim=claim)
            elif how == "fail":
                shards.fail(session, claim=claim, error="broke")

    @rule(claim=claims)
    def ask(self, claim) -> None:
        if claim is not None:
            with transaction() as session:
                shards.drop_unwanted(session, claim=claim)

    @rule()
    def time_passes(self) -> None:
        with transaction() as session:
            session.execute(update(ShardRow).values(not_before=None))
            running = ShardRow.state == ShardState.RUNNING
            session.execute(update(ShardRow).where(running).values(lease_until=clock(-1)))
            shards.expire(session)
            shards.due(session)

    @invariant()
    def nothing_contradicts(self) -> None:
        with reading() as session:
            assert maintenance.check(session) == []

    @invariant()
    def results_stay(self) -> None:
        good = (TrialState.COMPLETED, TrialState.DIVERGED)
        with reading() as session:
            query = select(TrialRow.fingerprint, TrialRow.train_loss)
            found = dict(session.execute(query.where(TrialRow.state.in_(good))).all())
        assert found == self.finished

    def teardown(self) -> None:
        """Let honest workers finish: every sweep comes to an end, whatever happened before."""
        for _ in range(8):
            self.time_passes()
            with transaction() as session:
                session.execute(update(ShardRow).values(not_before=None))
                waiting = session.scalars(
                    select(ShardRow.id).where(ShardRow.state == ShardState.QUEUED)
                ).all()
                if not waiting:
                    break
                for shard_id in waiting:
                    taken = shards.claim(session, shard_id=shard_id, worker="honest")
                    if taken is not None:
                        done = {trial.id: result(trial) for trial in taken.trials}
                        shards.report(session, claim=taken, finished=done)
                        shards.finish(session, claim=taken)
        with reading() as session:
            ids = session.scalars(select(SweepRow.id)).all()
            open_states = {SweepState.QUEUED, SweepState.RUNNING}
            assert not open_states & {sweeps.get(session, sweep_id=id).state for id in ids}

    def _any(self, data: st.DataObject, column) -> int | None:
        with reading() as session:
            ids = session.scalars(select(column).order_by(column)).all()
        return data.draw(st.sampled_from(ids)) if ids else None

    def _forget_deleted(self, session) -> None:
        left = set(session.scalars(select(TrialRow.fingerprint)))
        self.finished = {key: loss for key, loss in self.finished.items() if key in left}


def run(monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(get_settings(), "retry_seconds", 0.0)
    run_state_machine_as_test(
        LifeOfSweeps,
        settings=hypothesis_settings(max_examples=examples, stateful_step_count=25, deadline=None),
    )


def test_on_sqlite(sqlite_template: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else home
    file = memory / f"etascope-life-{os.getpid()}.db"
    shutil.copy(sqlite_template, file)
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", f"sqlite:///{file}")
    get_settings.cache_clear()
    try:
        run(monkeypatch, min(hypothesis_settings().max_examples // 4, 100))
    finally:
        dispose_engines()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)


def test_on_postgresql(postgresql_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, min(hypothesis_settings().max_examples // 16, 25))
