"""What a sweep's trials add up to."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, select, text

from backend.bench.installation import finish_everything
from backend.db import get_engine, reading, transaction
from backend.models import SweepTrialRow, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import sweeps
from backend.services.studies.study import PRECEDENCE, study_state
from backend.services.sweeps import Position, Progress, following, state_of, submitting
from backend.services.trials import UNFINISHED, rows
from ib_core.sweep.result import Outcome
from tests.factories import claim, new_study, submit, train, train_all

counts = st.fixed_dictionaries({state: st.integers(0, 3) for state in TrialState})


def progress(fresh: int = 0, **states: int) -> Progress:
    found = Progress(fresh=fresh)
    found.counts |= {TrialState(name): count for name, count in states.items()}
    return found


@pytest.mark.parametrize(
    ("found", "cancelled", "state"),
    [
        (progress(queued=2), False, "queued"),
        (progress(queued=2, completed=3), False, "queued"),  # the three were reused
        (progress(queued=2, completed=3, fresh=1), False, "running"),
        (progress(queued=1, running=1), False, "running"),
        (progress(running=1, failed=5), False, "running"),
        (progress(completed=1, diverged=1), False, "completed"),
        (progress(diverged=2), False, "completed"),
        (progress(completed=9, failed=1), False, "failed"),
        (progress(completed=9, failed=1, cancelled=1), False, "failed"),
        (progress(completed=9, cancelled=1), False, "cancelled"),
        (progress(queued=1, running=1), True, "cancelled"),
        (progress(completed=1, failed=1), True, "cancelled"),
        (progress(completed=2), True, "completed"),
    ],
)
def test_states(found, cancelled, state) -> None:
    assert state_of(found, cancelled=cancelled) == state


@given(counts, st.integers(0, 5), st.booleans())
def test_only_good_trials_make_a_completed_sweep(by_state, fresh, cancelled) -> None:
    found = Progress(counts=by_state, fresh=fresh)
    state = state_of(found, cancelled=cancelled)
    bad = [s for s in TrialState if s not in ("completed", "diverged") and by_state[s]]
    assert (state is SweepState.COMPLETED) == (not bad)
    if state in (SweepState.QUEUED, SweepState.RUNNING):
        assert found.unfinished
        assert not cancelled


def test_every_state_is_counted_even_when_there_is_none() -> None:
    assert progress(queued=1).by_name() == dict.fromkeys(TrialState, 0) | {"queued": 1}


@given(st.lists(st.sampled_from(SweepState), min_size=1))
def test_a_study_is_what_matters_most_in_it(states) -> None:
    assert study_state(states) == min(states, key=PRECEDENCE.index)


def test_a_study_without_sweeps_has_no_state() -> None:
    assert study_state([]) is None


def counted(session, sweep_id: int) -> Progress:
    """The slow twin: every trial of a sweep, one by one."""
    found = Progress()
    query = select(TrialRow.state, TrialRow.finished_at, SweepTrialRow.reused)
    query = query.join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
    for state, at, reused in session.execute(query.where(SweepTrialRow.sweep_id == sweep_id)):
        found.counts[state] += 1
        found.fresh += not reused and state not in ("queued", "running")
        found.finished_at = max(filter(None, (found.finished_at, at)), default=None)
    return found


@pytest.mark.parametrize("ranges", [20, 1])
def test_every_sweep_is_counted_as_its_trials_are(session, monkeypatch, ranges) -> None:
    """Side by side or scattered, shared or not: nobody else's trials, and all of one's own."""
    monkeypatch.setattr(rows, "MOST_RANGES", ranges)
    study = new_study(session).id
    waiting = submit(session, study, seeds=(1,))
    ended = submit(session, study, seeds=(2, 3))
    train(session, ended.shard_ids[0])
    failed = submit(session, study, seeds=(4,))
    train_all(session, failed, outcome=Outcome.FAILED)
    scattered = submit(session, study, seeds=(1, 3, 5, 9))
    cancelled = submit(session, study, seeds=(6,))
    sweeps.cancel(session, sweep_id=cancelled.sweep.id)
    running = submit(session, study, seeds=(7, 8))
    claim(session, running.shard_ids[0])
    known = submit(session, study, seeds=(2,))
    made = (waiting, ended, failed, scattered, cancelled, running, known)
    ids = [one.sweep.id for one in made]
    for asked in (ids, *([one] for one in ids)):
        found = sweeps.progress_of(session, sweep_ids=asked)
        assert found == {one: counted(session, one) for one in asked}
    states = {
        state for one in ids for state, count in counted(session, one).counts.items() if count
    }
    assert states == set(TrialState) - {TrialState.DIVERGED}


@given(
    st.lists(st.frozensets(st.integers(1, 60), min_size=1, max_size=12), min_size=1, max_size=6),
    st.integers(1, 4),
)
def test_ranges_hold_all_of_the_trials_and_not_many_others(sweeps_ids, most) -> None:
    spans = [rows.Span(len(ids), min(ids), max(ids)) for ids in sweeps_ids]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MOST_RANGES", most)
        condition = str(rows.within(spans).compile(compile_kwargs={"literal_binds": True}))
    held = frozenset[int]().union(*sweeps_ids)
    if condition != "true":
        bounds = [int(word) for word in re.findall(r"\d+", condition)]
        pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
        inside = {number for low, high in pairs for number in range(low, high + 1)}
        assert held <= inside
        assert len(pairs) <= most
        assert len(inside) <= 2 * sum(map(len, sweeps_ids))


def test_what_has_ended_is_looked_for_once_and_told_piece_by_piece(session, monkeypatch) -> None:
    """For every piece again, a stream of 60,000 trials took 15 s of the processor."""
    made = submit(session, seeds=(1, 2, 3))
    train_all(session, made)
    looked = []
    real = following._ended_trials
    monkeypatch.setattr(following, "_ended_trials", lambda one: looked.append(one) or real(one))
    monkeypatch.setattr(following, "MOST_NEWS", 5)
    position, told, more = Position(), [], True
    while more:
        news = sweeps.news(session, sweep_id=made.sweep.id, position=position)
        told.append([one.id for one in news.trials])
        more = news.more
    ids = session.scalars(select(TrialRow.id).order_by(TrialRow.finished_at, TrialRow.id)).all()
    assert [id_ for piece in told for id_ in piece] == list(ids)
    assert [len(piece) for piece in told] == [5, 5, 5, 3]
    assert len(looked) == 1
    assert not sweeps.news(session, sweep_id=made.sweep.id, position=position).trials
    assert len(looked) == 1


def test_what_is_begun_again_before_it_is_told_is_told_when_it_has_ended(
    session, monkeypatch
) -> None:
    monkeypatch.setattr(following, "MOST_NEWS", 1)
    made = submit(session, seeds=(1,))
    for shard_id in made.shard_ids:
        train(session, shard_id, outcome=Outcome.FAILED)
    position, sweep = Position(), made.sweep.id
    (first,) = sweeps.news(session, sweep_id=sweep, position=position).trials
    again = sweeps.retry(session, sweep_id=sweep).shard_ids
    assert again
    for _ in range(len(position.left)):
        assert not sweeps.news(session, sweep_id=sweep, position=position).trials
    position.seen.clear()
    for shard_id in again:
        train(session, shard_id)
    told, more = [], True
    while more:
        news = sweeps.news(session, sweep_id=sweep, position=position)
        told += [(one.id, one.state) for one in news.trials]
        more = news.more
    ids = session.scalars(select(TrialRow.id)).all()
    assert first.id in ids
    assert sorted(told) == [(id_, TrialState.COMPLETED) for id_ in sorted(ids)]


def test_without_a_sweep_there_is_nothing_to_look_for() -> None:
    assert str(rows.within([])) == "false"


def test_a_sweep_younger_than_its_statistics_is_not_compared_with_all_that_waits(
    postgresql_database: str,
) -> None:
    """A join of 2,000 trials with as many that waited took seconds, the next one longer."""
    with transaction() as session:
        submit(session, seeds=range(1, 301))
    finish_everything(get_engine())
    with get_engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    with transaction() as session:
        made = submit(session, seeds=range(1000, 1300)).sweep
    asked: list[tuple[str, object]] = []
    note = event.listens_for(get_engine(), "before_cursor_execute")
    note(lambda _c, _k, statement, given, *_: asked.append((statement, given)))
    with reading() as session:
        sweeps.get(session, sweep_id=made.id)
        submitting._trial_ids(session, made.id, UNFINISHED)
    joins = [(one, given) for one, given in asked if "JOIN sweep_trials" in one]
    assert len(joins) >= 3
    with get_engine().connect() as connection:
        for statement, given in joins:
            explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
            (plan,) = connection.exec_driver_sql(explained, given).scalar_one()
            assert visited(plan["Plan"]) < 20 * made.total, statement


def visited(node: dict[str, Any]) -> float:
    """Return how many rows a plan looked at, those included that it threw away."""
    rows = node["Actual Rows"] + node.get("Rows Removed by Join Filter", 0)
    return rows * node["Actual Loops"] + sum(map(visited, node.get("Plans", ())))
