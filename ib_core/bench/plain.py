"""What people do today: one model, one loop, stock layers and optimizer."""

import itertools
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.datasets import Dataset, Pieces, Split, load_dataset
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import Task, find_task


class Arctan(nn.Module):
    """The activation torch has no module for."""

    def forward(self, x: Tensor) -> Tensor:
        """Return arctan(x)."""
        return torch.atan(x)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "arctan": Arctan,
    "relu": nn.ReLU,
    "linear": nn.Identity,
    "tanh": nn.Tanh,
}


def dense_network(widths: Sequence[int], hidden: str, output: str) -> nn.Sequential:
    """Return stock linear layers with their activations."""
    layers: list[nn.Module] = []
    for index, (n, m) in enumerate(itertools.pairwise(widths)):
        name = output if index == len(widths) - 2 else hidden
        layers += [nn.Linear(n, m), ACTIVATIONS[name]()]
    return nn.Sequential(*layers)


class PlainRNN(nn.Module):
    """The text profile's music network from stock parts, unrolled in Python."""

    def __init__(self, notes: int, hidden: int) -> None:
        super().__init__()
        self.input = nn.Linear(notes, hidden)
        self.recurrent = nn.Linear(hidden, hidden, bias=False)
        self.output = nn.Linear(hidden, notes)

    def forward(self, x: Tensor) -> Tensor:
        """Return note probabilities for every frame, [time, notes]."""
        inputs, h, states = self.input(x), torch.zeros(self.recurrent.in_features), []
        for step in inputs:
            h = torch.atan(step + self.recurrent(h))
            states.append(h)
        return (torch.atan(self.output(torch.stack(states))) + math.pi / 2) / math.pi


def train_one(trial: TrialSpec) -> float:
    """Train one EB trial as anybody would and return its loss on the training set."""
    task = find_task(trial.task)
    dataset = load_dataset(task.dataset)
    torch.manual_seed(trial.seed)
    if task.family == "music":
        return _train_music(trial, task, dataset)
    assert isinstance(dataset.train, Split)
    x, y = dataset.train.x, dataset.train.y
    if task.targets == "input":
        y = x
    model = dense_network(task.widths(task.recipe()), trial.activation, task.output)
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.lr)
    loss_of = F.mse_loss if task.targets == "input" else F.cross_entropy
    for _ in range(trial.epochs):
        for rows in torch.randperm(len(x)).split(trial.batch_size):
            optimizer.zero_grad()
            loss_of(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():  # the engine takes losses after every epoch, so does this loop
            train = loss_of(model(x), y).item()
            assert isinstance(dataset.test, Split)
            target = dataset.test.x if task.targets == "input" else dataset.test.y
            loss_of(model(dataset.test.x), target).item()
    return train


def _train_music(trial: TrialSpec, task: Task, dataset: Dataset) -> float:
    assert isinstance(dataset.train, Pieces)
    assert isinstance(dataset.test, Pieces)
    train, test = ([p.float() for p in split] for split in (dataset.train, dataset.test))
    model = PlainRNN(*task.widths(task.recipe())[:2])
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.lr)
    total = math.nan
    for _ in range(trial.epochs):
        for index in torch.randperm(len(train)).tolist():
            piece = train[index]
            optimizer.zero_grad()
            F.binary_cross_entropy(model(piece[:-1]).clamp(0, 1), piece[1:]).backward()
            optimizer.step()
        with torch.no_grad():
            losses = [
                F.binary_cross_entropy(model(p[:-1]).clamp(0, 1), p[1:]).item()
                for p in (*train, *test)
            ]
            total = sum(losses[: len(train)]) / len(train)
    return total
