"""Studies: what they hold, and what goes with them."""

from functools import partial

import pytest
from sqlalchemy import func, select

from backend.errors import NotFound
from backend.models import CurveRow, ShardRow, SweepRow, TrialRow, UserRow
from backend.schemas import StudyUpdate, SweepState
from backend.services import maintenance, studies, sweeps
from tests.factories import claim, new_study, submit, train_all


def count(session, table) -> int:
    return session.scalar(select(func.count()).select_from(table))


def test_a_new_study_is_empty(session) -> None:
    study = new_study(session, "Why?", tags=["b", "a", "b"], notes="*note*")
    assert (study.name, study.tags, study.notes) == ("Why?", ["a", "b"], "*note*")
    assert (study.state, study.total, study.owner, study.archived) == (None, 0, None, False)
    assert study.created_at.tzinfo is not None


def test_a_study_tells_what_its_sweeps_are_about(session) -> None:
    study = new_study(session)
    submit(session, study.id, methods=("eb",))
    submit(session, study.id, methods=("ib", "eb"), task="bundled/iris")
    read = studies.get(session, study_id=study.id)
    assert (read.tasks, read.methods) == (["toy/quadratic", "bundled/iris"], ["eb", "ib"])
    assert len(read.sweep_ids) == 2


def test_a_trial_in_two_sweeps_of_a_study_is_counted_once(session) -> None:
    study = new_study(session)
    submit(session, study.id, seeds=(1, 2))
    submit(session, study.id, seeds=(2, 3))
    read = studies.get(session, study_id=study.id)
    assert (read.total, read.progress["queued"]) == (18, 18)


def test_a_study_is_what_its_most_urgent_sweep_is(session) -> None:
    study = new_study(session)
    first = submit(session, study.id, seeds=(1,))
    train_all(session, first)
    assert studies.get(session, study_id=study.id).state is SweepState.COMPLETED
    second = submit(session, study.id, seeds=(2,))
    assert studies.get(session, study_id=study.id).state is SweepState.QUEUED
    claim(session, second.shard_ids[0])
    assert studies.get(session, study_id=study.id).state is SweepState.RUNNING


def test_a_change_leaves_alone_what_it_does_not_name(session) -> None:
    study = new_study(session, "old", tags=["t"], notes="n")
    changed = studies.update(session, study_id=study.id, payload=StudyUpdate(name="new"))
    assert (changed.name, changed.tags, changed.notes) == ("new", ["t"], "n")
    assert changed.updated_at >= study.updated_at


def test_tags_notes_and_archive_can_be_emptied(session) -> None:
    study = new_study(session, tags=["t"], notes="n")
    gone = StudyUpdate(tags=[], notes="", archived=True)
    changed = studies.update(session, study_id=study.id, payload=gone)
    assert (changed.tags, changed.notes, changed.archived) == ([], "", True)
    back = studies.update(session, study_id=study.id, payload=StudyUpdate(archived=False))
    assert not back.archived


def test_deleting_takes_along_what_nobody_else_holds(session) -> None:
    mine, theirs = new_study(session), new_study(session)
    train_all(session, submit(session, mine.id, seeds=(1, 2)))
    kept = submit(session, theirs.id, seeds=(2, 3))
    assert studies.delete(session, study_id=mine.id) == 6
    assert count(session, TrialRow) == 12
    assert count(session, CurveRow) == 6
    assert count(session, SweepRow) == 1
    assert train_all(session, kept).state is SweepState.COMPLETED
    assert maintenance.check(session) == []


def test_deleting_a_waiting_study_leaves_no_shard(session) -> None:
    made = submit(session)
    studies.delete(session, study_id=made.sweep.study_id)
    assert count(session, ShardRow) == count(session, TrialRow) == 0


def test_a_deleted_study_can_be_made_again(session) -> None:
    made = submit(session)
    train_all(session, made)
    studies.delete(session, study_id=made.sweep.study_id)
    again = submit(session)
    assert again.sweep.reused == 0
    assert again.sweep.id != made.sweep.id


def test_the_owner_is_named(session) -> None:
    session.add(UserRow(id=5, name="ada"))
    session.flush()
    study = new_study(session, owner_id=5)
    assert study.owner == "ada"
    assert studies.owner_of(session, study_id=study.id) == 5


@pytest.mark.parametrize(
    "verb",
    [
        studies.get,
        studies.delete,
        studies.owner_of,
        partial(sweeps.page, limit=1),
        lambda session, study_id: studies.update(
            session, study_id=study_id, payload=StudyUpdate(name="x")
        ),
    ],
)
def test_a_study_that_is_not_there_is_said_not_to_be(session, verb) -> None:
    with pytest.raises(NotFound, match="no study 9"):
        verb(session, study_id=9)
