"""What happens when several people and workers do things at the same moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.db import get_engine, reading, transaction
from backend.errors import Conflict, Unauthorized
from backend.models import CurveRow, SessionRow, ShardRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import StudyCreate, SweepState
from backend.services import (
    accounts,
    importing,
    maintenance,
    offers,
    shards,
    studies,
    submission,
    sweeps,
)
from backend.services.accounts import Caller, passwords
from tests.backend.accounts import CHEAP, new_user
from tests.factories import claim, new_study, result, submit

CROWD = 8


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Start all actions at the same moment and return what they return."""
    start = threading.Barrier(len(actions))

    def run(action: Callable[[], Any]) -> Any:
        start.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(60) for future in [pool.submit(run, a) for a in actions]]


def assert_sound() -> None:
    with reading() as session:
        assert maintenance.check(session) == []


@pytest.fixture
def shard_id(database) -> int:
    with transaction() as session:
        return submit(session).shard_ids[0]


def test_of_many_workers_one_gets_the_shard(shard_id) -> None:
    def take(name: str):
        with transaction() as session:
            return shards.claim(session, shard_id=shard_id, worker=name)

    won = at_once(*(lambda n=n: take(f"worker {n}") for n in range(CROWD)))
    assert sum(claim is not None for claim in won) == 1
    with reading() as session:
        assert session.get_one(ShardRow, shard_id).attempts == 1


def test_a_result_delivered_by_many_is_stored_once(shard_id) -> None:
    with transaction() as session:
        taken = claim(session, shard_id)
    first = taken.trials[0]

    def deliver(loss: float) -> set[int]:
        with transaction() as session:
            finished = {first.id: result(first, loss=loss)}
            return shards.report(session, claim=taken, finished=finished)

    stored = at_once(*(lambda n=n: deliver(n / 10) for n in range(CROWD)))
    assert sum(len(ids) for ids in stored) == 1


def test_overlapping_sweeps_submitted_together_share_every_trial(database) -> None:
    with transaction() as session:
        study = new_study(session)

    def send(seeds: tuple[int, ...]):
        with transaction() as session:
            return submit(session, study.id, seeds=seeds)

    made = at_once(*(lambda n=n: send(tuple(range(n + 1, n + 4))) for n in range(4)))
    with transaction() as session:
        assert session.scalar(select(func.count()).select_from(TrialRow)) == 6 * 6
        assert session.scalar(select(func.sum(ShardRow.trials))) == 6 * 6
        for shard in (id for submitted in made for id in submitted.shard_ids):
            taken = claim(session, shard)
            done = {trial.id: result(trial) for trial in taken.trials}
            shards.report(session, claim=taken, finished=done)
            shards.finish(session, claim=taken)
        for submitted in made:
            sweep = sweeps.get(session, sweep_id=submitted.sweep.id)
            assert sweep.state is SweepState.COMPLETED
    assert_sound()


def test_one_key_sent_twice_at_once_makes_one_sweep(database) -> None:
    with transaction() as session:
        study = new_study(session)

    def send(body: dict[str, int]) -> int | str:
        try:
            with transaction() as session:
                made = submit(session, study.id, idempotency_key="k", body=body)
                return made.sweep.id
        except Conflict:
            return "conflict"

    answers = at_once(*(lambda n=n: send({"a": n % 2}) for n in range(6)))
    assert len(set(answers) - {"conflict"}) == 1
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(SweepRow)) == 1


@pytest.mark.parametrize("attempt", range(5))
def test_a_trial_wanted_by_a_new_sweep_survives_the_old_ones_cancelling(database, attempt) -> None:
    del attempt
    with transaction() as session:
        old = submit(session)
        study = new_study(session)

    def cancel() -> None:
        with transaction() as session:
            sweeps.cancel(session, sweep_id=old.sweep.id)

    def send():
        with transaction() as session:
            return submit(session, study.id)

    _, new = at_once(cancel, send)
    with transaction() as session:
        sweep = sweeps.get(session, sweep_id=new.sweep.id)
        assert sweep.progress["queued"] == 12, sweep.progress
    assert_sound()


