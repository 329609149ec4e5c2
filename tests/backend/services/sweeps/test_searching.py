"""A sweep that searches: rounds planned without anybody watching, once each, whatever is killed."""

import threading

import pytest
from sqlalchemy import func, select

from backend.db import get_engine, reading, transaction
from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import CellReport, CellResult, SweepState
from backend.services import maintenance, shards, studies, sweeps
from backend.services.accounts import Caller
from backend.services.submission import forecast, prepare
from backend.services.submission import submit as submit_request
from ib_core.sweep import Book, Seen, next_round
from ib_core.sweep.result import Outcome
from tests.factories import claim, new_study, result, submit, sweep_spec

SEARCH = {"find": "edge", "from": 0.01, "to": 100, "within": 1.2, "most": 80}
EDGES = {("eb", 1): 0.7, ("eb", 2): 2.2, ("ib", 1): 30.0, ("ib", 2): 1e9}


def search(session, **changes):
    return submit(session, search=SEARCH | changes)


def judged(trial, **fields):
    """Return how a trial of these invented edges goes."""
    spec = trial.spec
    broke = spec["lr"] >= EDGES[spec["method"], spec["seed"]]
    outcome = Outcome.DIVERGED if broke else Outcome.COMPLETED
    return result(trial, **{"outcome": outcome, **fields})


def train(session, shard_ids, *, failing=()):
    """Finish shards, but let the trials at some rates fail; return what was trained."""
    seen = []
    for shard_id in shard_ids:
        taken = claim(session, shard_id)
        finished = {
            one.id: judged(one, outcome=Outcome.FAILED)
            if one.spec["lr"] in failing
            else judged(one)
            for one in taken.trials
        }
        shards.report(session, claim=taken, finished=finished)
        shards.finish(session, claim=taken)
        seen += [(one.spec["method"], one.spec["seed"], one.spec["lr"]) for one in taken.trials]
    return seen


def run(session, sweep_id, shard_ids):
    """Train round after round until nothing is planned any more; return each round's trials."""
    rounds = []
    while shard_ids:
        rounds.append(sorted(train(session, shard_ids)))
        shard_ids = sweeps.plan_round(session, sweep_id=sweep_id)
    return rounds


def expected():
    """Return the rounds that the pure planner comes to with the same outcomes."""
    book, rounds = Book(sweep_spec(search=SEARCH)), []
    while trials := book.plan():
        rounds.append(sorted((one.method, one.seed, one.lr) for one in trials))
        for seeds in book.known.values():
            for seed, rates in seeds.items():
                for lr in rates:
                    method = next(series for series in book.known if book.known[series] is seeds)
                    broke = lr >= EDGES[method.method, seed]
                    rates[lr] = Seen(broke, 2.0 if broke else 0.5)
    return rounds


def state(session, sweep_id):
    return sweeps.get(session, sweep_id=sweep_id)


def test_rounds_follow_each_other_until_every_seed_is_bracketed(session) -> None:
    made = search(session)
    id = made.sweep.id
    assert (made.sweep.state, made.sweep.search.rounds) == (SweepState.QUEUED, [20])
    assert sweeps.due_rounds(session) == []
    assert sweeps.plan_round(session, sweep_id=id) == [], "the round has not ended"
    rounds = run(session, id, made.shard_ids)
    assert rounds == expected()
    done = state(session, id)
    assert maintenance.check(session) == []
    assert (done.state, done.search.done) == (SweepState.COMPLETED, True)
    assert done.search.rounds == list(map(len, rounds))
    assert done.total == done.search.trials == sum(done.progress.values()) <= SEARCH["most"]
    found = {one.method: one for one in done.search.series}
    for (method, seed), edge in EDGES.items():
        read = next(one for one in found[method].seeds if one.seed == seed)
        if edge > SEARCH["to"]:
            assert (read.where, read.high) == ("above", None)
        else:
            assert read.low < edge <= read.high <= read.low * 1.2
    assert done.search.grid_trials > 4 * done.search.trials
    assert set(done.spec["learning_rates"]) == {lr for held in rounds for _, _, lr in held}


def shown_under(session):
    """Return under which states the history shows anything."""
    return [
        wanted
        for wanted in SweepState
        if studies.page(session, filters=studies.Filters(state=wanted)).items
    ]


