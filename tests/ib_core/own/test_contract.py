"""A user's task keeps its contract, or a sentence says what is wrong with it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core import Data, Method, Task, run_sweep
from ib_core.errors import IBError
from ib_core.tasks.randomness import SeededChance
from ib_core.tasks.stacked_model import READ_TWICE
from tests.ib_core.own.models import MODELS, Now, mlp, rows, swept, task_with

CPU = torch.device("cpu")


# --- A member of a stack is the trial alone, or there is no stack


#: Or, where that begins late, somebody measured before and found a loop faster.
SOMETIMES = "gradient in some steps only|as fast as a stack"


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
        lambda output, y: -output.log_softmax(1).gather(1, y[:, None]).sum(),
    ],
)
def test_a_loss_that_is_a_sum_over_rows_is_refused(loss: Any) -> None:
    with pytest.raises((IBError, AssertionError), match="must be a mean over rows"):
        swept(task_with(loss=loss), "eb")


def contrasted(output: Tensor, y: Tensor) -> Tensor:
    """Compares rows with each other, so that it is of all of them or of none."""
    return F.cross_entropy(output @ output.mT, torch.arange(len(y)))


def squeezed(output: Tensor, y: Tensor) -> Tensor:
    """Breaks on one row, as many people's do."""
    assert output[:, :1].squeeze().dim() == 1
    return F.binary_cross_entropy_with_logits(output[:, :1].squeeze(), (y > 0).float())


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.5])),
        nn.CrossEntropyLoss(ignore_index=0),
        rooted,
        contrasted,
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


# --- Chance: what torch's random functions are answered


def answered(draw: Callable[[], Tensor]) -> Tensor:
    with torch.random.fork_rng(), SeededChance([1], 1):
        return draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randn(size=(3, 2)),
        lambda: torch.rand(3, 2),
        lambda: torch.rand([3, 2], dtype=torch.float64),
        lambda: torch.rand(torch.Size((3, 2)), generator=torch.Generator().manual_seed(1)),
        lambda: torch.randn_like(input=torch.zeros(3, 2)),
        lambda: torch.rand_like(torch.zeros(3, 2, dtype=torch.int64), dtype=torch.float16),
        lambda: torch.bernoulli(input=torch.full((3, 2), 0.5)),
        lambda: torch.bernoulli(torch.zeros(3, 2), 0.5),
        lambda: torch.dropout(torch.ones(3, 2), p=0.5, train=True),
        lambda: F.dropout(input=torch.ones(3, 2), p=0.5),
        lambda: F.dropout(torch.ones(3, 2), 0.5, False, True),
    ],
)
def test_a_draw_has_the_shape_and_the_type_that_torchs_has(draw: Callable[[], Tensor]) -> None:
    ours, torchs = answered(draw), draw()
    assert (ours.shape, ours.dtype) == (torchs.shape, torchs.dtype)
    assert torch.equal(ours, answered(draw))


def test_a_probability_is_honoured() -> None:
    assert answered(lambda: torch.bernoulli(torch.zeros(50), p=1.0)).min() == 1
    assert answered(lambda: torch.bernoulli(torch.ones(50), 0.0)).max() == 0
    assert 0.4 < answered(lambda: torch.bernoulli(torch.ones(4000), 0.5)).mean() < 0.6
    with pytest.raises(RuntimeError, match="p"):
        answered(lambda: torch.bernoulli(torch.ones(5), 1.5))


@pytest.mark.parametrize(
    ("drop", "shape", "front"),
    [
        (F.dropout1d, (4, 6, 5), 2),
        (F.dropout1d, (6, 5), 1),
        (F.dropout2d, (4, 6, 5, 5), 2),
        (F.dropout2d, (4, 6, 5), 2),
        (F.dropout3d, (4, 6, 2, 2, 2), 2),
        (F.dropout3d, (6, 2, 2, 2), 1),
    ],
)
@pytest.mark.filterwarnings("ignore:dropout2d")
def test_whole_channels_are_dropped_as_torch_drops_them(
    drop: Callable[..., Tensor], shape: tuple[int, ...], front: int
) -> None:
    x = torch.ones(shape)
    torch.manual_seed(3)
    for made in (drop(x, 0.5), answered(lambda: drop(x, 0.5))):
        channels = made.flatten(front).flatten(0, front - 1)
        assert torch.equal(channels, channels[:, :1].expand_as(channels))
        assert set(channels.unique().tolist()) == {0.0, 2.0}
        if front == 2:  # not whole rows
            assert len(made.flatten(2)[..., 0].unique(dim=1).T) > 1


class Generated(nn.Module):
    """Draws from a generator of its own, which torch answers, alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.source = mlp(), torch.Generator().manual_seed(4)

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.rand(16, generator=self.source) if self.training else torch.zeros(16)
        out: Tensor = self.layers(x + noise)
        return out


def test_what_is_not_known_of_chance_is_torchs_and_trains_one_by_one() -> None:
    for result in swept(task_with(Generated), "eb", rates=(0.1, 0.2)):
        assert result.record["way"] == "one by one"
        assert "torch cannot stack it" in result.record["why"]


# --- What a model is asked before a sweep


def test_a_model_that_wants_all_memory_cannot_have_it_while_its_size_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ib_core.tasks.footprint._free_memory", lambda: 2**28)
    told = tmp_path / "told"

    def greedy() -> nn.Module:
        try:
            torch.zeros(2**28)  # four times that
        except RuntimeError:
            told.write_text("refused")
        return mlp()

    task = task_with(greedy)
    task.code = "a user's"
    task.footprint({})
    assert told.read_text() == "refused"


class Pairs(nn.Module):
    """Looks at a layer's outputs as they lie in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs, self.output = nn.Linear(16, 26), nn.Linear(13, 3)

    def forward(self, x: Tensor) -> Tensor:
        each = self.pairs(x).view(-1, 13).relu()
        out: Tensor = self.output(each).view(-1, 2, 3).mean(1)
        return out


def test_a_model_that_looks_at_outputs_as_they_lie_is_stacked() -> None:
    results = swept(task_with(Pairs), "eb", rates=(0.1, 0.2), batch_size=24)
    assert {result.record["way"] for result in results} == {"stacked"}, results[0].record["why"]


def a_sum(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="sum")


def each_row(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="none")


def breaks(params: Any, lr: float) -> Any:
    raise ValueError("no such thing")


def five(params: Any, lr: float) -> Any:
    return 5


def a_number(output: Tensor, target: Tensor) -> Tensor:
    return torch.tensor(F.cross_entropy(output, target).item())


def a_wave(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target).to(torch.complex64)


@pytest.mark.parametrize("fault", [a_sum, each_row, a_number, a_wave, breaks, five])
def test_a_fault_of_a_loss_or_a_method_is_told_where_it_is(fault: Any) -> None:
    a_loss = fault not in (breaks, five)
    task = task_with(loss=fault) if a_loss else task_with()
    method = "eb" if a_loss else Method(fault)
    (said,) = run_sweep(task, [method], learning_rates=[0.1], seeds=1, lanes=1).failures
    line = fault.__code__.co_firstlineno
    assert said.startswith(f"test_contract.py, line {line}, in {fault.__name__}: ")