@pytest.mark.parametrize("attempt", range(5))
def test_deleting_a_study_never_takes_another_ones_trials(database, attempt) -> None:
    del attempt
    with transaction() as session:
        old = submit(session)
        study = new_study(session)

    def delete() -> None:
        with transaction() as session:
            studies.delete(session, study_id=old.sweep.study_id)

    def send():
        with transaction() as session:
            return submit(session, study.id)

    _, new = at_once(delete, send)
    with reading() as session:
        held = select(func.count()).where(SweepTrialRow.sweep_id == new.sweep.id)
        assert session.scalar(held) == 12
        assert sweeps.get(session, sweep_id=new.sweep.id).progress["queued"] == 12
    assert_sound()


def test_claiming_and_cancelling_together_leave_nothing_half_done(database) -> None:
    with transaction() as session:
        made = submit(session, methods=("isgd",))  # exact ISGD: several shards

    def take(shard: int):
        with transaction() as session:
            return shards.claim(session, shard_id=shard, worker=f"worker {shard}")

    def cancel() -> None:
        with transaction() as session:
            sweeps.cancel(session, sweep_id=made.sweep.id)

    claims = at_once(cancel, *(lambda id=id: take(id) for id in made.shard_ids))[1:]
    for taken in claims:
        if taken is not None:
            with transaction() as session:
                assert shards.drop_unwanted(session, claim=taken) == set()
                assert shards.finish(session, claim=taken)
    with reading() as session:
        sweep = sweeps.get(session, sweep_id=made.sweep.id)
        assert sweep.progress["cancelled"] == sweep.total
    assert_sound()


def test_two_reapers_announce_a_shard_once(database) -> None:
    with transaction() as session:
        submit(session)

    def look() -> list[shards.Announcement]:
        with transaction() as session:
            return shards.due(session, depths={"cpu": 1, "gpu": 1})

    found = at_once(*[look] * CROWD)
    assert sorted(len(due) for due in found) == [0] * (CROWD - 1) + [1]


def test_a_busy_service_ends_with_every_trial_counted_once(database) -> None:
    """Submit, claim, record, cancel and retry from many threads; then finish what is left."""
    with transaction() as session:
        study = new_study(session)

    def user(number: int) -> None:
        with transaction() as session:
            made = submit(session, study.id, seeds=(1, number + 2), methods=("eb", "isgd"))
        if number % 2:
            with transaction() as session:
                sweeps.cancel(session, sweep_id=made.sweep.id)
            # Workers may have been faster than the cancel; a sweep left cancelled is found below.
            with suppress(Conflict), transaction() as session:
                sweeps.retry(session, sweep_id=made.sweep.id)

    def worker(number: int) -> None:
        for _ in range(15):
            with transaction() as session:
                due = shards.due(session, depths={"cpu": 0, "gpu": 0})
            for item in due:
                with transaction() as session:
                    taken = shards.claim(session, shard_id=item.shard_id, worker=f"w{number}")
                if taken is None:
                    continue
                with transaction() as session:
                    done = {trial.id: result(trial) for trial in taken.trials}
                    shards.report(session, claim=taken, finished=done)
                    shards.finish(session, claim=taken)

    at_once(
        *(lambda n=n: user(n) for n in range(4)),
        *(lambda n=n: worker(n) for n in range(3)),
    )
    worker(9)
    assert_sound()
    with reading() as session:
        for sweep in sweeps.page(session, study_id=study.id, limit=50).items:
            assert sweep.state is SweepState.COMPLETED, sweep
        assert session.scalar(select(func.count()).select_from(TrialRow)) == 2 * 3 * 5


