"""Models and tasks that the tests of stacking share."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core import Data, ImplicitLinear, ImplicitRNN, Task


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
