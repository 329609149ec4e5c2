"""What workers bring along: read by its manifest, trained by whoever has it, or waiting."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import ShardRow, ShardState, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import catalog, offers, shards, submission, sweeps, workers
from backend.services.workers import Worker
from ib_core.announced import offer_key
from ib_core.errors import IBError
from ib_core.options import number, options_schema
from ib_core.tasks import OWN_TASKS
from tests.announced import METHOD, TASK, arrive, leave, method_manifest, submit_body, task_manifest
from tests.factories import result

OLD, NEW = task_manifest("aaaa0000aaaa0000"), task_manifest("cccc0000cccc0000")


def claim_all(session: Session, shard_ids: list[int], worker: Worker) -> list[int]:
    """Return the shards that a worker may have."""
    taken = [
        shards.claim(session, shard_id=one, worker=worker.name, offers=worker.offers)
        for one in shard_ids
    ]
    return [claim.shard_id for claim in taken if claim is not None]


def train(session: Session, shard_ids: list[int], worker: Worker) -> None:
    for one in shard_ids:
        claim = shards.claim(session, shard_id=one, worker=worker.name, offers=worker.offers)
        assert claim is not None
        shards.report(session, claim=claim, finished={t.id: result(t) for t in claim.trials})
        assert shards.finish(session, claim=claim)


def refused(session: Session, **body: Any) -> IBError:
    with pytest.raises(IBError) as caught:
        submit_body(session, **body)
    return caught.value


def test_each_sweep_goes_to_the_worker_with_its_version(session: Session) -> None:
    one = arrive(session, "one", OLD)
    first = submit_body(session)
    two = arrive(session, "two", NEW)
    second = submit_body(session)
    assert first.sweep.spec["options"]["code"] != second.sweep.spec["options"]["code"]
    assert claim_all(session, [*first.shard_ids, *second.shard_ids], two) == second.shard_ids
    assert claim_all(session, [*first.shard_ids, *second.shard_ids], one) == first.shard_ids


def test_announcements_go_to_a_queue_of_the_version_and_wait_without_one(session: Session) -> None:
    arrive(session, "one", OLD)
    sent = submit_body(session)
    found = shards.announce(session, shard_ids=sent.shard_ids)
    assert {item.queue for item in found} == {f"cpu-{offer_key(OLD)}"}
    assert shards.special_queues([offer_key(OLD)], ["cpu"]) == [f"cpu-{offer_key(OLD)}"]
    leave(session, "one")
    waiting = submit_body(session, seeds=[7, 8])
    assert shards.announce(session, shard_ids=waiting.shard_ids) == []
    assert shards.due(session, depths={"cpu": 0, "gpu": 0}) == []
    assert not shards.pending(session).waiting
    arrive(session, "one", OLD)
    assert shards.pending(session).waiting
    due = shards.due(session, depths={"cpu": 0, "gpu": 0})
    assert {item.shard_id for item in due} == set(waiting.shard_ids)


def test_an_unchanged_file_reuses_everything_and_a_changed_one_nothing(session: Session) -> None:
    one = arrive(session, "one", OLD)
    first = submit_body(session)
    train(session, first.shard_ids, one)
    again = submit_body(session, study_id=first.sweep.study_id)
    assert (again.sweep.reused, again.shard_ids) == (4, [])
    leave(session, "one")
    arrive(session, "one", NEW)
    changed = submit_body(session, study_id=first.sweep.study_id)
    assert changed.sweep.reused == 0
    new_data = task_manifest("cccc0000cccc0000", data="e" * 64)
    leave(session, "one")
    arrive(session, "one", new_data)
    assert submit_body(session).sweep.reused == 0
    addresses = session.scalars(select(TrialRow.fingerprint)).all()
    assert len(addresses) == len(set(addresses)) == 12


def test_a_version_can_be_asked_for_and_one_there_never_was_is_refused(session: Session) -> None:
    arrive(session, "one", OLD)
    arrive(session, "two", NEW)
    asked = submit_body(session, task=f"{TASK}@aaaa")
    assert asked.sweep.spec["task"] == TASK
    assert asked.sweep.spec["options"]["code"] == OLD["code"]
    wrong = refused(session, task=f"{TASK}@ffff")
    assert wrong.field == "task"
    assert "aaaa0000, cccc0000" in wrong.message


def test_a_sweep_nobody_can_train_waits_says_for_whom_and_can_be_cancelled(
    session: Session,
) -> None:
    arrive(session, "one", OLD, host="anna.lab")
    leave(session, "one")
    found = submit_body(session).sweep
    (missing,) = found.waiting_for
    assert (missing.kind, missing.name, missing.version) == ("task", TASK, "aaaa0000")
    assert (missing.last_worker, missing.last_host) == ("one", "anna.lab")
    assert f"waiting for a worker with {TASK}, version aaaa0000; anna.lab" in found.messages[0]
    assert "etascope worker --with my_file.py" in found.messages[0]
    assert found.eta_seconds is None
    assert found.state is SweepState.QUEUED
    arrive(session, "two", NEW)
    assert sweeps.get(session, sweep_id=found.id).waiting_for
    ended = sweeps.cancel(session, sweep_id=found.id)
    assert (ended.state, ended.waiting_for) == (SweepState.CANCELLED, [])
    assert set(session.scalars(select(ShardRow.state))) == {ShardState.CANCELLED}


def test_what_a_living_worker_had_to_leave_out_is_told_where_it_is_missed(
    session: Session,
) -> None:
    why = f"{TASK} is left out: its code was changed after the worker started."
    left = Worker("two", "bert.lab", 2, "cpu", left_out={TASK: why})
    workers.register(session, worker=left)
    assert refused(session).message == f"Nobody has {TASK}: on bert.lab {why}"
    arrive(session, "one", OLD, host="anna.lab")
    leave(session, "one")
    found = submit_body(session).sweep
    assert (
        f"anna.lab had it last, until {found.waiting_for[0].last_seen_at:%Y}" in found.messages[0]
    )
    assert found.messages[0].endswith(f": on bert.lab {why}")


def test_a_waiting_sweep_keeps_nobody_else_waiting(session: Session) -> None:
    arrive(session, "one", OLD)
    leave(session, "one")
    submit_body(session, seeds=50)
    arrive(session, "plain")
    other = submit_body(session, task="toy/quadratic")
    assert other.sweep.waiting_for == []
    due = shards.due(session, depths={"cpu": 0, "gpu": 0})
    assert {item.shard_id for item in due} == set(other.shard_ids)
    alone = submit_body(session, task="toy/quadratic", seeds=[9]).sweep
    assert alone.eta_seconds is not None
    assert alone.eta_seconds < 60


def test_a_task_and_a_method_must_be_on_one_worker(session: Session) -> None:
    lion = method_manifest()
    task_only = arrive(session, "one", OLD)
    method_only = arrive(session, "two", lion)
    found = submit_body(session, methods=["eb", f"{METHOD}(wd=0.1)"])
    assert {one.name for one in found.sweep.waiting_for} == {TASK, METHOD}
    plain = claim_all(session, found.shard_ids, task_only)
    assert plain
    assert claim_all(session, found.shard_ids, method_only) == []
    both = arrive(session, "three", OLD, lion)
    assert sorted([*plain, *claim_all(session, found.shard_ids, both)]) == found.shard_ids
    methods = set(session.scalars(select(TrialRow.method)))
    assert methods == {"eb", f"{METHOD}(wd=0.1)"}
    assert {one["name"] for one in found.sweep.spec["needs"]} == {TASK, METHOD}


def test_a_retry_needs_the_version_it_was_planned_with(session: Session) -> None:
    one = arrive(session, "one", OLD)
    first = submit_body(session)
    sweeps.cancel(session, sweep_id=first.sweep.id)
    two = arrive(session, "two", NEW)
    again = sweeps.retry(session, sweep_id=first.sweep.id)
    assert again.shard_ids
    assert claim_all(session, again.shard_ids, two) == []
    assert claim_all(session, again.shard_ids, one) == again.shard_ids


def test_trials_that_part_ways_still_need_their_version(session: Session) -> None:
    one = arrive(session, "one", OLD)
    sent = submit_body(session)
    for shard_id in sent.shard_ids:
        for _ in range(2):
            claim = shards.claim(session, shard_id=shard_id, worker="one", offers=one.offers)
            assert claim is not None
            shards.fail(session, claim=claim, error="my_file.py, line 3: no.")
            session.execute(ShardRow.__table__.update().values(not_before=None))
    needs = session.scalars(select(ShardRow.needs).where(ShardRow.state == ShardState.QUEUED))
    assert set(needs) == {offer_key(OLD)}
    assert set(session.scalars(select(TrialRow.state))) == {TrialState.QUEUED}


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"vary": {"width": [3]}}, "vary.width", "The option width must be"),
        ({"vary": {"width": [4.5]}}, "vary.width", "whole"),
        ({"vary": {"norm": ["layer"]}}, "vary.norm", "one of batch, none; got 'layer'"),
        (
            {"vary": {"colour": ["red"]}},
            "vary.colour",
            "There is no setting to vary called 'colour'",
        ),
        ({"methods": [f"{METHOD}(wd=2)"]}, "methods", "The option wd must be"),
        ({"methods": ["my_file.py:nothing"]}, "methods", f"{METHOD}"),
        ({"task": "my_file.py:nothing"}, "task", TASK),
        ({"epochs": 0}, "epochs", "Epochs must be"),
        ({"methods": ["eb", "ib"]}, "methods", f"the model of {TASK} has none"),
    ],
)
def test_what_the_manifest_does_not_take_is_refused_in_a_sentence(
    session: Session, body: dict[str, Any], field: str, words: str
) -> None:
    arrive(session, "one", OLD, method_manifest())
    error = refused(session, **body)
    assert error.field == field
    assert words in error.message


def test_options_are_part_of_the_address_and_defaults_are_filled_in(session: Session) -> None:
    arrive(session, "one", OLD)
    plain = submit_body(session)
    same = submit_body(session, vary={"width": [32], "norm": ["batch"]})
    assert same.sweep.reused == same.sweep.total
    wider = submit_body(session, vary={"width": [64]})
    assert wider.sweep.reused == 0
    assert plain.sweep.spec["options"]["width"] == 32
    assert wider.sweep.spec["options"] == {
        **plain.sweep.spec["options"],
        "width": 64,
    }
    typed = submit_body(session, vary={"width": ["64"]})
    assert typed.sweep.reused == typed.sweep.total
    several = submit_body(session, vary={"width": [8, 16], "norm": ["batch", "none"]})
    assert len(several.sweep.sweep_ids) == 4


def test_a_forecast_says_what_is_missing_and_how_much_it_is(session: Session) -> None:
    arrive(session, "one", OLD)
    body = {"task": TASK, "methods": ["eb"], "learning_rates": [0.1], "seeds": 2}
    found = submission.forecast(session, body=body)
    assert (found.trials, found.messages) == (2, [])
    leave(session, "one")
    (message,) = [
        one for one in submission.forecast(session, body=body).messages if "my_file" in one
    ]
    assert message.startswith("waiting for a worker with")


def test_what_is_told_for_one_request_is_forgotten_after_it(session: Session) -> None:
    arrive(session, "one", OLD)
    with offers.known_to(session, {"task": TASK}).told():
        assert TASK in OWN_TASKS
    assert TASK not in OWN_TASKS


def test_the_catalogue_lists_versions_options_and_whose_they_are(session: Session) -> None:
    arrive(session, "one", OLD, method_manifest(), host="anna.lab")
    arrive(session, "two", NEW, host="ben.lab")
    found = catalog.get(session)
    own = {task.name: task for task in found.tasks if task.version}
    assert set(own) == {TASK, f"{TASK}@aaaa0000"}
    assert (own[TASK].workers, own[TASK].version) == (["ben.lab"], "cccc0000")
    assert own[TASK].options["properties"]["width"]["maximum"] == 512
    assert METHOD in own[TASK].methods
    assert "ib" not in own[TASK].methods
    assert {offer.version for offer in found.offers} == {"aaaa0000", "bbbb0000", "cccc0000"}
    assert [one.name for one in found.methods if one.version] == [METHOD]


def test_a_long_name_of_a_method_fits_every_database(session: Session) -> None:
    options = options_schema({f"a_long_option_{n}": number(0, 1, 0.0) for n in range(9)})
    arrive(session, "one", OLD, method_manifest("dddd0000dddd0000", options=options))
    said = ",".join(f"a_long_option_{n}=0.125" for n in range(4))
    found = submit_body(session, methods=[f"{METHOD}({said})"])
    assert found.sweep.total == 4
    too_long = ",".join(f"a_long_option_{n}=0.125" for n in range(9))
    error = refused(session, methods=[f"{METHOD}({too_long})"])
    assert (error.field, "at most 200 characters" in error.message) == ("methods", True)


def test_torchs_optimizers_are_read_without_torch_and_need_nobody_in_particular(
    session: Session,
) -> None:
    options = options_schema({"weight_decay": number(0, 1, 0.01)})
    name = "torch.optim.AdamW"
    worker = arrive(session, "one", method_manifest(None, name=name, title=name, options=options))
    found = submit_body(session, task="toy/quadratic", methods=[f"{name}(weight_decay=0.5)"])
    assert found.sweep.spec.get("needs") is None
    assert claim_all(session, found.shard_ids, worker) == found.shard_ids
