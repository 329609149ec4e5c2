"""Shards in parts, and steps taken blindly: nothing but the time they take may depend on it."""

import pytest
import torch

from ib_core.methods import METHODS
from ib_core.sweep import engine
from ib_core.sweep.cost import stack_memory
from ib_core.sweep.engine import _StackRun, run_trials
from ib_core.sweep.result import Observer
from ib_core.sweep.shard import fitting
from ib_core.sweep.spec import SweepSpec
from ib_core.tasks.networks import StackedConv
from ib_core.tasks.workloads import RowsWorkload


def trials_of(task="bundled/iris", **settings):
    settings = {"learning_rates": [0.1, 1.0], "seeds": [1, 2], "epochs": 2, **settings}
    return SweepSpec.create(task, **settings).expand()


def told(result):
    """What a trial found, without the time it took and the company it kept."""
    return (result.outcome, result.divergence, result.curve, result.restarts, result.at_zero)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("isgd", "ib_conv")])
def test_steps_taken_blindly_are_the_same_steps(method, monkeypatch):
    # The largest rates break on the way, each at a step and in a layer of its own.
    rates = [0.1, 30.0, 1e4, 1e8, 1e12]
    settings = {"batch_size": 10, "methods": (method,), "learning_rates": rates, "seeds": [1]}
    trials = trials_of(activation="relu", **settings)
    watched = run_trials(trials)
    monkeypatch.setattr(engine, "look_every", lambda device: 7)
    blind = run_trials(trials)
    assert [told(result) for result in blind] == [told(result) for result in watched]
    if method == "eb":
        broke = {r.divergence.step for r in watched if r.divergence}
        assert len(broke) > 1


@pytest.mark.parametrize("back", [False, True], ids=["blind", "taken back"])
@pytest.mark.parametrize("method", ["eb", "ib"])
def test_restarts_and_the_theorems_sums_are_the_same_sums(method, back, monkeypatch):
    settings = {"methods": (method,), "learning_rates": [0.1, 10.0, 1e4], "mu": 0.1}
    trials = trials_of(batch_size=10, seeds=[1], options={"restart": True}, **settings)
    watched = run_trials(trials)
    monkeypatch.setattr(engine, "look_every", lambda device: 7)
    if back:  # restarts leave nothing that is not finite, so it must be said
        monkeypatch.setattr(engine, "all_finite", lambda losses: False)
    blind = run_trials(trials)
    for one, other in zip(blind, watched, strict=True):
        assert told(one) == told(other)
        assert one.record["theorem"] == other.record["theorem"]
    assert max(one.restarts for one in watched) > 1


class Ends(Observer):
    def __init__(self):
        self.ended, self.fractions = [], []

    def finished(self, index, result):
        self.ended.append((index, result))

    def progress(self, fraction):
        self.fractions.append(fraction)
        return ()


def scarce(monkeypatch, most):
    """Let a stack's allocations raise as a GPU's do where it has more members than `most`."""
    asked, whole = [], RowsWorkload.load_batch

    def load_batch(self, step):
        if step == 1:
            asked.append(len(self.seeds))
            if len(self.seeds) > most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
        whole(self, step)

    monkeypatch.setattr(RowsWorkload, "load_batch", load_batch)
    return asked


def test_a_stack_that_does_not_fit_is_halved_until_it_does(monkeypatch):
    trials = trials_of(batch_size=20)
    wanted = run_trials(trials)
    asked = scarce(monkeypatch, 3)
    monkeypatch.setattr(engine, "PROGRESS_EVERY", 0.0)
    observer = Ends()
    found = run_trials(trials, observer=observer)
    assert [told(result) for result in found] == [told(result) for result in wanted]
    assert [result.spec for result in found] == trials
    assert asked[:2] == [8, 4]
    assert max(asked[2:]) == 2
    assert sorted(index for index, _ in observer.ended) == list(range(8))
    assert all(found[index] is result for index, result in observer.ended)
    assert max(observer.fractions) == 1.0


