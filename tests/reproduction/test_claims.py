"""Claims about the text profile, trained for real."""

from statistics import fmean

import pytest

from ib_core.sweep import run_sweep
from ib_core.sweep.spec import SweepSpec

pytestmark = pytest.mark.reproduction


def means(spec):
    results = run_sweep(spec)
    return {
        (method, lr): fmean(
            r.train_loss for r in results if (r.spec.method, r.spec.lr) == (method, lr)
        )
        for method in spec.methods
        for lr in spec.learning_rates
    }


def test_implicit_steps_hold_three_decades_on_jsb_chorales(needs_data):
    needs_data("jsb_chorales")
    rates = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
    loss = means(SweepSpec.create("music/jsb_chorales", learning_rates=rates, seeds=[1, 2, 3]))
    best = min(loss["eb", lr] for lr in rates)
    assert all(loss["ib", lr] < best for lr in rates if 3 <= lr <= 100)
    assert all(loss["ib", lr] < loss["eb", lr] for lr in rates if lr >= 10)


def test_an_implicit_output_layer_survives_rate_100_on_car(needs_data):
    needs_data("uci/car")
    loss = means(
        SweepSpec.create(
            "uci/car",
            methods=("eb", "ib_plus"),
            learning_rates=[100.0],
            seeds=[1, 2, 3],
            epochs=5,
            batch_rule="own",
        )
    )
    assert loss["ib_plus", 100.0] < 2
    assert loss["eb", 100.0] > 20


def test_steps_that_look_at_the_loss_survive_any_rate_on_car(needs_data):
    needs_data("uci/car")
    rates = (5.0, 10.0, 100.0, 1000.0)
    given = {"learning_rates": rates, "seeds": [1, 2, 3], "epochs": 10}
    loss = means(SweepSpec.create("uci/car", methods=("ngn", "sps"), **given))
    # Of a script that knows nothing of this code, from its own weights and batches. From ours the
    # same 40 lines take the same steps to 3e-6, and yet end elsewhere from rate 10 on: initial
    # weights moved by 1e-7 move NGN's means of these seeds to .25-.31, .32-.60 and .34-.52.
    expected = {"ngn": (0.17, 0.30, 0.40, 0.42), "sps": (0.15, 0.12, 0.13, 0.13)}
    for method, known in expected.items():
        found = [loss[method, lr] for lr in rates]
        assert found[:1] == pytest.approx(known[:1], rel=0.35)  # seeds alone
        assert found == pytest.approx(known, rel=0.6)
