"""A step is replayed as a graph only where it is the same work again, and then does that work."""

import pytest
import torch

from ib_core.methods import build_optimizer
from ib_core.sweep import member_of
from ib_core.sweep.on_gpu import WARM, ReplayedSteps
from ib_core.sweep.spec import SweepSpec
from ib_core.tasks import find_task


class Again:
    """Plays a CUDA graph: the same work on the same memory, and nothing of Python's besides."""

    def __init__(self, optimizer):
        self.optimizer, self.fresh = optimizer, False

    def record(self, work):
        self.work, self.losses, self.fresh = work, work(), True
        return self.losses

    def replay(self):
        if self.fresh:  # what was recorded has been done already, unlike on a GPU
            self.fresh = False
            return
        steps, rates = self.optimizer.steps, self.optimizer.given_lr
        self.optimizer.given_lr = self.rates
        self.losses.copy_(self.work())
        self.optimizer.steps, self.optimizer.given_lr = steps, rates


def stack(method, device, task="bundled/iris", size=16, **settings):
    settings = {"learning_rates": [0.1, 1.0], "seeds": [1, 2], "batch_size": size, **settings}
    trials = SweepSpec.create(task, methods=(method,), **settings).expand()
    first = trials[0]
    workload = find_task(task).workload(
        seeds=[trial.seed for trial in trials],
        batch_size=first.batch_size,
        values=first.of_task,
        device=torch.device(device),
        activation=first.activation,
    )
    model = workload.model()
    members = [member_of(trial) for trial in trials]
    optimizer = build_optimizer(model, members, total_steps=40, loss_at_zero=1.0986)
    workload.begin_epoch()

    def closure():
        losses = workload.losses(model)
        losses.sum().backward()
        return losses.detach()

    return workload, model, optimizer, closure


RESTARTED = {"mu": 0.1, "options": {"restart": True}, "learning_rates": [1.0, 300.0]}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        *((name, {}) for name in ("eb", "ib", "sps", "momentum", "ib(schedule=cosine)")),
        ("eb", RESTARTED),
    ],
)
def test_replayed_steps_are_the_steps(method, settings):
    workload, model, optimizer, closure = stack(method, "cpu", **settings)
    other_load, other_model, other, other_closure = stack(method, "cpu", **settings)
    graphs = []

    def graph():
        graphs.append(Again(optimizer))
        graphs[-1].rates = optimizer.given_lr
        return graphs[-1]

    steps = ReplayedSteps(workload, optimizer, closure, graph)
    for _ in range(2):
        for step in range(workload.steps_per_epoch):  # the last batch is shorter
            workload.load_batch(step)
            other_load.load_batch(step)
            assert torch.equal(steps.step(), other.step(other_closure))
        assert steps.replays
        assert len(graphs) == 1
    assert optimizer.steps == other.steps
    assert torch.equal(optimizer.restarts, other.restarts)
    assert bool(other.restarts.any()) is bool(settings)
    for mine, theirs in zip(optimizer.averages.sums, other.averages.sums, strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(model.parameters(), other_model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("method", ["eb", "ib", "ib_plus", "ngn", "ib_momentum", "adam", "momo"])
def test_what_changes_from_step_to_step_is_never_replayed(method):
    # Adam's numbers change, and MoMo's averages move in memory. On meta a step that asked the
    # processor for a number would raise, and one that brought a tensor along would be noticed.
    workload, _, optimizer, closure = stack(method, "meta")
    steps = ReplayedSteps(workload, optimizer, closure, graph=None)
    for step in range(WARM):
        workload.load_batch(step)
        steps.step()
    assert steps.possible is (method not in ("adam", "momo"))


def test_pieces_of_music_differ_in_length_and_are_not_replayed():
    workload, _, optimizer, closure = stack("eb", "meta", "music/procedural", 1)
    assert not ReplayedSteps(workload, optimizer, closure).possible