def test_between_two_rounds_it_runs_and_is_not_added_up(database) -> None:
    del database
    with transaction() as session:
        made = search(session)
        train(session, made.shard_ids)
    id, study = made.sweep.id, made.sweep.study_id
    with reading() as session:
        between = state(session, id)
        assert (between.state, between.finished_at) == (SweepState.RUNNING, None)
        assert sweeps.due_rounds(session) == [id]
        assert shown_under(session) == [SweepState.RUNNING]
        assert studies.get(session, study_id=study).state is SweepState.RUNNING
    assert studies.store_summaries(get_engine(), sweep_ids=[id]) == 0
    with transaction() as session:
        run(session, id, sweeps.plan_round(session, sweep_id=id))
    with reading() as session:
        assert shown_under(session) == [SweepState.COMPLETED]
    assert studies.store_summaries(get_engine(), sweep_ids=[id]) == 1


def test_a_planner_that_is_killed_leaves_nothing_and_the_next_plans_the_same(database) -> None:
    del database

    class Killed(Exception):
        pass

    with transaction() as session:
        made = search(session)
        train(session, made.shard_ids)
    lost = []

    def die_while_planning() -> None:
        with transaction() as session:
            assert sweeps.plan_round(session, sweep_id=made.sweep.id)
            lost.extend(planned(session, made.sweep.id, 2))
            raise Killed

    with pytest.raises(Killed):
        die_while_planning()
    assert lost
    with reading() as session:
        assert planned(session, made.sweep.id, 2) == []
        assert state(session, made.sweep.id).search.rounds == [20]
        assert sweeps.due_rounds(session) == [made.sweep.id]
    with transaction() as session:
        assert sweeps.plan_round(session, sweep_id=made.sweep.id)
        assert planned(session, made.sweep.id, 2) == lost


def planned(session, sweep_id, number):
    query = (
        select(TrialRow.method, TrialRow.seed, TrialRow.lr)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, SweepTrialRow.round == number)
        .order_by(SweepTrialRow.position)
    )
    return [tuple(row) for row in session.execute(query)]


def test_of_planners_at_once_one_plans_the_round(database) -> None:
    del database
    with transaction() as session:
        made = search(session)
        train(session, made.shard_ids)
    barrier, found = threading.Barrier(4), []

    def plan() -> None:
        barrier.wait()
        with transaction() as session:
            found.append(sweeps.plan_round(session, sweep_id=made.sweep.id))

    threads = [threading.Thread(target=plan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, found)) == [False, False, False, True]
    with reading() as session:
        read = state(session, made.sweep.id)
        assert read.search.rounds == [20, len(planned(session, made.sweep.id, 2))]
        assert read.total == sum(read.search.rounds) == sum(read.progress.values())


def test_a_report_that_comes_twice_plans_nothing_twice(session) -> None:
    made = search(session)
    taken = claim(session, made.shard_ids[0])
    finished = {one.id: judged(one) for one in taken.trials}
    train(session, made.shard_ids[1:])
    shards.report(session, claim=taken, finished=finished)
    assert sweeps.plan_round(session, sweep_id=made.sweep.id)
    before = state(session, made.sweep.id)
    assert shards.report(session, claim=taken, finished=finished) == set()
    shards.finish(session, claim=taken)
    assert sweeps.plan_round(session, sweep_id=made.sweep.id) == []
    assert state(session, made.sweep.id).search == before.search


@pytest.mark.parametrize("between", [True, False])
def test_a_cancelled_search_plans_nothing_and_goes_on_when_retried(session, between) -> None:
    made = search(session)
    id = made.sweep.id
    train(session, made.shard_ids)
    shard_ids = [] if between else sweeps.plan_round(session, sweep_id=id)
    stopped = sweeps.cancel(session, sweep_id=id)
    assert (stopped.state, stopped.search.done) == (SweepState.CANCELLED, False)
    assert sweeps.due_rounds(session) == []
    assert sweeps.plan_round(session, sweep_id=id) == []
    assert all(shards.claim(session, shard_id=one, worker="one") is None for one in shard_ids)
    again = sweeps.retry(session, sweep_id=id)
    train(session, again.shard_ids)
    assert sweeps.due_rounds(session) == [id]
    run(session, id, sweeps.plan_round(session, sweep_id=id))
    done = state(session, id)
    assert (done.state, done.search.rounds) == (
        SweepState.COMPLETED,
        list(map(len, expected())),
    )


def test_a_search_that_stands_still_for_a_failure_goes_on_once_that_is_retried(session) -> None:
    made = search(session)
    id = made.sweep.id
    train(session, made.shard_ids, failing=(1.0,))
    shard_ids = sweeps.plan_round(session, sweep_id=id)
    while shard_ids:
        train(session, shard_ids)
        shard_ids = sweeps.plan_round(session, sweep_id=id)
    stood = state(session, id)
    assert (stood.state, stood.search.done) == (SweepState.FAILED, True)
    where = {
        (one.method, seed.seed): seed.where for one in stood.search.series for seed in one.seeds
    }
    # Of a seed that breaks at 30 the rate 1 tells nothing.
    assert where == {
        ("eb", 1): "stuck",
        ("eb", 2): "stuck",
        ("ib", 1): "within",
        ("ib", 2): "above",
    }
    again = sweeps.retry(session, sweep_id=id)
    run(session, id, again.shard_ids)
    done = state(session, id)
    assert done.state is SweepState.COMPLETED
    assert {seed.where for one in done.search.series for seed in one.seeds} == {"within", "above"}


