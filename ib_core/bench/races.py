"""Races: several ways of doing one thing, timed in turns, one of them what people do today.

Machines are noisy and shared. Contestants take turns within every round, so that a slow minute
slows all of them, and a ratio is the median over rounds of the ratio within a round.
"""

import gc
import itertools
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.datasets import Pieces, Split, load_dataset
from ib_core.sweep import TrialSpec
from ib_core.tasks import CONV_FILTERS, PaperTask, feed, paper_task
from ib_core.updates import ACTIVATIONS


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times longer one contestant takes than another.

    Attributes:
        value: Median over rounds.
        low: Lower quartile: half of the rounds lie between the two.
        high: Upper quartile.
        rounds: How many.
    """

    value: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, slots=True)
class Race:
    """Seconds of every contestant in every round."""

    seconds: Mapping[str, tuple[float, ...]]

    def ratio(self, slower: str, faster: str) -> Ratio:
        """Return how many times longer `slower` takes than `faster`."""
        rounds = [a / b for a, b in zip(self.seconds[slower], self.seconds[faster], strict=True)]
        low, middle, high = quantiles(rounds, n=4, method="inclusive") if rounds[1:] else rounds * 3
        return Ratio(middle, low, high, len(rounds))

    def median(self, name: str) -> float:
        """Return a contestant's median seconds."""
        return median(self.seconds[name])


#: Fewer rounds than these have no median worth the name.
FEWEST_ROUNDS = 3


def race(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 5,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> Race:
    """Time every contestant once a round, after one unmeasured warm-up each.

    Args:
        contestants: What to time.
        rounds: At most so many.
        seconds: No further round is begun after so long, but three are always run.
        clock: What is measured: time by default; `time.thread_time` is the work of one thread,
            which neighbours on a busy machine change less.
    """
    for work in contestants.values():
        work()
    gc.collect()
    gc.freeze()  # what stays is not looked at again before every turn
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    order, begin = list(contestants), time.perf_counter()
    try:
        for done in range(rounds):
            if done >= FEWEST_ROUNDS and time.perf_counter() - begin > seconds:
                break
            for name in order:
                gc.collect()
                start = clock()
                contestants[name]()
                taken[name].append(clock() - start)
            order.reverse()  # nobody always runs on a cache that another one has filled
    finally:
        gc.unfreeze()
    return Race({name: tuple(each) for name, each in taken.items()})


@contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Let torch work with so many threads: one, as processes have that train stacks."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def surroundings() -> dict[str, Any]:
    """Return what a ratio was measured on: cores, threads and versions."""
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


# --- What people do today: one model, one loop, stock layers and optimizer


class Pointwise(nn.Module):
    """A function as a module, for what torch has no module for."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Return the function's value."""
        return self.function(x)


STOCK: dict[str, Callable[[], nn.Module]] = {
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "hardtanh": nn.Hardtanh,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "elu": nn.ELU,
}


def stock_activation(name: str) -> nn.Module:
    """Return torch's own module of an activation, or its plain formula."""
    return STOCK[name]() if name in STOCK else Pointwise(ACTIVATIONS[name].value)


def dense_network(widths: Sequence[int], hidden: str, output: str) -> nn.Sequential:
    """Return stock linear layers with their activations."""
    layers: list[nn.Module] = []
    for index, (n, m) in enumerate(itertools.pairwise(widths)):
        name = output if index == len(widths) - 2 else hidden
        layers += [nn.Linear(n, m), stock_activation(name)]
    return nn.Sequential(*layers)


def conv_network(task: PaperTask, trial: TrialSpec) -> nn.Sequential:
    """Return the paper's classifier from stock parts."""
    widths = task.widths(task.recipe())
    blocks: list[nn.Module] = []
    for n, m, size in zip((1, *CONV_FILTERS), CONV_FILTERS, task.filter_sizes, strict=False):
        blocks += [nn.Conv2d(n, m, size), nn.MaxPool2d(2), nn.ReLU()]
    dense = [nn.Linear(widths[0], widths[1]), stock_activation(trial.activation), nn.Dropout(0.5)]
    output = [nn.Linear(widths[1], widths[2]), stock_activation(task.output)]
    return nn.Sequential(*blocks, nn.Flatten(), *dense, *output)


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


def note_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Return torch's log loss of note probabilities."""
    return F.binary_cross_entropy(outputs.clamp(0, 1), target)


Pair = tuple[Tensor, Tensor]


class PlainTraining:
    """One EB trial as anybody would train it.

    Args:
        trial: Its task, rate, seed and length.
    """

    def __init__(self, trial: TrialSpec) -> None:
        self.trial, task = trial, paper_task(trial.task)
        dataset = load_dataset(task.dataset)
        torch.manual_seed(trial.seed)
        widths = task.widths(task.recipe())
        self.loss_of: Callable[[Tensor, Tensor], Tensor]
        self.model: nn.Module
        if task.family == "music":
            self.loss_of, self.model = note_loss, PlainRNN(*widths[:2])
        elif task.family == "conv":
            self.loss_of, self.model = F.cross_entropy, conv_network(task, trial)
        else:
            self.loss_of = F.mse_loss if task.targets == "input" else F.cross_entropy
            self.model = dense_network(widths, trial.activation, task.output)
        self.train, self.test = (_pairs(part, task) for part in (dataset.train, dataset.test))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=trial.lr)

    def batches(self) -> Iterator[Pair]:
        """Yield one epoch, reshuffled: pieces one by one, or batches of rows."""
        if len(self.train) > 1:
            yield from (self.train[i] for i in torch.randperm(len(self.train)).tolist())
            return
        ((x, y),) = self.train
        for rows in torch.randperm(len(x)).split(self.trial.batch_size):
            yield x[rows], y[rows]

    def step(self, x: Tensor, y: Tensor) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        self.loss_of(self.model(x), y).backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> float:
        """Return the training loss, having taken the test loss too, as the engine does."""
        self.model.eval()
        train, test = (
            sum(self.loss_of(self.model(x), y).item() for x, y in part) / len(part)
            for part in (self.train, self.test)
        )
        del test
        self.model.train()
        return train


def _pairs(part: Split | Pieces, task: PaperTask) -> list[Pair]:
    """Return inputs and targets: one pair a piece of music, or one of all rows."""
    if isinstance(part, Pieces):
        return [(piece[:-1].float(), piece[1:].float()) for piece in part]
    fed = feed(part, task, authors=False, device=torch.device("cpu"))
    return [(fed.x, fed.y)]


def train_one(trial: TrialSpec) -> float:
    """Train one EB trial as anybody would and return its loss on the training set."""
    training, loss = PlainTraining(trial), math.nan
    for _ in range(trial.epochs):
        for x, y in training.batches():
            training.step(x, y)
        loss = training.evaluate()
    return loss
