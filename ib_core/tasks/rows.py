"""Feeding rows: tables and images, cut into batches, every member in its seed's own order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ib_core.datasets import Dataset, Split
from ib_core.tasks.losses import LOSSES, accuracy
from ib_core.tasks.networks import StackedConvNet, StackedMLP, draw_weights, fill_weights
from ib_core.tasks.paper import PaperTask
from ib_core.tasks.randomness import Streams, evenly, hold_out, streams, tensor_hash
from ib_core.tasks.task import (
    CONV_FILTERS,
    EVALUATION_OUTPUTS,
    EVALUATION_ROWS,
    Evaluation,
    Recipe,
)


@dataclass(frozen=True, slots=True)
class Fed:
    """Rows as the network sees them."""

    x: Tensor
    y: Tensor

    def rows(self, chosen: Tensor) -> "Fed":
        """Return some of the rows."""
        there = chosen.to(self.x.device)
        return Fed(self.x[there], self.y[there])


class RowsWorkload:
    """Dense and convolutional tasks on rows; see `Workload`."""

    def __init__(
        self,
        task: PaperTask,
        dataset: Dataset,
        recipe: Recipe,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.task, self.recipe, self.seeds, self.device = task, recipe, list(seeds), device
        self.authors = recipe.profile == "authors"
        self.loss = LOSSES[_loss_name(task, self.authors)]
        assert isinstance(dataset.train, Split)
        assert isinstance(dataset.test, Split)
        self.train = feed(dataset.train, task, authors=self.authors, device=device)
        self.test = feed(dataset.test, task, authors=self.authors, device=device)
        self.validation: Fed | None = None
        if recipe.validation is not None:
            kept, held = hold_out(len(self.train.x), recipe.validation)
            self.train, self.validation = self.train.rows(kept), self.train.rows(held)
        self.widths = task.widths(recipe)
        self._widest = max(*self.widths, *task.feature_maps())
        self.steps_per_epoch = -(-len(self.train.x) // recipe.batch_size)
        self.streams: dict[int, Streams] = {seed: _streams(seed, self.authors) for seed in seeds}
        self.shuffled = not self.authors or task.family == "conv"
        self._hashes = dict.fromkeys(self.streams, "")
        self._order: Tensor | None = None  # [members, rows], None when fed in file order
        self._x = self._y = self.train.x
        self._masks: tuple[Tensor | None, Tensor | None] = (None, None)
        self._drawn: list[Tensor] | None = None  # a GPU's masks of the epoch, [members, rows, ...]

    def model(self) -> nn.Module:
        """Return the stack with every member's initial weights."""
        model = self._build(len(self.seeds))
        one = self._build(1)
        weights = {
            seed: draw_weights(one, stream.weights, authors=self.authors)
            for seed, stream in self.streams.items()
        }
        fill_weights(model, weights, self.seeds)
        return model.to(self.device)

    def begin_epoch(self, *, ahead: bool = True) -> None:
        """Draw the next epoch's order for every seed."""
        rows = len(self.train.x)
        if not self.shuffled:
            in_file_order = torch.arange(rows)
            self._chain(dict.fromkeys(self.streams, in_file_order))
            return
        orders = {s: torch.randperm(rows, generator=t.order) for s, t in self.streams.items()}
        self._chain(orders)
        self._order = torch.stack([orders[seed] for seed in self.seeds]).to(self.device)
        if self.task.family == "conv" and self.device.type != "cpu" and ahead:
            self._draw_ahead(rows)

    def load_batch(self, step: int) -> None:
        """Make step `step` of the epoch the present batch (and draw its dropout masks)."""
        cut = slice(step * self.recipe.batch_size, (step + 1) * self.recipe.batch_size)
        if self._order is None:
            members = len(self.seeds)
            x, y = self.train.x[cut], self.train.y[cut]
            self._x, self._y = (part.expand(members, *part.shape) for part in (x, y))
        else:
            chosen = self._order[:, cut]
            self._x, self._y = (
                part.index_select(0, chosen.flatten()).view(*chosen.shape, *part.shape[1:])
                for part in (self.train.x, self.train.y)
            )
        if self.task.family != "conv":
            return
        if self._drawn is None:
            self.draw_masks()
        else:
            self._use([part[:, cut] for part in self._drawn])

    def draw_masks(self) -> None:
        """Draw the present batch's dropout masks; members with one seed share them."""
        self._use([kept.to(self.device) for kept in self._draw(self._x.shape[1])])

    def _draw(self, rows: int) -> list[Tensor]:
        """Return which units a batch of so many rows keeps, [members, rows, ...] each."""
        shapes: list[tuple[int, ...]] = [(rows, self.widths[1])]
        if self.authors:  # a Dropout2d on the second convolution that the text does not mention
            shapes.insert(0, (rows, CONV_FILTERS[1], 1, 1))
        found = []
        for shape in shapes:
            drawn = {s: torch.rand(shape, generator=t.dropout) for s, t in self.streams.items()}
            found.append(torch.stack([drawn[seed] for seed in self.seeds]) < 0.5)
        return found

    def _draw_ahead(self, rows: int) -> None:
        """Draw the epoch's masks as step by step, so that no step waits for the processor."""
        size = self.recipe.batch_size
        batches = [self._draw(min(size, rows - start)) for start in range(0, rows, size)]
        each = zip(*batches, strict=True)
        self._drawn = [torch.cat(parts, dim=1).to(self.device) for parts in each]

    def _use(self, kept: Sequence[Tensor]) -> None:
        masks = [part.to(torch.float32) * 2.0 for part in kept]
        self._masks = (masks[0] if self.authors else None, masks[-1])

    @property
    def batch(self) -> tuple[Tensor | None, ...]:
        """What a step reads: inputs, targets and masks; may be put elsewhere in memory."""
        return (self._x, self._y, *self._masks)

    @batch.setter
    def batch(self, parts: tuple[Tensor, Tensor, Tensor | None, Tensor | None]) -> None:
        self._x, self._y, *masks = parts
        self._masks = (masks[0], masks[1])

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present batch, [members], with its graph."""
        masks = self._masks if self.task.family == "conv" else ()
        return self.loss.mean(model(self._x, *masks), self._y)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return whole-set losses in evaluation mode (no dropout)."""
        train, train_accuracy = self._measure(model, self.train)
        test, test_accuracy = self._measure(model, self.test)
        held = (None, None) if self.validation is None else self._measure(model, self.validation)
        return Evaluation(train, test, train_accuracy, test_accuracy, *held)

    def sampled_losses(self, model: nn.Module, rows: int) -> Tensor:
        """Return every member's mean loss over some training rows; see `Workload`."""
        sample = self.train.rows(evenly(len(self.train.x), rows))
        x, y = (part.expand(len(self.seeds), *part.shape) for part in (sample.x, sample.y))
        return self.loss.twice_differentiable_mean(model(x), y)

    @torch.no_grad()
    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""
        zero = self._build(1).to(self.device)
        for parameter in zero.parameters():
            parameter.zero_()
        return self._measure(zero, self.train)[0].item()

    def order_hash(self, member: int) -> str:
        """Return the hash of every batch order the member has seen so far."""
        return self._hashes[self.seeds[member]]

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        self.seeds = [self.seeds[i] for i in kept.tolist()]
        self.streams = {seed: self.streams[seed] for seed in dict.fromkeys(self.seeds)}
        if self._order is not None:
            self._order = self._order[kept]
        self._x, self._y = self._x[kept], self._y[kept]
        self._masks = tuple(None if m is None else m[kept] for m in self._masks)  # type: ignore[assignment]
        if self._drawn is not None:
            self._drawn = [part[kept] for part in self._drawn]

    def _build(self, members: int) -> nn.Module:
        hidden, output = self.recipe.activation, self.task.output
        if self.task.family == "conv":
            sizes = self.task.filter_sizes
            implicit = self.recipe.implicit_convolutions
            return StackedConvNet(
                CONV_FILTERS, sizes, self.widths, hidden, output, members, implicit=implicit
            )
        return StackedMLP(self.widths, hidden, output, members)

    def _chain(self, orders: dict[int, Tensor]) -> None:
        for seed, order in orders.items():
            before = torch.tensor(list(self._hashes[seed].encode()))
            self._hashes[seed] = tensor_hash(before, order)

    def _measure(self, model: nn.Module, fed: Fed) -> tuple[Tensor, Tensor | None]:
        """Return mean loss and accuracy over all rows.

        Text: the exact mean. Authors: the unweighted mean of batch means, where a short last
        batch counts as much as a full one.
        """
        losses, hits, sizes = [], [], []
        for x, y in self._chunks(fed, next(model.parameters()).shape[0]):
            outputs = model(x)
            losses.append(self.loss.per_row(outputs, y))
            if self.loss.classes:
                hits.append(accuracy(outputs, y) * y.shape[1])
            sizes.append(y.shape[1])
        per_row = torch.cat(losses, dim=1)
        parts = per_row.split(self.recipe.batch_size, dim=1) if self.authors else (per_row,)
        loss = torch.stack([part.mean(-1) for part in parts]).mean(0)
        return loss, torch.stack(hits).sum(0) / sum(sizes) if hits else None

    def _chunks(self, fed: Fed, members: int) -> Iterator[tuple[Tensor, Tensor]]:
        rows = max(1, min(EVALUATION_ROWS, EVALUATION_OUTPUTS // self._widest) // members)
        for x, y in zip(fed.x.split(rows), fed.y.split(rows), strict=True):
            yield x.expand(members, *x.shape), y.expand(members, *y.shape)


def feed(split: Split, task: PaperTask, *, authors: bool, device: torch.device) -> Fed:
    """Return rows as the network sees them; an autoencoder's targets are its inputs."""
    x, y = split.x, split.y
    if x.dtype == torch.uint8:
        x = x.float()
        if task.family == "conv":
            x = x / 255 if not authors else (x / 255 - 0.1307) / 0.3081
        elif not authors:
            x = x / 255
    if task.family == "conv":
        side = math.isqrt(x[0].numel())
        x = x.view(-1, 1, side, side)
    else:
        x = x.flatten(1)
    y = x if task.targets == "input" else y
    return Fed(x.to(device), y.to(device))


def _loss_name(task: PaperTask, authors: bool) -> str:
    scaled = authors and task.dataset == "mnist" and task.loss == "squared_error"
    return "thousandth_squared_error" if scaled else task.loss


def _streams(seed: int, authors: bool) -> Streams:
    if not authors:
        return streams(seed)
    # The authors seeded one generator once; weights, order and dropout draw from it in turn.
    one = torch.Generator().manual_seed(seed)
    return Streams(one, one, one)