def test_what_is_known_is_found_again_without_training(session) -> None:
    first = search(session)
    run(session, first.sweep.id, first.shard_ids)
    again = search(session)
    assert again.shard_ids == []
    assert sweeps.due_rounds(session) == [again.sweep.id]
    assert sweeps.plan_round(session, sweep_id=again.sweep.id) == []
    done = state(session, again.sweep.id)
    assert (done.state, done.reused) == (SweepState.COMPLETED, done.total)
    assert done.search == state(session, first.sweep.id).search
    assert session.scalar(select(func.count()).select_from(TrialRow)) == done.total


def test_the_budget_ends_a_search(session) -> None:
    made = search(session, most=25)
    run(session, made.sweep.id, made.shard_ids)
    done = state(session, made.sweep.id)
    assert (done.state, done.total, done.search.done) == (SweepState.COMPLETED, 25, True)
    assert "open" in {seed.where for one in done.search.series for seed in one.seeds}


def test_another_engine_plans_nothing_into_an_old_search(session) -> None:
    made = search(session)
    train(session, made.shard_ids)
    session.get_one(SweepRow, made.sweep.id).engine_version = "0"
    session.flush()
    assert sweeps.plan_round(session, sweep_id=made.sweep.id) == []
    assert state(session, made.sweep.id).search.done


def test_the_forecast_of_a_search_is_at_most_what_it_may_spend(session) -> None:
    body = {"task": "toy/quadratic", "learning_rates": SEARCH, "seeds": 2}
    said = forecast(session, body=body)
    longest = sweep_spec(search=SEARCH).search.longest
    assert (said.trials, said.at_most, said.reused) == (len(EDGES) * longest, True, 0)
    low = forecast(session, body={**body, "learning_rates": SEARCH | {"most": 25}})
    assert low.trials == 25
    assert not forecast(session, body={**body, "learning_rates": [1]}).at_most


def test_a_known_first_round_leaves_the_later_ones_to_forecast(session) -> None:
    wide = SEARCH | {"most": 3000}
    new = sweeps.dry_run(session, spec=sweep_spec(search=wide))
    train(session, search(session).shard_ids)
    known = sweeps.dry_run(session, spec=sweep_spec(search=wide))
    runs = len(EDGES)
    longest = sweep_spec(search=wide).search.longest
    assert (known.trials, known.reused, known.shards) == (runs * longest, 20, 0)
    assert 0 < known.cost_seconds < new.cost_seconds
    assert known.memory_bytes > 0
    grid = sweeps.dry_run(session, spec=sweep_spec(learning_rates=new.learning_rates))
    assert (grid.reused, grid.cost_seconds) == (20, 0)


def test_cells_of_agents_are_searched_too(session) -> None:
    body = {"where": "agents", "task": "mine", "learning_rates": SEARCH, "seeds": 2}
    body["methods"] = ["default"]
    runs = len(body["methods"]) * body["seeds"]
    assert forecast(session, body=body).trials == runs * sweep_spec(search=SEARCH).search.longest
    study = new_study(session).id
    made = submit_request(
        session, study_id=study, request=prepare(body), by=Caller("local", "admin")
    )
    id, edges = made.sweep.id, {1: 0.7, 2: 5.0}
    known = {("default", None): {1: {}, 2: {}}}
    while True:
        while taken := shards.claim_cell(session, sweep_id=id, agent="a"):
            cell = shards.read_cell(session, trial_id=taken.trials[0].id)
            broke = cell.lr >= edges[cell.seed]
            told = CellResult(train_loss=9.0 if broke else 0.1, initial_loss=1.0)
            report = CellReport(lease=cell.lease, result=told)
            shards.report_cell(session, sweep_id=id, trial_id=cell.trial_id, report=report)
            known["default", None][cell.seed][cell.lr] = Seen(broke, 1.0)
        before = state(session, id).total
        sweeps.plan_round(session, sweep_id=id)
        if state(session, id).total == before:
            break
    done = state(session, id)
    assert done.state is SweepState.COMPLETED
    assert done.total == sum(map(len, known["default", None].values()))
    for seed in done.search.series[0].seeds:
        assert seed.low < edges[seed.seed] <= seed.high <= seed.low * 1.2
    spent = sweep_spec(search=SEARCH).search
    assert next_round(spent, known) == []
