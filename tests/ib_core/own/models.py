"""Models and tasks that the tests of stacking share."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core import Data, ImplicitLinear, ImplicitRNN, Task, run_sweep
from ib_core.sweep.runner import Results


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read, self.norm, self.output = nn.Linear(4, 24), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.read(x.view(-1, 4, 4)).chunk(3, dim=-1)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.output(self.norm(seen).mean(1))
        return out


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.states, self.output = kind(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(self.states(x.view(-1, 4, 4))[0][:, -1])
        return out


class Solved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.states, self.output = ImplicitRNN(4, 6), ImplicitLinear(6, 3, "linear")

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(self.states(x.view(-1, 4, 4))[:, -1])
        return out


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(16, 16), nn.Linear(16, 16)
        self.again.weight = self.first.weight
        self.scale, self.output = nn.Parameter(torch.tensor(1.5)), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(self.scale * torch.tanh(self.again(torch.tanh(self.first(x)))))
        return out


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 3))


def normed() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 12, bias=False), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)
    )


def dropped() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 12), nn.Tanh(), nn.Dropout(0.3), nn.Linear(12, 3))


def convolved() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Flatten(),
        ImplicitLinear(64, 3, "linear"),
    )


MODELS = {
    "mlp": mlp,
    "batch norm": normed,
    "dropout": dropped,
    "convolution": convolved,
    "attention": Attention,
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "rnn": lambda: Recurrent(nn.RNN),
    "tied": Tied,
    "implicit rnn": Solved,
}


def rows() -> Data:
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(60, 16, generator=draw)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return Data(train=(x[:48], y[:48]), test=(x[48:], y[48:]))


def task_of(name: str) -> Task:
    return Task(MODELS[name], rows, loss=F.cross_entropy, batch_size=12, name=f"test:{name}")


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