def test_nobody_stays_who_tries_on_while_the_password_is_replaced(
    database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody knows the old password and has a token: neither a row of logins nor of tokens."""
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
    old, engine = passwords.choose_password("ada", "an old long password"), get_engine()
    with transaction() as session:
        user = accounts.create_user(
            session, name="ada", role="admin", password_digest=old.digest
        ).id
        made = accounts.create_token(session, user_id=user, name="t", scope="admin", days=1)
        holder = accounts.token_caller(session, text=made.token)
    assert holder is not None
    begun, replaced = threading.Event(), threading.Event()

    def slowly(text: str, digest: str | None) -> bool:
        right = passwords.password_matches(text, digest)
        begun.set()
        assert replaced.wait(30), "before the login begins"
        return right

    monkeypatch.setattr(accounts, "password_matches", slowly)

    def log_in() -> Any:
        words = {"username": "ada", "password": old.text, "address": "::1"}
        return accounts.log_in(engine, **words, secret="s" * 40, hours=1)

    def replace() -> None:
        assert begun.wait(30)
        new = passwords.choose_password("ada", "a new long password")
        with transaction() as session:
            accounts.set_password(session, user_id=user, password_digest=new.digest)
        replaced.set()

    def make_token() -> Any:
        assert replaced.wait(30)
        with transaction() as session:
            return accounts.create_token(
                session, user_id=user, name="t", scope="read", days=1, by=holder
            )

    def refused(action: Callable[[], Any]) -> bool:
        try:
            action()
        except Unauthorized:
            return True
        return False

    assert at_once(lambda: refused(log_in), lambda: refused(make_token), replace)[:2] == [True] * 2
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(SessionRow)) == 0


def test_the_hundredth_token_is_made_once(database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_TOKENS", 3)
    with transaction() as session:
        digest = "x"
        user = accounts.create_user(session, name="ada", role="member", password_digest=digest).id

    def make() -> bool:
        try:
            with transaction() as session:
                accounts.create_token(session, user_id=user, name="t", scope="read", days=1)
        except Conflict:
            return False
        return True

    assert sum(at_once(*[make] * CROWD)) == 3


def imported(count: int) -> Any:
    rows = "".join(f"x,eb,0.1,{seed},0.5,1;2\n" for seed in range(count))
    head = "task,method,lr,seed,train_loss,train_loss_by_epoch\n"
    return importing.read_runs((head + rows).encode(), most_bytes=10**6)


def publish(session: Session, found: Any) -> Any:
    return importing.store(
        session, found=found, source="a file", study_id=None, name="x", owner_id=None
    )


def test_what_an_import_publishes_is_not_forgotten_by_one_that_failed(database) -> None:
    """Links that are not committed nobody sees, and they go with the trials that they hold."""
    found = imported(3)
    new = importing.store_trials(get_engine(), found)
    with ThreadPoolExecutor(1) as pool, transaction() as session:
        made = publish(session, found)
        forgetting = pool.submit(importing.forget, get_engine(), new)
        with suppress(TimeoutError):
            forgetting.result(0.5)
        session.commit()
        forgetting.result(60)
    with reading() as session:
        held = select(func.count()).where(SweepTrialRow.sweep_id == made.sweep_ids[0])
        assert session.scalar(held) == 3
    assert_sound()


@pytest.mark.parametrize("attempt", range(3))
def test_one_file_imported_by_many_is_everybodys_whatever_some_forget(database, attempt) -> None:
    found = [imported(300) for _ in range(CROWD)]

    def keep(mine: Any) -> int:
        importing.store_trials(get_engine(), mine)
        with transaction() as session:
            return int(publish(session, mine).sweep_ids[0])

    def drop(mine: Any) -> None:
        importing.forget(get_engine(), importing.store_trials(get_engine(), mine))

    kept = at_once(
        *(lambda one=one: keep(one) for one in found[::2]),
        *(lambda one=one: drop(one) for one in found[1::2]),
    )[: CROWD // 2]
    with reading() as session:
        for sweep_id in kept:
            held = select(func.count()).where(SweepTrialRow.sweep_id == sweep_id)
            assert session.scalar(held) == 300
        assert session.scalar(select(func.count(CurveRow.trial_id))) == 300
    assert_sound()


def test_an_account_is_deleted_while_it_submits_and_nobody_waits_for_ever(database) -> None:
    """Of sixteen submissions fourteen were ended as a deadlock, and often the deletion."""
    with transaction() as session:
        owner = new_user(session, "ada").id
    by = Caller("ada", "member", owner)
    sweep = {"where": "agents", "task": "x", "learning_rates": [0.1, 1.0], "seeds": 10}
    request = submission.prepare(sweep, offers.Known())

    def send(key: str | None) -> str:
        try:
            with transaction() as session:
                study = StudyCreate(name="x")
                submission.submit_into(
                    session, study=study, request=request, by=by, idempotency_key=key
                )
        except IntegrityError:  # its owner is gone: a conflict, outside
            return "refused"
        return "stored"

    def delete() -> str:
        with transaction() as session:
            accounts.delete_user(session, user_id=owner)
        return "deleted"

    ways = [lambda n=n: send(str(n) if n % 2 else None) for n in range(12)]
    found = at_once(*ways[:6], delete, *ways[6:])
    assert found[6] == "deleted"
    with reading() as session:
        assert session.scalar(select(func.count(SweepRow.id))) == found.count("stored")
    assert_sound()
