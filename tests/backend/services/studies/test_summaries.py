"""Sweeps added up once tell the same as their trials, and are never out of date."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select, text

from backend.db import get_engine, reading, transaction
from backend.models import SweepSummaryRow
from backend.schemas import StudyRead
from backend.services import studies, sweeps
from backend.services.studies import history
from backend.services.trials import BEGUN
from ib_core.sweep.result import Outcome
from tests.backend.conftest import BODY
from tests.factories import claim, new_study, submit, train, train_all


def told() -> tuple[list[StudyRead], dict[int, object]]:
    with reading() as session:
        page = studies.page(session)
        ids = [study.id for study in page.items]
        return page.items, {**studies.sparklines(session, study_ids=ids)}


def stored() -> int:
    with reading() as session:
        return session.scalar(select(func.count()).select_from(SweepSummaryRow)) or 0


def add_up() -> int:
    items, _ = told()
    ids = [id for study in items for id in study.sweep_ids]
    return studies.store_summaries(get_engine(), sweep_ids=ids)


def test_sums_of_very_many_settings_are_shortened_and_draw_the_same(
    database: str, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep(task: str, settings: int) -> str:
        return "".join(
            f"{task},{method},{rate},1,{rate * n},{n + 1}\n"
            for method in ("eb", "ib") for n in range(settings) for rate in (0.1, 1.0)
        )  # fmt: skip

    study = None
    for rows in (sweep("large", 9) + sweep("small", 8), sweep("small", 8)):
        where = {} if study is None else {"study_id": study}
        head = "task,method,lr,seed,train_loss,epochs\n"
        study = api.post("/api/import", content=head + rows, params=where).json()["study_id"]
    whole = told()
    monkeypatch.setattr(history, "MOST_SUMS", 10)
    assert told() == whole
    assert add_up() == len(whole[0][0].sweep_ids)
    assert told() == whole
    with reading() as session:
        kept = session.scalars(select(SweepSummaryRow.curves)).all()
    assert max(len(one["rows"]) for one in kept) <= 2 * (2 * history.MOST_LINES + 1)


def test_a_summary_tells_what_the_trials_tell(database: str) -> None:
    with transaction() as session:
        study = new_study(session).id
        train_all(session, submit(session, study_id=study))
        train_all(session, submit(session, study_id=study, seeds=(1, 2, 3)), loss=1.7e308)
        diverged = submit(session, seeds=(7, 8))
        train_all(session, diverged, outcome=Outcome.DIVERGED, loss=float("nan"))
    before = told()
    assert add_up() == 3
    assert told() == before
    assert add_up() == 0, "once is enough"


def test_a_sweep_that_was_added_up_is_not_counted_again(database: str) -> None:
    """In a history of a million trials counting some thousands took twice as long."""
    with transaction() as session:
        made = submit(session)
        train_all(session, made)
    with reading() as session:
        counted = sweeps.get(session, sweep_id=made.sweep.id)
    add_up()
    asked: list[str] = []
    engine = get_engine()
    note = event.listens_for(engine, "before_cursor_execute")
    note(lambda _c, _k, statement, *_: asked.append(statement))
    with reading() as session:
        assert sweeps.get(session, sweep_id=made.sweep.id) == counted
    assert [one for one in asked if "JOIN trials" in one] == []
    assert any("sweep_summaries" in one for one in asked)


def test_only_what_can_never_change_is_added_up(database: str) -> None:
    with transaction() as session:
        waiting = submit(session, seeds=(1,))
        failed = submit(session, seeds=(2,))
        train_all(session, failed, outcome=Outcome.FAILED)
        cancelled = submit(session, seeds=(3,))
        sweeps.cancel(session, sweep_id=cancelled.sweep.id)
    assert add_up() == 0
    with transaction() as session:
        train(session, waiting.shard_ids[0])
    add_up()
    with reading() as session:
        kept = set(session.scalars(select(SweepSummaryRow.sweep_id)))
    assert kept <= {waiting.sweep.id}


def test_a_summary_of_another_version_is_made_anew_and_goes_with_its_sweep(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction() as session:
        study = new_study(session).id
        train_all(session, submit(session, study_id=study))
    add_up()
    before = told()
    monkeypatch.setattr(history, "LAYOUT", "another")
    assert told() == before
    assert add_up() == 1
    assert stored() == 1
    with transaction() as session:
        studies.delete(session, study_id=study)
    assert stored() == 0


def test_the_second_look_at_the_history_reads_no_trials(
    api: TestClient, trained: int, study: int
) -> None:
    first = api.get("/api/studies", params={"spark": "true"}).json()
    seen: list[str] = []
    event.listen(get_engine(), "before_cursor_execute", lambda *given: seen.append(given[2]))
    assert api.get("/api/studies", params={"spark": "true"}).json() == first
    assert len(first["items"][0]["spark"]) == len(BODY["methods"])
    assert [statement for statement in seen if "JOIN trials" in statement] == []


def test_what_waits_is_counted_without_being_read(database: str) -> None:
    """Among a million trials those that wait lie on as many pages as there are of them."""
    with transaction() as session:
        study = new_study(session).id
        first = submit(session, study_id=study, seeds=(1, 2))
        submit(session, study_id=study, seeds=(3, 4))
    asked: list[str] = []
    note = event.listens_for(get_engine(), "before_cursor_execute")
    note(lambda _c, _k, statement, *_: asked.append(statement))
    (item,), curves = told()
    assert item.progress["queued"] == item.total == 2 * first.sweep.total
    assert curves == {}
    reads = [one for one in asked if "JOIN trials" in one]
    assert reads
    assert all("trials.state != 'queued' AND trials.id BETWEEN" in one for one in reads)
    assert [one for one in asked if "train_loss" in one] == [], "nothing has a loss yet"


def test_the_condition_is_the_one_of_the_index(sqlite_database: str) -> None:
    """SQLite refuses an index that cannot answer; it must see that this one can."""
    asked = text(f"SELECT id FROM trials INDEXED BY ix_trials_begun WHERE {BEGUN}")
    with transaction() as session:
        made = submit(session)
        assert session.execute(asked).all() == []
        claim(session, made.shard_ids[0])
        assert len(session.execute(asked).all()) == made.sweep.total
