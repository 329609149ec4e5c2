"""What App. C's theorem speaks of, recorded while training."""

import pytest
import torch

from ib_core import Member, build_optimizer
from ib_core.sweep import PRESETS, SweepSpec, run_trials, specs_of
from ib_core.tasks.networks import StackedMLP


def test_the_average_is_the_sum_of_rates_times_squared_gradients_over_the_sum_of_rates():
    model = StackedMLP((1, 1), "linear", "linear", 2).double()
    weight = next(model.parameters())
    with torch.no_grad():
        weight.copy_(torch.tensor([[[0.5]], [[0.4]]]))
    members = [
        Member("eb", 0.5, mu=0.1, restart=True, decay_tau=2.0, decay_power=1.0),
        Member("ib", 0.5, mu=0.1, restart=True),
    ]
    optimizer = build_optimizer(model, members, loss_at_zero=10.0)
    before, rates = weight.detach().flatten().tolist(), [0.5 / (1 + t / 2) for t in range(4)]

    def closure():
        losses = model(torch.ones(2, 1, 1, dtype=torch.float64)).square().mean((1, 2)) / 2
        losses.sum().backward()
        return losses.detach()

    def noted(row):
        found = optimizer.averages.of(row)["theorem"]
        return {name: values[-1] for name, values in found.items()}

    optimizer.averages.note(0, optimizer.restarts)
    assert [noted(row)["average"] for row in range(2)] == [None, None]
    weighted = [0.0, 0.0]
    for step in range(4):
        optimizer.step(closure)
        now = weight.detach().flatten().tolist()
        for row, rate in enumerate((rates[step], 0.5)):
            weighted[row] += rate * ((before[row] - now[row]) / rate) ** 2
        before = now
    optimizer.averages.note(4, optimizer.restarts)
    first, second = noted(0), noted(1)
    assert first["average"] == pytest.approx(weighted[0] / sum(rates))
    assert second["average"] == pytest.approx(weighted[1] / 2.0)
    assert first["theta"] == pytest.approx(abs(before[0]))
    assert first["restarts"] == second["restarts"] == 0
    optimizer.keep(torch.tensor([1]))
    assert noted(0) == second


def test_a_trial_that_restarts_keeps_a_record_at_every_evaluation_and_others_keep_none():
    def trained(restart):
        spec = SweepSpec.create(
            "bundled/iris",
            methods=["eb", "ib"],
            learning_rates=[0.1, 1000.0],
            seeds=[1],
            epochs=3,
            mu=0.01,
            options={"restart": restart, "decay": {"tau": 10.0, "power": 1.0}},
        )
        return run_trials(spec.expand())

    for result in trained(True):
        found = result.record["theorem"]
        assert found["step"] == [point.step for point in result.curve][: len(found["step"])]
        assert found["average"][0] is None
        assert found["restarts"] == sorted(found["restarts"])
        assert found["restarts"][-1] == result.restarts
    assert any(result.restarts for result in trained(True))
    assert all("theorem" not in result.record for result in trained(False))


def test_the_preset_of_the_appendix_runs_with_and_without_restarts():
    restarting, plain = specs_of({"preset": "theory/level_set"})
    assert (restarting.options.restart, plain.options.restart) == (True, False)
    assert restarting.options.decay == plain.options.decay is not None
    assert restarting.mu > 0
    assert "theory/level_set" in PRESETS