def test_a_stack_of_anybodys_optimizer_is_halved_likewise_and_stays_a_stack(monkeypatch):
    trials = trials_of(batch_size=20, methods=("torch.optim.SGD",), seeds=[1, 2, 3])
    wanted = run_trials(trials)
    assert wanted[0].record["way"] == "stacked"
    asked = scarce(monkeypatch, 3)
    observer = Ends()
    found = run_trials(trials, observer=observer)
    for one, other in zip(found, wanted, strict=True):
        assert one.train_loss == pytest.approx(other.train_loss, rel=1e-4)
    assert {result.record["way"] for result in found} == {"stacked"}
    assert asked[0] == 6
    assert set(asked[1:]) == {3}
    assert sorted(index for index, _ in observer.ended) == list(range(6))


def test_a_stack_that_breaks_trains_one_by_one_and_keeps_what_had_ended(monkeypatch):
    trials = trials_of(batch_size=20, methods=("torch.optim.SGD",), seeds=[1, 2, 3])
    wanted, whole = run_trials(trials), RowsWorkload.load_batch
    scarce(monkeypatch, 3)
    halves = RowsWorkload.load_batch
    seen = []

    def load_batch(self, step):
        if step == 1 and len(self.seeds) == 3:
            seen.append(step)
            if len(seen) > trials[0].epochs:  # the second half
                raise ValueError("no more of this")
        (whole if len(self.seeds) == 1 else halves)(self, step)

    monkeypatch.setattr(RowsWorkload, "load_batch", load_batch)
    found = run_trials(trials)
    ways = [result.record["way"] for result in found]
    assert ways == ["stacked"] * 3 + ["one by one"] * 3
    assert "no more of this" in found[-1].record["why"]
    for one, other in zip(found, wanted, strict=True):
        assert one.train_loss == pytest.approx(other.train_loss, rel=1e-4)


def test_memory_that_does_not_do_for_one_is_said(monkeypatch):
    scarce(monkeypatch, 0)
    with pytest.raises(torch.OutOfMemoryError):
        run_trials(trials_of(batch_size=20))


def test_a_stack_is_cut_to_what_its_device_has_room_for(monkeypatch):
    trials = trials_of("bundled/wine", batch_size=20)
    room = stack_memory(trials[:4])
    assert stack_memory(trials) > room
    asked = scarce(monkeypatch, 8)
    monkeypatch.setattr(engine, "room_on", lambda device: room)
    found = run_trials(trials)
    assert asked == [4, 4] * trials[0].epochs or asked == [4] * 2 * trials[0].epochs
    assert [result.spec for result in found] == trials


@pytest.mark.parametrize(("room", "fit"), [(None, 100), (1000, 100), (999, 50), (1, 1), (0, 1)])
def test_halves_are_taken_until_the_forecast_fits(room, fit):
    assert fitting(range(100), room, lambda some: 10 * len(some)) == fit


@pytest.mark.parametrize("profile", ["text", "authors"])
def test_masks_drawn_for_an_epoch_are_those_drawn_step_by_step(profile):
    trials = trials_of("digits_conv", learning_rates=[0.1], methods=("ib",), profile=profile)
    by_step, ahead = (_StackRun(trials, torch.device("cpu"), Observer()).workload for _ in "ab")
    for _ in range(2):
        by_step.begin_epoch()
        ahead.begin_epoch()
        ahead._draw_ahead(len(ahead.train.x))
        for step in range(by_step.steps_per_epoch):
            by_step.load_batch(step)
            ahead.load_batch(step)
            for one, other in zip(by_step._masks, ahead._masks, strict=True):
                assert one is other is None or torch.equal(one, other)
    kept = torch.tensor([1])
    by_step.keep(kept)
    ahead.keep(kept)
    ahead.load_batch(0)
    assert ahead.losses(ahead.model()).shape == (1,)


def test_one_grouped_convolution_gives_what_members_one_by_one_give():
    draw = torch.Generator().manual_seed(1)
    layer = StackedConv(2, 5, 3, 4)
    for parameter in layer.parameters():
        parameter.data.normal_(generator=draw)
    x = torch.randn(4, 6, 2, 8, 8, generator=draw)
    weight = torch.randn(4, 6, 5, 3, 3, generator=draw)
    gradients = []
    for way in (layer.forward, layer.at_once):
        layer.zero_grad()
        (way(x) * weight).sum().backward()
        gradients.append([p.grad.clone() for p in layer.parameters()])
    assert torch.allclose(layer(x), layer.at_once(x), atol=1e-5)
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-3)
