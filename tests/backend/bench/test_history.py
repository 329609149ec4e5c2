"""The bench of a long history: its copies are studies like any other, on both databases."""

from pathlib import Path

import pytest
from sqlalchemy import func, select

from backend.bench import history
from backend.bench.installation import finish_everything
from backend.db import get_engine, reading, transaction
from backend.models import TrialRow
from backend.services import analysis, maintenance, studies, sweeps
from tests import factories


def test_a_copied_study_reads_as_the_first_and_contradicts_nothing(database: str) -> None:
    with transaction() as session:
        first = factories.submit(session).sweep
    finish_everything(get_engine())
    history._copy_study(get_engine(), 1, 1)
    history._tidy(get_engine())
    with reading() as session:
        assert maintenance.check(session) == []
        assert session.scalars(select(func.count()).select_from(TrialRow)).one() == 2 * first.total
        one, other = (
            [[point.mean for point in line.points] for line in found.series]
            for found in (analysis.sensitivity(session, study_id=id) for id in (1, 1_000_001))
        )
        copied = sweeps.get(session, sweep_id=first.id + 1_000_000)
    assert one == other != []
    assert copied.state.value == "completed"
    with transaction() as session:  # ids go on behind the copies
        assert factories.new_study(session).id == 1_000_002


def test_growing_stops_at_the_size_asked_for(
    sqlite_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction() as session:
        trials = factories.submit(session).sweep.total
    finish_everything(get_engine())
    monkeypatch.setattr(history, "STUDY_TRIALS", trials)
    history.grow(sqlite_database, 4 * trials)
    with reading() as session:
        assert session.scalars(select(func.count()).select_from(TrialRow)).one() == 4 * trials
        assert len(studies.page(session).items) == 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_short_history_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(history, "SIZES", (10_000, 20_000))
    rows = history.measure_history(full=False, tell=lambda _: None)
    assert {row["database"] for row in rows} == {"SQLite", "PostgreSQL"}
    assert {"history page", "submitting 2,000 trials", "db check"} <= {row["what"] for row in rows}
    assert all(len(row) == len(rows[0]) for row in rows)
