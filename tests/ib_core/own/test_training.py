"""What a user's task trains is what was asked for, whatever its model, loss and data do."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core import Data, ImplicitLinear, ImplicitSGD, Method, Task, run_sweep
from ib_core.errors import IBError
from ib_core.methods import Member, build_optimizer
from ib_core.sweep.runner import Results
from ib_core.tasks.model_workload import name_of_loss
from ib_core.tasks.stacked_model import READ_TWICE
from tests.ib_core.own.models import MODELS, mlp, rows

CPU = torch.device("cpu")


def task_with(
    model: Callable[[], nn.Module] = mlp,
    loss: Any = F.cross_entropy,
    data: Callable[[], Data] = rows,
    **more: Any,
) -> Task:
    return Task(model, data, loss=loss, batch_size=12, **more)


def swept(task: Task, method: Any, *, rates: tuple[float, ...] = (0.1,), **more: Any) -> Results:
    """Return the results of one seed, or raise what its trials failed by."""
    results = run_sweep(task, [method], learning_rates=rates, seeds=1, lanes=1, **more)
    assert not results.failures, results.failures
    return results


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
    model = nn.Sequential(ImplicitLinear(16, 6, "relu"), ImplicitLinear(6, 3, "linear"))
    swept(task_with(lambda: nn.Sequential(model, nn.Identity(), nn.Flatten())), "ib_plus")


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


class Now(nn.Module):
    """Uses its middle layer in some passes only, counted from the first."""

    def __init__(self, used: tuple[int, ...]) -> None:
        super().__init__()
        self.first, self.middle, self.output = nn.Linear(16, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.used, self.passes = used, 0

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        if self.training:
            self.passes += 1
        if self.passes in self.used or not self.training:
            hidden = torch.tanh(self.middle(hidden))
        out: Tensor = self.output(hidden)
        return out


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


# --- A member of a stack is the trial alone, or there is no stack


#: Or, where that begins late, somebody measured before and found a loop faster.
SOMETIMES = "gradient in some steps only|times a stack"


class Remembering(nn.Module):
    """Keeps a running mean of its rows in a buffer that is made anew in every pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp()
        self.register_buffer("mean", torch.zeros(16))
        self.mean: Tensor

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        out: Tensor = self.layers(x - self.mean)
        return out


@pytest.mark.parametrize(
    ("model", "method", "said"),
    [
        (Remembering, Method(torch.optim.SGD), "other buffers|another loss"),
        (Remembering, "eb", "other buffers|another loss"),
        (lambda: Now((2, 3, 4)), Method(torch.optim.SGD), SOMETIMES),
        (lambda: Now((1, 3, 4)), Method(torch.optim.Adafactor), SOMETIMES),
        (lambda: Now((1, 2, 3, 4, 6, 7, 8)), Method(torch.optim.SGD), SOMETIMES),
        (lambda: Now((6, 7, 8)), Method(torch.optim.Adafactor), SOMETIMES),
    ],
)
def test_what_a_stack_would_lose_trains_one_by_one(
    model: Callable[[], nn.Module], method: Any, said: str
) -> None:
    together = swept(task_with(model), method, rates=(0.1, 0.2, 0.3), epochs=3)
    for result in together:
        assert result.record["way"] == "one by one"
        assert re.search(said, result.record["why"])
        alone = swept(task_with(model), method, rates=(result.spec.lr,), epochs=3)[0]
        assert result.train_loss == alone.train_loss


def test_buffers_that_are_changed_in_place_are_stacked() -> None:
    task = Task(MODELS["batch norm"], rows, loss=F.cross_entropy, batch_size=12)
    for result in swept(task, "adam", rates=(0.001, 0.002), epochs=1):
        assert result.record["way"] == "stacked"


# --- A loss is a mean, and a metric a share


def rooted(output: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(output, F.one_hot(y, 3).float()).sqrt()


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.5])),
        nn.CrossEntropyLoss(ignore_index=0),
        rooted,
    ],
)
def test_a_loss_that_is_no_mean_over_rows_is_refused(loss: Any) -> None:
    with pytest.raises((IBError, AssertionError), match="must be the mean over rows"):
        swept(task_with(loss=loss), "eb")


def squeezed(output: Tensor, y: Tensor) -> Tensor:
    """Breaks on one row, as many people's do."""
    assert output[:, :1].squeeze().dim() == 1
    return F.binary_cross_entropy_with_logits(output[:, :1].squeeze(), (y > 0).float())


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(label_smoothing=0.1),
        lambda output, y: F.cross_entropy(output, y, torch.ones(3)) + 3.0,
        lambda output, y: (F.cross_entropy(output, y, reduction="none") * (1 + y)).mean(),
        lambda output, y: F.cross_entropy(output + 0.1 * torch.randn_like(output), y),
        squeezed,
    ],
)
def test_a_mean_in_other_words_is_none_the_worse(loss: Any) -> None:
    swept(task_with(loss=loss), "eb")


@pytest.mark.parametrize(
    "metric",
    [
        lambda output, y: 37.0,
        lambda output, y: (output.argmax(1) == y).float(),
        lambda output, y: -F.cross_entropy(output, y),
    ],
)
def test_a_metric_that_is_no_share_is_refused(metric: Any) -> None:
    with pytest.raises((IBError, AssertionError), match="one number from 0 to 1"):
        swept(task_with(metric=metric), "eb")


def test_evaluations_do_not_depend_on_the_number_of_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are cut in one way whatever K, so that even what is no mean is the same number."""
    monkeypatch.setattr("ib_core.tasks.model_workload.EVALUATION_ROWS", 20)
    task = task_with(metric=lambda output, y: output.std().clamp(0, 1))
    found = []
    for count in (1, 2, 7, 30):
        way = "plain" if count == 1 else "stacked"
        workload = task.workload(seeds=[1] * count, batch_size=12, values={}, device=CPU, way=way)
        measured = workload.evaluate(workload.model())
        assert measured.train_accuracy is not None
        found.append((measured.train_loss[0].item(), measured.train_accuracy[0].item()))
    for one in found[1:]:
        assert one == pytest.approx(found[0], rel=1e-6)


# --- A data set is read once


class Counted:
    """A map-style data set that counts its readings; one with `noise` never gives a row twice."""

    def __init__(self, noise: float = 0.0) -> None:
        (self.x, self.y), self.noise, self.readings = rows().train, noise, 0

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        if row >= len(self):
            raise IndexError(row)
        self.readings += 1
        return self.x[row] + self.noise * torch.rand(16), self.y[row]


def test_a_data_set_is_read_once_and_its_hash_is_that_of_the_rows_trained_on() -> None:
    train, test = Counted(), Counted()
    task = task_with(data=lambda: Data(train=train, test=test))
    for seeds in ([1], [1, 2], [3]):
        task.workload(seeds=seeds, batch_size=12, values={}, device=CPU)
    task.footprint({})
    assert task.data_hash() == Data(train=rows().train, test=rows().train).sha256()
    assert [train.readings, test.readings] == [48 + READ_TWICE] * 2


@pytest.mark.parametrize("in_memory", [2**30, 1])
def test_a_data_set_that_differs_when_read_again_is_refused(
    monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("ib_core.tasks.stacked_model.IN_MEMORY_BYTES", in_memory)
    with pytest.raises(IBError, match="gives other rows when it is read again"):
        task_with(data=lambda: Data(train=Counted(noise=0.1))).data_hash()
    task_with(data=lambda: Data(train=Counted())).data_hash()
