import math
import time

import pytest
import torch

from ib_core.errors import IBError, MisuseError
from ib_core.methods import METHODS, first_bad_layer
from ib_core.methods.slots import Slots
from ib_core.sweep import run_sweep
from ib_core.sweep.engine import run_trials
from ib_core.sweep.result import Observer, Outcome
from ib_core.sweep.spec import SweepSpec
from ib_core.tasks.networks import StackedMLP


def trials_of(task="bundled/iris", **settings):
    settings = {"learning_rates": [0.1, 1.0], "seeds": [1, 2], "epochs": 2, **settings}
    return SweepSpec.create(task, **settings).expand()


def test_the_toy_shrinks_by_the_factors_of_the_first_figure():
    trials = trials_of(
        "toy/quadratic",
        methods=("eb", "ib_plus", "isgd"),
        learning_rates=[1.75],
        seeds=[1],
        epochs=1,
    )
    explicit, implicit = run_trials(trials[:2])
    (exact,) = run_trials(trials[2:])
    # Ten steps; the loss theta^2/2 shrinks by the square of the factor in each.
    assert explicit.train_loss / explicit.initial_loss == pytest.approx(0.75**20, rel=1e-4)
    assert implicit.train_loss / implicit.initial_loss == pytest.approx(2.75**-20, rel=1e-4)
    assert exact.train_loss / exact.initial_loss == pytest.approx(2.75**-20, rel=1e-3)


def test_an_implicit_step_of_the_ridge_alone_shrinks_by_one_over_one_plus_rate():
    (trial,) = trials_of(
        "toy/quadratic", methods=("ib_plus",), learning_rates=[3.0], seeds=[1], mu=1.0, epochs=1
    )
    (result,) = run_trials([trial])
    # theta' = theta / (1 + lr*mu + lr): data and ridge both pull with weight 1.
    assert result.train_loss / result.initial_loss == pytest.approx(7.0**-20, rel=1e-4)


def test_pairs_start_from_the_same_weights_and_see_the_same_batches():
    results = run_trials(trials_of(methods=("eb", "ib", "adam")))
    for seed in (1, 2):
        records = [r.record for r in results if r.spec.seed == seed]
        assert len({r["initial_weights"] for r in records}) == 1
        assert len({r["batch_order"] for r in records}) == 1
        assert len({r.initial_loss for r in results if r.spec.seed == seed}) == 1
    assert len({r.record["initial_weights"] for r in results}) == 2
    assert len({r.record["batch_order"] for r in results}) == 2


@pytest.mark.parametrize("task", ["bundled/wine", "digits_autoencoder", "digits_conv"])
def test_the_same_trials_give_the_same_numbers_bit_for_bit(task):
    trials = trials_of(task, learning_rates=[0.1], epochs=1)
    first, second = run_trials(trials), run_trials(trials)
    assert [r.curve for r in first] == [r.curve for r in second]


@pytest.mark.parametrize("task", ["bundled/wine", "digits_autoencoder", "digits_conv"])
def test_a_trial_alone_and_in_a_stack_agree_to_rounding(task):
    trials = trials_of(task, learning_rates=[0.01, 0.1], epochs=2)
    together = run_trials(trials)
    for trial, result in zip(trials, together, strict=True):
        (alone,) = run_trials([trial])
        assert alone.train_loss == pytest.approx(result.train_loss, rel=2e-5)
        assert alone.fingerprint == result.fingerprint


def test_music_pairs_train_together_and_alone_alike():
    trials = trials_of(
        "music/procedural", learning_rates=[1.0], seeds=[3], epochs=1, options={"width": 8}
    )
    together = run_trials(trials)
    for trial, result in zip(trials, together, strict=True):
        (alone,) = run_trials([trial])
        assert alone.train_loss == pytest.approx(result.train_loss, rel=2e-5)
    assert together[0].train_loss < together[0].initial_loss


def test_a_non_finite_member_leaves_early_and_says_when_and_where():
    trials = trials_of("digits_autoencoder", methods=("eb",), learning_rates=[0.1, 1e6], seeds=[1])
    calm, wild = run_trials(trials)
    assert calm.outcome is Outcome.COMPLETED
    assert wild.outcome is Outcome.DIVERGED
    assert not math.isfinite(wild.train_loss)
    assert wild.divergence.step >= 1
    assert wild.divergence.where in ("loss", "weight", "gradient")
    (alone,) = run_trials(trials[:1])
    assert calm.train_loss == pytest.approx(alone.train_loss, rel=2e-5)


def test_an_exploded_but_finite_member_trains_to_its_end_and_keeps_its_losses():
    (result,) = run_trials(
        trials_of("digits_mlp", methods=("eb",), learning_rates=[300.0], seeds=[1], epochs=3)
    )
    assert result.outcome is Outcome.DIVERGED
    assert math.isfinite(result.train_loss)
    assert result.curve[-1].epoch == 3
    assert result.divergence.where == "loss"
    assert result.divergence.step < result.curve[-1].step


