"""Reading trials and their curves."""

import pytest

from backend.errors import InvalidInput, NotFound
from backend.schemas import TrialState
from backend.services import shards, trials
from tests.factories import claim, curve, result, submit, train_all


def test_a_page_follows_the_order_of_the_grid(session) -> None:
    made = submit(session)
    items = trials.page(session, sweep_id=made.sweep.id).items
    found = [(t.method, t.lr, t.seed) for t in items]
    assert found == [(m, lr, s) for m in ("eb", "ib") for lr in (0.1, 1.0, 3.0) for s in (1, 2)]


@pytest.mark.parametrize("limit", [1, 5, 12, 50])
def test_pages_together_are_the_whole(session, limit) -> None:
    made = submit(session)
    seen, cursor = [], None
    while True:
        page = trials.page(session, sweep_id=made.sweep.id, limit=limit, cursor=cursor)
        seen += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 12


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"method": "ib"}, 6),
        ({"lr": 3.0}, 4),
        ({"seed": 2, "method": "eb"}, 3),
        ({"state": TrialState.QUEUED}, 12),
        ({"state": TrialState.FAILED}, 0),
        ({"lr": 3.0000001}, 0),
    ],
)
def test_filters_narrow_a_page(session, asked, count) -> None:
    made = submit(session)
    assert len(trials.page(session, sweep_id=made.sweep.id, **asked).items) == count


def test_a_reused_trial_is_in_both_sweeps(session) -> None:
    one = submit(session, seeds=(1, 2))
    two = submit(session, seeds=(2, 1))
    ids = [
        {item.id for item in trials.page(session, sweep_id=made.sweep.id).items}
        for made in (one, two)
    ]
    assert ids[0] == ids[1]


def test_a_curve_is_read_on_from_where_it_was_left(session) -> None:
    taken = claim(session, submit(session).shard_ids[0])
    first = taken.trials[0]
    shards.report(session, claim=taken, points={first.id: list(curve(4))})
    read = trials.curve(session, trial_id=first.id, after=1)
    assert [point.step for point in read.points] == [2, 3]
    again = trials.curve(session, trial_id=first.id, after=read.last_step)
    assert (again.points, again.last_step) == ([], 3)


def test_a_long_curve_is_thinned_on_request(session) -> None:
    taken = claim(session, submit(session).shard_ids[0])
    first = taken.trials[0]
    shards.report(session, claim=taken, finished={first.id: result(first, points=2000)})
    read = trials.curve(session, trial_id=first.id, points=100)
    assert (read.total, read.last_step) == (2000, 1999)
    assert 50 <= len(read.points) <= 100


def test_a_queued_trial_has_an_empty_curve(session) -> None:
    made = submit(session)
    item = trials.page(session, sweep_id=made.sweep.id, limit=1).items[0]
    read = trials.curve(session, trial_id=item.id)
    assert (read.points, read.last_step, read.total) == ([], None, 0)


def test_too_few_points_are_refused(session) -> None:
    with pytest.raises(InvalidInput, match="at least 8 points; got 3"):
        trials.curve(session, trial_id=1, points=3)


@pytest.mark.parametrize("verb", [trials.get, trials.curve])
def test_a_trial_that_is_not_there_is_said_not_to_be(session, verb) -> None:
    with pytest.raises(NotFound, match="no trial 9"):
        verb(session, trial_id=9)


def test_a_sweep_that_is_not_there_has_no_page(session) -> None:
    with pytest.raises(NotFound, match="no sweep 9"):
        trials.page(session, sweep_id=9)


def test_trials_of_a_finished_sweep_carry_their_numbers(session) -> None:
    made = submit(session)
    train_all(session, made, loss=0.125)
    items = trials.page(session, sweep_id=made.sweep.id, state=TrialState.COMPLETED).items
    assert {item.train_loss for item in items} == {0.125}
    assert all(item.finished_at is not None for item in items)
