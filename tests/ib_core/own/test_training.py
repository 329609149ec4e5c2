"""What a user's task trains is what was asked for, whatever its model, loss and data do."""

import math
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core import Data, ImplicitLinear, ImplicitSGD, Task, run_sweep
from ib_core.errors import IBError
from ib_core.methods import Member, build_optimizer
from ib_core.tasks.model_workload import name_of_loss
from tests.ib_core.own.models import Now, mlp, rows, swept, task_with

CPU = torch.device("cpu")


# --- Implicit layers: what is frozen stays, and only the output layer is solved as such


def frozen() -> nn.Module:
    model = nn.Sequential(ImplicitLinear(16, 8, "relu"), ImplicitLinear(8, 3, "linear"))
    for layer in model:
        nn.init.constant_(layer.bias, 0.25)
        layer.bias.requires_grad_(False)
    return model


@pytest.mark.parametrize("way", ["bridged", "stacked"])
@pytest.mark.parametrize("method", ["ib", "ib_plus", "eb", "proxprop"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_frozen_bias_stays_where_it_is(way: str, method: str, clip: float | None) -> None:
    seeds = [1] if way == "bridged" else [1, 2]
    workload = task_with(frozen).workload(
        seeds=seeds, batch_size=12, values={}, device=CPU, way=way
    )
    model = workload.model()
    members = [Member(method, 0.5, clip=clip) for _ in seeds]
    optimizer = build_optimizer(model, members, output_loss="cross_entropy")

    def passed() -> Tensor:
        losses = workload.losses(model)
        losses.sum().backward()
        return losses.detach()

    workload.begin_epoch()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for step in range(3):
        workload.load_batch(step)
        optimizer.step(passed)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == name.endswith("bias")


def test_a_frozen_bias_is_no_part_of_the_implicit_problem() -> None:
    """IB's step with a frozen bias is that of ImplicitSGD, which knows frozen biases."""
    task = task_with(frozen)
    workload = task.workload(seeds=[1], batch_size=48, values={}, device=CPU, way="bridged")
    model = workload.model()
    optimizer = build_optimizer(model, [Member("ib", 0.5)])
    torch.manual_seed(1)
    alone = frozen()
    sgd = ImplicitSGD(alone, lr=0.5)
    x, y = task.data().train

    def passed() -> Tensor:
        losses = workload.losses(model)
        losses.sum().backward()
        return losses.detach()

    workload.begin_epoch()
    for _ in range(3):
        workload.load_batch(0)
        optimizer.step(passed)
        sgd.zero_grad()
        F.cross_entropy(alone(x), y).backward()
        sgd.step()
    for (_, ours), theirs in zip(model.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours[0], theirs, rtol=1e-5, atol=1e-6)


def inside() -> nn.Module:
    return nn.Sequential(ImplicitLinear(16, 8, "linear"), nn.Tanh(), nn.Linear(8, 3))


def changed_afterwards() -> nn.Module:
    class Cooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.output = ImplicitLinear(16, 3, "linear")

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.output(x)
            return out / 2

    return Cooled()


def used_twice() -> nn.Module:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mixed = ImplicitLinear(16, 16, "linear")

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.mixed(torch.tanh(self.mixed(x)))
            return out

    return Twice()


@pytest.mark.parametrize("model", [inside, changed_afterwards, used_twice])
@pytest.mark.parametrize("rates", [(0.1,), (0.1, 0.2)])
def test_only_the_models_output_is_solved_under_its_loss(
    model: Callable[[], nn.Module], rates: tuple[float, ...]
) -> None:
    with pytest.raises((IBError, AssertionError), match="is not what the model returns"):
        swept(task_with(model), "ib_plus", rates=rates)
    swept(task_with(model), "ib", rates=rates)


def test_an_output_that_is_only_looked_at_differently_is_solved() -> None:
    def model() -> nn.Module:
        layers = ImplicitLinear(16, 6, "relu"), ImplicitLinear(6, 3, "linear")
        return nn.Sequential(*layers, nn.Identity(), nn.Flatten())

    swept(task_with(model), "ib_plus")


def smooth_rows() -> Data:
    data = rows()
    x, y = data.train
    return Data(train=(x, F.one_hot(y, 3) * 0.7 + 0.1))


def test_soft_targets_are_refused_at_the_first_step_of_ib_plus() -> None:
    def model() -> nn.Module:
        return ImplicitLinear(16, 3, "linear")

    task = task_with(model, data=smooth_rows)
    for rates in ((0.1,), (0.1, 0.2)):
        with pytest.raises((IBError, AssertionError), match="ib_plus needs a plain"):
            swept(task, "ib_plus", rates=rates)
        swept(task, "ib", rates=rates)


def test_a_loss_is_torchs_plain_one_only_if_all_its_arguments_are() -> None:
    class Other(nn.CrossEntropyLoss):
        pass

    assert name_of_loss(nn.CrossEntropyLoss()) == "cross_entropy"
    assert name_of_loss(nn.MSELoss()) == "squared_error"
    for changed in (
        nn.CrossEntropyLoss(ignore_index=0),
        nn.CrossEntropyLoss(weight=torch.ones(3)),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.MSELoss(reduction="sum"),
        Other(),
    ):
        assert name_of_loss(changed) is None


# --- Parameters that some steps do not use


def losses_of(
    task: Task, method: str, factory: Any = None, seen: list[Tensor] | None = None, **more: Any
) -> list[float]:
    """Return the losses of eight steps of one model alone, the middle weights after each seen."""
    way = "bridged" if factory is None else "plain"
    workload = task.workload(seeds=[1], batch_size=48, values={}, device=CPU, way=way)
    model = workload.model()
    member = Member(method, 0.1, factory=factory, **more)
    optimizer = build_optimizer(model, [member], way="plain")
    found = []
    middle = dict(model.named_parameters())["middle.weight"]

    def passed() -> Tensor:
        losses = workload.losses(model)
        losses.sum().backward()
        found.append(losses.item())
        return losses.detach()

    workload.begin_epoch()
    for _ in range(8):
        workload.load_batch(0)
        optimizer.step(passed)
        if seen is not None:
            seen.append(middle.detach().clone())
    return found


def torchs(factory: Callable[[list[nn.Parameter]], Any], clip: float) -> list[float]:
    """Return the losses of anybody's loop."""
    torch.manual_seed(1)
    model = Now((1, 4, 5, 7))
    parameters = list(model.parameters())
    optimizer, found = factory(parameters), []
    x, y = rows().train
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        found.append(loss.item())
    return found


SKIPPING = {
    "eb": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
}


@pytest.mark.parametrize("method", SKIPPING)
@pytest.mark.parametrize("clip", [1e9, 0.3])
def test_a_parameter_without_a_gradient_is_skipped_as_torch_does(method: str, clip: float) -> None:
    ours = losses_of(task_with(lambda: Now((1, 4, 5, 7))), method, clip=clip)
    assert ours == pytest.approx(torchs(SKIPPING[method], clip), rel=2e-5)


def test_a_ridge_moves_only_what_had_a_gradient() -> None:
    def sgd(parameters: list[nn.Parameter]) -> Any:
        return torch.optim.SGD(parameters, lr=0.1, weight_decay=0.5)

    ours = losses_of(task_with(lambda: Now((1, 4, 5, 7))), "eb", mu=0.5)
    assert ours == pytest.approx(torchs(sgd, 1e9), rel=2e-5)


def test_a_stale_gradient_is_no_part_of_a_torch_optimizers_clip() -> None:
    task = task_with(lambda: Now((1, 4, 5, 7)))
    ours = losses_of(task, "sgd", torch.optim.SGD, clip=0.3)
    assert ours == pytest.approx(torchs(SKIPPING["eb"], 0.3), rel=2e-5)


@pytest.mark.parametrize(
    "method", ["muon", "prodigy", "schedule_free", "momo", "lion", "ib_momentum"]
)
def test_every_method_leaves_an_unused_parameter_where_it_is(method: str) -> None:
    def model() -> nn.Module:
        net = Now((1, 2, 6))
        net.first = ImplicitLinear(16, 8, "relu")
        return net

    seen: list[Tensor] = []
    losses_of(task_with(model), method, seen=seen)
    moved = [not torch.equal(one, other) for one, other in pairwise(seen)]
    assert moved == [True, False, False, False, True, False, False]


@pytest.mark.parametrize("method", ["sps", "ngn", "ngn_m", "momo"])
def test_a_loss_below_what_a_method_takes_for_the_lowest_ends_its_trial_in_a_sentence(method):
    def likelihood(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out, y) - 1.0

    found = run_sweep(
        task_with(lambda: nn.Linear(16, 3), likelihood),
        methods=["eb", method, f"{method}(f_star=-1)"],
        learning_rates=[0.3],
        seeds=2,
        epochs=12,
        lanes=1,
    )
    ends = {}
    for result in found:
        ends.setdefault(result.spec.method, []).append(result)
    assert {one.outcome for one in ends["eb"]} == {"completed"}
    for one in ends[f"{method}(f_star=-1)"]:
        assert (one.outcome, one.error) == ("completed", None)
        assert one.train_loss < one.initial_loss
    for one in ends[method]:
        assert one.outcome == "failed"
        assert f"{method} cuts its steps" in str(one.error)
        assert f"as in {method}(f_star=-1" in str(one.error)


# --- Initial weights are the seed's, whatever else shares them


class Backbone(nn.Module):
    """A frozen part with buffers, which may be one for all models, and a head of its own."""

    def __init__(self, frozen: nn.Module) -> None:
        super().__init__()
        self.frozen, self.head = frozen, nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.frozen(x))
        return out


def part() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        made = nn.Sequential(nn.Linear(16, 12), nn.BatchNorm1d(12))
    return made.requires_grad_(False)


@pytest.mark.parametrize("rates", [(0.1,), (0.1, 0.2)])
def test_a_part_that_all_models_share_is_each_trials_own(rates: tuple[float, ...]) -> None:
    shared = part()
    asked = [lambda: Backbone(shared), lambda: Backbone(part())]
    losses = [
        [r.train_loss for r in [*swept(task, "eb", rates=rates), *swept(task, "eb", rates=rates)]]
        for task in map(task_with, asked)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


class Sampling(nn.Module):
    """An autoencoder that draws its code in evaluations, too, and returns what its loss is of."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Linear(16, 6), nn.Linear(3, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.read(x).chunk(2, dim=-1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.write(code), mean, log_variance


def elbo(output: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
    made, mean, log_variance = output
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
    return F.mse_loss(made, target) + 0.01 * divergence.mean()


def test_a_model_that_draws_in_evaluations_gives_the_same_numbers_again_and_in_a_stack() -> None:
    def pixels() -> Data:
        x, _ = rows().train
        return Data(train=(x, x))

    task = task_with(Sampling, elbo, pixels)
    first = swept(task, "eb", rates=(0.1,))[0]
    torch.randn(7)
    again = swept(task, "eb", rates=(0.1,))[0]
    stack = swept(task, "eb", rates=(0.1, 0.05, 0.02, 0.01))
    assert first.initial_loss == again.initial_loss
    assert first.train_loss == again.train_loss
    assert stack[0].record["why"].startswith(("a step written for stacks", "a loop is"))
    assert stack[0].initial_loss == pytest.approx(first.initial_loss, rel=1e-6)
    same = next(r for r in stack if r.spec.lr == 0.1)
    assert same.train_loss == pytest.approx(first.train_loss, rel=1e-5)


ONE = mlp()


def unseeded() -> nn.Module:
    model = mlp()
    with torch.no_grad():
        model[0].bias[0] = random.random()
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: ONE, "must make a new model whenever it is called"),
        (unseeded, r"other weights when it is called again with the same seed \(0.bias\)"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "has lazy layers"),
    ],
)
def test_weights_that_are_not_the_seeds_are_refused(model: Any, said: str) -> None:
    (told,) = run_sweep(task_with(model), ["eb"], learning_rates=[0.1], seeds=1, lanes=1).failures
    assert re.match(rf"test_training\.py, line \d+, in \S+: The model.* {said}", told)


def test_weights_of_a_type_that_numpy_does_not_know_are_proved_too() -> None:
    x, y = rows().train
    task = task_with(lambda: mlp().bfloat16(), data=lambda: Data(train=(x.bfloat16(), y)))
    results = swept(task, "eb", rates=(0.1, 0.2))
    assert len({result.record["initial_weights"] for result in results}) == 1


def test_a_loss_that_is_lost_before_the_first_step_is_no_rates_fault() -> None:
    x, y = rows().train
    x[3, 2] = math.nan
    for result in swept(task_with(data=lambda: Data(train=(x, y))), "eb", rates=(0.1, 0.2)):
        assert result.outcome.value == "diverged"
        assert "not finite before the first step" in result.record["why"]
    assert "first step" not in swept(task_with(), "eb")[0].record["why"]
