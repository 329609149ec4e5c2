from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import func, select, update

from backend.db import reading, transaction
from backend.models import CurveRow, SweepRow, TrialRow
from backend.schemas import TrialState
from backend.services import analysis, studies
from backend.services.reproduction import get, store_bundle, version
from backend.services.trials import ids_at, recording, stored_results
from ib_core.errors import CorruptData
from ib_core.reproduction.bundle import COLUMNS, DENSE, PACKED, Bundle
from ib_core.sweep.recording import Recording
from ib_core.sweep.result import Outcome
from tests.backend.paper.bundles import good_ib, make_bundle, result_of

TEXT, CLIPPED = "text/05_jsb_chorales", "text/06_jsb_chorales_clip_8.0"


def put(bundle):
    with transaction() as session:
        return store_bundle(session, bundle=bundle, source="a test")


def count(table):
    with reading() as session:
        return session.scalar(select(func.count()).select_from(table))


def test_a_bundle_becomes_studies_with_finished_trials(sqlite_database, tmp_path):
    stored = put(make_bundle(tmp_path, good_ib))
    assert (stored.trials, stored.new) == (28, 28)
    with reading() as session:
        sweep = session.scalars(select(SweepRow)).first()
        study = studies.get(session, study_id=sweep.study_id)
    assert study.state == "completed"
    assert {"paper", "text", "05_jsb_chorales"} <= set(study.tags)
    assert (sweep.total, sweep.imported) == (28, False)


def test_importing_twice_changes_nothing(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib)
    first = put(bundle)
    tables = (TrialRow, CurveRow, SweepRow)
    before = [count(table) for table in tables]
    again = put(bundle)
    assert (again.studies, again.new) == (first.studies, 0)
    assert [count(table) for table in tables] == before


