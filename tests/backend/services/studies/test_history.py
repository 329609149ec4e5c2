"""The history: every filter, every order, and a fixed number of queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, update

from backend.db import get_engine
from backend.errors import InvalidInput
from backend.models import StudyRow, UserRow
from backend.schemas import StudyUpdate, SweepState
from backend.services import shards, studies, sweeps
from backend.services.studies import Filters, history
from ib_core.sweep.result import Outcome
from tests.factories import claim, new_study, result, submit, train, train_all


def names(session, sort: str = "name", **filters) -> list[str]:
    asked = Filters(**filters)
    return [s.name for s in studies.page(session, filters=asked, sort=sort).items]


@contextmanager
def counted_queries() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        seen.append(statement)

    event.listen(get_engine(), "before_cursor_execute", note)
    yield seen
    event.remove(get_engine(), "before_cursor_execute", note)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["Alpha", "Beta 100%", "Gamma"]),
        ({"q": "alpha"}, ["Alpha"]),
        ({"q": "ALP"}, ["Alpha"]),
        ({"q": "100%"}, ["Beta 100%"]),
        ({"q": "%"}, ["Beta 100%"]),
        ({"q": "_"}, []),
        ({"q": "digits"}, ["Alpha"]),
        ({"q": "robust rate"}, ["Gamma"]),
        ({"q": "robust alpha"}, []),
        ({"q": ""}, ["Alpha", "Beta 100%", "Gamma"]),
        ({"tag": "digits"}, ["Alpha"]),
        ({"tag": "digit"}, []),
        ({"owner": "ada"}, ["Beta 100%"]),
        ({"owner": "bob"}, []),
        ({"task": "toy/quadratic"}, ["Gamma"]),
        ({"task": "toy"}, []),
        ({"archived": True}, ["Old"]),
        ({"archived": None}, ["Alpha", "Beta 100%", "Gamma", "Old"]),
    ],
)
def test_filters(session, filters, found) -> None:
    session.add(UserRow(id=1, name="ada"))
    session.flush()
    new_study(session, "Alpha", tags=["digits", "first"])
    new_study(session, "Beta 100%", owner_id=1)
    gamma = new_study(session, "Gamma", notes="how robust is the rate?")
    submit(session, gamma.id)
    old = new_study(session, "Old")
    studies.update(session, study_id=old.id, payload=StudyUpdate(archived=True))
    assert names(session, **filters) == found


def test_since_includes_and_until_excludes_the_moment(session) -> None:
    for day in (1, 2, 3):
        study = new_study(session, f"day {day}")
        then = {"created_at": datetime(2026, 1, day, tzinfo=UTC)}
        session.execute(update(StudyRow).where(StudyRow.id == study.id).values(then))
    second = datetime(2026, 1, 2, tzinfo=UTC)
    assert names(session, since=second) == ["day 2", "day 3"]
    assert names(session, until=second) == ["day 1"]
    eastern = datetime.fromisoformat("2026-01-02T03:00:00+03:00")
    assert names(session, since=eastern) == ["day 2", "day 3"]


@pytest.fixture
def one_of_each(session) -> None:
    """A study in every state, named after it, and some that are harder to tell."""
    new_study(session, "empty")
    submit(session, new_study(session, "queued").id, seeds=(1,))
    running = submit(session, new_study(session, "running").id, seeds=(2,))
    claim(session, running.shard_ids[0])
    train_all(session, submit(session, new_study(session, "completed").id, seeds=(3,)))
    broken = submit(session, new_study(session, "failed").id, seeds=(4,))
    train_all(session, broken, outcome=Outcome.FAILED)
    stopped = submit(session, new_study(session, "cancelled").id, seeds=(5,))
    sweeps.cancel(session, sweep_id=stopped.sweep.id)
    between = submit(session, new_study(session, "running: between two shards").id, seeds=(6,))
    taken = claim(session, between.shard_ids[0])
    first = taken.trials[0]
    shards.report(session, claim=taken, finished={first.id: result(first)})
    shards.release(session, claim=taken)
    mixed = new_study(session, "queued: one finished sweep, one new")
    submit(session, mixed.id, seeds=(3,))
    submit(session, mixed.id, seeds=(7,))
    reused = new_study(session, "queued: half of it reused")
    submit(session, reused.id, seeds=(3, 8))
    late = submit(session, new_study(session, "completed: cancelled too late").id, seeds=(9,))
    taken = claim(session, late.shard_ids[0])
    sweeps.cancel(session, sweep_id=late.sweep.id)
    everything = {trial.id: result(trial) for trial in taken.trials}
    shards.report(session, claim=taken, finished=everything)
    shards.finish(session, claim=taken)
    worse = new_study(session, "failed: and cancelled")
    train_all(session, submit(session, worse.id, seeds=(10,)), outcome=Outcome.FAILED)
    sweeps.cancel(session, sweep_id=submit(session, worse.id, seeds=(11,)).sweep.id)


@pytest.mark.parametrize("state", SweepState)
def test_the_filter_by_state_agrees_with_the_state_shown(session, one_of_each, state) -> None:
    shown = {s.name: s.state for s in studies.page(session, sort="name").items}
    for name, found in shown.items():
        assert name.split(":")[0] == (found.value if found else "empty")
    wanted = sorted(name for name, found in shown.items() if found is state)
    assert names(session, state=state) == wanted
    assert wanted


@pytest.mark.parametrize("sort", history.SORTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_together_are_the_whole_in_order(session, sort, limit) -> None:
    same = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(7):  # equal keys: only the id tells them apart
        study = new_study(session, f"name {number // 3}")
        moment = {key: same + timedelta(days=number // 2) for key in ("created_at", "updated_at")}
        session.execute(update(StudyRow).where(StudyRow.id == study.id).values(moment))
    seen, cursor = [], None
    while True:
        page = studies.page(session, sort=sort, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len({study.id for study in seen}) == len(seen) == 7
    keys = [(getattr(study, sort.removeprefix("-")), study.id) for study in seen]
    assert keys == sorted(keys, reverse=sort.startswith("-"))


def test_a_study_added_while_paging_does_not_shift_the_pages(session) -> None:
    for number in range(4):
        new_study(session, f"study {number}")
    first = studies.page(session, sort="name", limit=2)
    new_study(session, "a newcomer before all")
    second = studies.page(session, sort="name", limit=2, cursor=first.next_cursor)
    assert [study.name for study in second.items] == ["study 2", "study 3"]


def test_the_number_of_queries_does_not_grow_with_the_page(session) -> None:
    def cost(limit: int) -> int:
        with counted_queries() as seen:
            assert len(studies.page(session, limit=limit).items) == limit
        return len(seen)

    for number in range(6):
        study = new_study(session, f"study {number}", tags=[f"t{number}"])
        for seed in (1, 2):
            submit(session, study.id, seeds=(seed + 10 * number,))
    assert cost(2) == cost(6) <= 7


def test_an_unknown_order_is_refused_with_those_that_exist(session) -> None:
    with pytest.raises(InvalidInput, match="-updated_at"):
        studies.page(session, sort="age")


def test_a_cursor_of_another_order_is_refused(session) -> None:
    for number in range(3):
        new_study(session, f"study {number}")
    cursor = studies.page(session, sort="name", limit=1).next_cursor
    with pytest.raises(InvalidInput, match="another order"):
        studies.page(session, sort="-created_at", limit=1, cursor=cursor)


def test_training_does_not_move_a_study_up_but_submitting_does(session) -> None:
    older, newer = new_study(session, "older"), new_study(session, "newer")
    made = submit(session, newer.id)
    submit(session, older.id, seeds=(9,))
    train(session, made.shard_ids[0])
    assert names(session, sort="-updated_at") == ["older", "newer"]
