"""The benchmarks measure what they say: real steps, equal work, honest fits."""

import math

import pytest
import torch

from ib_core.bench import peers, steps
from ib_core.bench.races import Race, race, train_one
from ib_core.bench.sweeps import _slope
from ib_core.methods import METHODS
from ib_core.sweep.engine import run_trials
from ib_core.sweep.spec import SweepSpec


def test_a_ratio_is_the_median_of_the_ratios_within_rounds():
    measured = Race({"slow": (2.0, 30.0, 4.0), "fast": (1.0, 10.0, 1.0)})
    ratio = measured.ratio("slow", "fast")
    assert (ratio.value, ratio.low, ratio.high, ratio.rounds) == (3.0, 2.5, 3.5, 3)


def test_the_fitted_exponent_of_a_power_law_is_its_power():
    points = [(math.log(n), math.log(3 * n**1.7)) for n in (10, 100, 1000)]
    assert _slope(points) == pytest.approx(1.7)


def test_a_stack_of_a_hundred_is_raced_by_every_method_that_shares_one():
    (case,) = [one for one in steps.CASES if one.members == 100 and len(one.methods) > 2]
    alone = {name for name, one in METHODS.items() if one.exact or one.implicit_filters}
    assert set(case.methods) == METHODS.keys() - alone
    steps.engine_steps([t for m in case.methods for t in few(m)], 1)()


def test_a_stack_is_raced_with_one_thread_as_it_is_trained(monkeypatch):
    def noted(*_):
        return lambda: seen.append(torch.get_num_threads())

    threads, seen = torch.get_num_threads(), []
    monkeypatch.setattr(steps, "engine_steps", noted)
    torch.set_num_threads(2)
    try:
        list(steps._race_network(steps.StepCase("two", "bundled/wine", ("eb",), members=2), 0.0))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def few(method):
    return steps.trials_of(steps.StepCase("wine", "bundled/wine", (method,), members=2), method)


@pytest.mark.parametrize("method", ["eb", "ib", "ib_plus", "isgd"])
def test_every_method_takes_its_steps(method):
    case = steps.StepCase("wine", "bundled/wine", (method,), members=3, steps=2)
    steps.engine_steps(steps.trials_of(case, method), case.steps)()


def test_the_plain_loop_learns_as_the_engine_does():
    spec = SweepSpec.create(
        "bundled/wine", methods=("eb",), learning_rates=[0.1], seeds=[1, 2, 3], epochs=20
    )
    for result in run_trials(spec.expand()):
        assert result.train_loss < result.initial_loss / 2
        # From torch's own, smaller initial weights it starts slower.
        assert train_one(result.spec) < result.initial_loss * 0.9


@pytest.mark.parametrize("tool", ["ours", "loop"])
def test_a_tool_trains_the_whole_grid(tool):
    peers.TOOLS[tool](peers.PeerCase("wine", "bundled/wine", 1, 2, 2))


def test_a_race_ends_when_its_time_is_over_but_not_before_three_rounds():
    counted = []
    measured = race({"a": lambda: counted.append(1)}, rounds=50, seconds=0.0)
    assert len(measured.seconds["a"]) == 3
    assert len(counted) == 4, "and a warm-up"