def test_a_bundle_s_recordings_are_stored_with_its_trials(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    first = next(iter(bundle.results.values()))
    rows = np.array([[0, 2.0, 0.1, 1, 2, 3, 4], [1, 1.0, 0.1, 1, 2, 3, 4]], dtype=float)
    told = Recording(("layer",), rows, np.array([[0.0, 5.0]]))
    bundle.append(replace(first, recording=told))
    put(bundle)
    with reading() as session:
        (id_,) = session.scalars(
            select(TrialRow.id).where(TrialRow.fingerprint == first.fingerprint)
        )
        found = recording(session, trial_id=id_)
    assert (found.state, found.steps, found.sharpness) == ("done", [0, 1], [5.0])


def test_a_bundle_that_has_grown_adds_what_is_new(sqlite_database, tmp_path):
    put(make_bundle(tmp_path, good_ib, seeds=1))
    with reading() as session:  # it says how many seeds it holds, not how many are planned
        assert session.scalars(select(SweepRow)).first().spec["seeds"] == [1]
    grown = put(make_bundle(tmp_path, good_ib, seeds=3))
    assert grown.new == 28
    with reading() as session:
        sweep = session.scalars(select(SweepRow).where(SweepRow.total == 42)).first()
        assert sweep is not None
        assert studies.get(session, study_id=sweep.study_id).progress["completed"] == 42
        assert sweep.spec["seeds"] == [1, 2, 3]


def test_a_bundle_of_further_seeds_joins_the_sweeps_that_another_has_brought(
    sqlite_database, tmp_path
):
    whole = make_bundle(tmp_path / "whole", good_ib, seeds=3)
    parts = Bundle(tmp_path / "first"), Bundle(tmp_path / "further")
    for result in whole.results.values():
        parts[result.spec.seed > 1].append(result)
    for part, form in zip(parts, (PACKED, DENSE), strict=True):
        part.pack(whole.studies(), form=form)
    for part in (*parts, parts[0]):  # and whoever then loads the first one again loses nothing
        put(Bundle(part.folder))
    with reading() as session:
        sweeps = session.scalars(select(SweepRow)).all()
        assert {tuple(sweep.spec["seeds"]) for sweep in sweeps} == {(1, 2, 3)}
        sweep = next(one for one in sweeps if one.total == 42)
        assert studies.get(session, study_id=sweep.study_id).progress["completed"] == 42


@pytest.mark.parametrize("ends_first", [True, False])
def test_losses_over_training_are_here_whichever_bundle_comes_first(
    sqlite_database, tmp_path, ends_first
):
    whole = make_bundle(tmp_path / "whole", good_ib, seeds=1)
    ends = Bundle(tmp_path / "ends")
    for result in whole.results.values():
        ends.append(result)
    ends.pack(whole.studies(), form=COLUMNS)
    ends = Bundle(ends.folder)
    assert {len(result.curve) for result in ends.results.values()} == {1}
    first, second = (ends, whole) if ends_first else (whole, ends)
    put(first)
    (spec, other), versions = list(whole.results)[:2], []
    with transaction() as session:
        # Trained here to another end, and not trained yet: neither is the bundle's to change.
        ids = ids_at(session, [whole.results[one].fingerprint for one in (spec, other)])
        own, queued = (ids[whole.results[one].fingerprint] for one in (spec, other))
        session.execute(update(TrialRow).where(TrialRow.id == own).values(train_loss=7.0))
        waits = {"state": "queued", "train_loss": None, "finished_at": None}
        session.execute(update(TrialRow).where(TrialRow.id == queued).values(**waits))
        versions.append(analysis.studies_version(session, study_ids=[1]))
    assert put(second).new == 0
    with reading() as session:
        points = dict(session.execute(select(CurveRow.trial_id, CurveRow.points)).all())
        versions.append(analysis.studies_version(session, study_ids=[1]))
    kept = 1 if ends_first else 2
    assert [points.pop(one) for one in (own, queued)] == [kept, kept]
    assert set(points.values()) == {2}
    assert (versions[0] != versions[1]) == ends_first  # pictures from before are not shown again


def test_what_was_stored_can_be_found_again_as_results(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    put(bundle)
    kept = {result.fingerprint: result for result in bundle.results.values()}
    found = stored_results([*kept, "0" * 64])
    assert found.keys() == kept.keys()
    for address, result in found.items():
        assert result.spec == kept[address].spec
        assert result.train_loss == kept[address].train_loss
        assert result.curve == kept[address].curve
        assert result.record == kept[address].record


def test_without_a_database_nothing_is_found_and_none_is_made(tmp_path, monkeypatch):
    from backend.settings import get_settings

    monkeypatch.setenv("ETASCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ETASCOPE_DATABASE_URL", raising=False)
    get_settings.cache_clear()
    try:
        assert stored_results(["0" * 64]) == {}
        assert not (tmp_path / "home").exists()
    finally:
        get_settings.cache_clear()


def test_a_loss_that_is_not_finite_is_stored_as_diverged(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    spec = next(iter(bundle.results))
    bundle.append(result_of(spec, float("nan"), outcome=Outcome.DIVERGED))
    put(Bundle(tmp_path))
    with reading() as session:
        states = session.scalars(select(TrialRow.state)).all()
    assert states.count(TrialState.DIVERGED) == 1


@pytest.mark.parametrize("change", [{"fingerprint": "0" * 64}, {"record": {"engine": "1"}}])
def test_a_result_under_an_address_that_is_not_its_own_is_refused(
    sqlite_database, tmp_path, change
):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    bundle.append(replace(next(iter(bundle.results.values())), **change))
    with pytest.raises(CorruptData, match=r"music\.jsb_chorales\.jsonl, line 1") as raised:
        put(Bundle(tmp_path))
    assert "Nothing was stored" in raised.value.hint
    assert count(TrialRow) == 0


def test_a_result_may_not_stand_under_the_address_of_another(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    one, two = list(bundle.results.values())[:2]
    bundle.append(replace(one, fingerprint=two.fingerprint))
    with pytest.raises(CorruptData, match="not that of the trial's settings"):
        put(Bundle(tmp_path))


def test_results_of_another_engine_version_are_left_out(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    old = next(iter(bundle.results.values()))
    bundle.append(replace(old, record={**old.record, "engine": "0"}, fingerprint="0" * 64))
    stored = put(Bundle(tmp_path))
    assert (stored.trials, stored.new, stored.left_out) == (13, 13, 1)
    assert count(TrialRow) == 13


def test_the_paper_is_judged_and_clipping_paired_on_either_database(database, tmp_path):
    with reading() as session:
        before = version(session)
    put(make_bundle(tmp_path, good_ib, (TEXT, CLIPPED), seeds=3))
    with reading() as session:
        assert version(session) != before
        found = {one.id: one.text for one in get(session).experiments}
        assert found["05_jsb_chorales"].verdict == "reproduced"
        assert len(found["06_jsb_chorales_clip_8.0"].clipping) == 4
        study = session.scalar(
            select(SweepRow.study_id).where(SweepRow.idempotency_key.contains("06_jsb"))
        )
        used = analysis.difference_studies(session, study_id=study, kind="clip")
        assert used[0] == study
        assert 2 <= len(used) <= 5  # the experiment without clipping, and who shares its trials
        assert analysis.difference_studies(session, study_id=study, kind="method") == [study]
        paired = analysis.differences(session, study_id=study, kind="clip")
        assert [len(item.points) for item in paired.items] == [7, 7]
