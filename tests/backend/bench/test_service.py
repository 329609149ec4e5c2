"""The service's bench: what it prints, and that it cannot measure an answer that was kept."""

import time

from backend.bench.installation import finish_everything, touch
from backend.bench.service import Row
from backend.db import get_engine, reading, transaction
from backend.services import analysis, maintenance, sweeps
from tests import factories


def test_a_promise_is_judged_by_the_slow_ones() -> None:
    quick = Row("reads", tuple([10.0] * 99 + [900.0]), "ms", 300.0)
    slow = Row("reads", tuple([10.0] * 9 + [900.0]), "ms", 300.0)
    assert (quick.met, slow.met) == (True, False)
    assert slow.cells()["p50"] == 10.0
    assert Row("memory", (500.0,), "MB", None).met


def test_made_up_results_are_stored_as_a_worker_would(sqlite_database: str) -> None:
    with transaction() as session:
        submitted = factories.submit(session)
    assert finish_everything(get_engine()) == 12
    with reading() as session:
        found = sweeps.get(session, sweep_id=submitted.sweep.id)
        assert maintenance.check(session) == []
    assert (found.progress["completed"], found.progress["diverged"]) == (10, 2)


def test_before_every_read_kept_answers_become_old(sqlite_database: str) -> None:
    with transaction() as session:
        submitted = factories.submit(session)
    finish_everything(get_engine())
    seen = set()
    for _ in range(3):
        time.sleep(0.002)  # SQLite's clock ticks in milliseconds
        touch(get_engine(), sweep_id=submitted.sweep.id)
        with reading() as session:
            study = submitted.sweep.study_id
            seen.add(analysis.studies_version(session, study_ids=[study]))
    assert len(seen) == 3