def test_losses_are_taken_before_the_first_step_and_after_every_epoch():
    (result,) = run_trials(trials_of(methods=("eb",), learning_rates=[0.1], seeds=[1], epochs=3))
    assert [point.epoch for point in result.curve] == [0, 1, 2, 3]
    assert result.curve[0].train_loss == result.initial_loss
    assert 0 <= result.test_accuracy <= 1


class Recording(Observer):
    def __init__(self, drop=()):
        self.seen, self.ended, self.fractions, self.drop = [], [], [], drop

    def points(self, points):
        self.seen.append(sorted(points))

    def finished(self, index, result):
        self.ended.append(index)

    def progress(self, fraction):
        self.fractions.append(fraction)
        return self.drop


def test_the_observer_sees_points_ends_and_rising_progress(monkeypatch):
    monkeypatch.setattr("ib_core.sweep.engine.PROGRESS_EVERY", 0.0)
    observer = Recording()
    run_trials(trials_of(), observer=observer)
    assert observer.seen == [list(range(8))] * 3
    assert sorted(observer.ended) == list(range(8))
    assert observer.fractions == sorted(observer.fractions)
    assert observer.fractions[-1] == 1.0


def test_unwanted_trials_are_dropped_and_the_rest_go_on(monkeypatch):
    monkeypatch.setattr("ib_core.sweep.engine.PROGRESS_EVERY", 0.0)
    results = run_trials(trials_of(), observer=Recording(drop=(0, 5)))
    assert [i for i, result in enumerate(results) if result is None] == [0, 5]
    assert run_trials(trials_of(), observer=Recording(drop=range(8))) == [None] * 8


def test_the_members_of_a_stack_share_its_time():
    trials = trials_of(epochs=5)
    began = time.perf_counter()
    results = run_trials(trials)
    elapsed = time.perf_counter() - began
    assert 0 < sum(result.seconds for result in results) <= elapsed
    assert len({round(result.seconds, 9) for result in results}) == 1


@pytest.mark.parametrize(
    ("gradients", "blamed"),
    [((0, 1, 2), ("gradient", "layers.2")), ((0,), ("gradient", "layers.0"))],
)
def test_the_layer_nearest_the_output_is_named_where_gradients_broke(gradients, blamed):
    model = StackedMLP((2, 3, 3, 2), "arctan", "linear", 2)
    slots = Slots(model)
    for layer in gradients:
        slots.of(model.layers[layer].weight).grad[1] = math.nan
        model.layers[layer].weight.data[1] = math.nan
    assert first_bad_layer(slots, 1) == blamed
    assert first_bad_layer(slots, 0) == ("loss", None)


def test_weights_that_overflow_under_finite_gradients_are_named_from_the_input_on():
    model = StackedMLP((2, 3, 3, 2), "arctan", "linear", 1)
    for layer in (1, 2):
        model.layers[layer].weight.data[0] = math.inf
    assert first_bad_layer(Slots(model), 0) == ("weight", "layers.1")


def test_a_whole_sweep_runs_in_one_call():
    spec = SweepSpec.create(
        "bundled/iris",
        methods=("eb", "ib", "isgd"),
        learning_rates=[0.1, 1.0],
        seeds=[1],
        epochs=1,
        options={"inner_steps": 3},
    )
    results = run_sweep(spec)
    assert [r.spec for r in results] == spec.expand()


def test_trials_of_different_programs_are_refused():
    with pytest.raises(MisuseError, match="plan_shards"):
        run_trials(trials_of() + trials_of("bundled/wine"))


def test_a_device_that_is_not_there_is_said_in_one_sentence():
    with pytest.raises(IBError, match="no device 'cuda:99'"):
        run_trials(trials_of(), device="cuda:99")
    with pytest.raises(IBError, match="no device 'tpu'"):
        run_trials(trials_of(), device="tpu")


#: Their steps are as long as the rate, however small the gradient.
RATE_LONG = ("adam", "adamw", "nadam", "rmsprop", "lion")


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ib_conv"])  # no filters
@pytest.mark.parametrize("profile", ["text", "authors"])
def test_every_method_learns_something_on_wine(method, profile):
    (result,) = run_trials(
        trials_of(
            "bundled/wine",
            methods=(method,),
            learning_rates=[0.01 if method in RATE_LONG else 0.3],
            seeds=[1],
            profile=profile,
            epochs=20,
            options={"inner_steps": 20},
        )
    )
    assert result.outcome is Outcome.COMPLETED
    assert result.train_loss < 0.9 * result.initial_loss


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_gpu_gives_the_cpus_losses_to_rounding():
    trials = trials_of("bundled/wine", learning_rates=[0.1])
    for ours, other in zip(run_trials(trials), run_trials(trials, device="cuda"), strict=True):
        assert ours.train_loss == pytest.approx(other.train_loss, rel=1e-3)
