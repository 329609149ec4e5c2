"""The paper's classifier with implicit convolutions, trained by the engine."""

import pytest

from ib_core.errors import IBError
from ib_core.reproduction.lines import decode, encode
from ib_core.sweep import (
    SweepSpec,
    TrialSpec,
    fingerprint,
    plan_shards,
    run_trials,
    specs_of,
    stack_memory,
)

HASH = "0" * 64


def trials(convolutions, methods=("eb", "ib"), rates=(0.3,), **more):
    options = {"convolutions": convolutions} if convolutions else {}
    return SweepSpec.create(
        "digits_conv",
        methods=methods,
        learning_rates=rates,
        seeds=[1],
        epochs=1,
        batch_size=300,
        options=options,
        **more,
    ).expand()


def test_explicit_training_cares_not_what_the_filters_could_do_and_implicit_training_does():
    explicit = run_trials([*trials("explicit")])
    implicit = run_trials([*trials("implicit")])
    for one, other in zip(explicit, implicit, strict=True):
        assert one.record["initial_weights"] == other.record["initial_weights"]
    assert implicit[0].train_loss == pytest.approx(explicit[0].train_loss, rel=1e-4)
    assert implicit[1].train_loss != pytest.approx(explicit[1].train_loss, rel=1e-4)


def test_at_a_small_rate_the_implicit_classifier_is_the_explicit_one():
    eb, own, share = (
        run_trials(trials("implicit", [method], [1e-4], batch_rule=rule))[0]
        for method, rule in (("eb", "own"), ("ib", "own"), ("ib", "share"))
    )
    moved = eb.train_loss - eb.initial_loss
    for one in (own, share):
        assert one.train_loss - one.initial_loss == pytest.approx(moved, rel=0.02)


@pytest.mark.parametrize("rule", ["own", "share"])
def test_a_member_of_a_stack_trains_as_it_would_alone(rule):
    several = trials("implicit", ["eb", "ib", "sps"], [0.1, 1.0], batch_rule=rule)
    together = run_trials(several)
    for trial, result in zip(several, together, strict=True):
        alone = run_trials([trial])[0]
        assert alone.train_loss == pytest.approx(result.train_loss, rel=1e-3)


def test_ib_conv_is_ib_with_implicit_filters_beside_the_paper_s():
    both = SweepSpec.create(
        "digits_conv",
        methods=["eb", "ib", "ib_conv"],
        learning_rates=[0.3],
        seeds=[1],
        epochs=1,
        batch_size=300,
    ).expand()
    assert [len(shard.indices) for shard in plan_shards(both)] == [2, 1]
    assert fingerprint(both[2], HASH) != fingerprint(both[1], HASH)
    (found,) = run_trials(both[2:])
    (explicit,) = run_trials(both[1:2])
    (meant,) = run_trials(trials("implicit", ["ib"]))
    assert found.train_loss == meant.train_loss
    assert found.train_loss != pytest.approx(explicit.train_loss, rel=1e-4)
    assert stack_memory(both[2:]) > stack_memory(both[1:2])


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        ("digits_mlp", {}, "another network .digits_mlp.; ib solves the ImplicitConv2d"),
        ("digits_conv", {"convolutions": "implicit"}, "leave one of the two out"),
    ],
)
def test_ib_conv_where_it_says_nothing_is_refused(task, options, sentence):
    with pytest.raises(IBError, match=sentence):
        SweepSpec.create(task, methods=["ib_conv"], learning_rates=[1.0], options=options)


def test_what_goes_without_saying_moves_no_address():
    said, unsaid, other = (trials(word)[0] for word in ("explicit", None, "implicit"))
    assert said == unsaid
    assert fingerprint(said, HASH) == fingerprint(unsaid, HASH)
    assert fingerprint(other, HASH) != fingerprint(unsaid, HASH)
    assert TrialSpec.from_dict(other.as_dict()) == other
    result = run_trials(trials("implicit", ["ib"]))[0]
    assert decode(encode(result)).spec == result.spec
    assert stack_memory([other]) > stack_memory([unsaid])


def test_both_kinds_are_two_sweeps_of_one_body():
    found = specs_of(
        {"task": "digits_conv", "vary": {"convolutions": ["explicit", "implicit"]}, "seeds": 1}
    )
    assert [dict(spec.options.own) for spec in found] == [{}, {"convolutions": "implicit"}]


@pytest.mark.parametrize(
    ("task", "value", "sentence"),
    [
        ("digits_conv", "both", "convolutions must be one of explicit, implicit"),
        ("digits_mlp", "implicit", "convolutions"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(task, value, sentence):
    with pytest.raises(IBError, match=sentence):
        SweepSpec.create(task, learning_rates=[1.0], options={"convolutions": value})
