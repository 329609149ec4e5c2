"""The paper's tasks fed to a stack: rows of tables and images, and pieces of music.

Rows are cut into batches, every member in its seed's own order. Music goes piece by piece: the
paper shuffles nothing there and its authors did not either. It is also what lets seeds share a
stack: pieces differ in length, and padding them to the longest would waste what stacking saves.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from ib_core.datasets import Dataset, Pieces, Split
from ib_core.tasks.losses import LOSSES, accuracy
from ib_core.tasks.networks import (
    Fed,
    StackedConvNet,
    StackedMLP,
    StackedRNN,
    draw_weights,
    feed,
    fill_weights,
)
from ib_core.tasks.paper import PaperTask
from ib_core.tasks.randomness import Streams, evenly, hold_out, streams, streams_of, tensor_hash
from ib_core.tasks.task import (
    CONV_FILTERS,
    EVALUATION_OUTPUTS,
    EVALUATION_ROWS,
    EVALUATION_STATES,
    Evaluation,
    Recipe,
)


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
        self.streams: dict[int, Streams] = {seed: streams_of(seed, self.authors) for seed in seeds}
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


def _loss_name(task: PaperTask, authors: bool) -> str:
    scaled = authors and task.dataset == "mnist" and task.loss == "squared_error"
    return "thousandth_squared_error" if scaled else task.loss


# --- Music: one piece a step, in file order, and every member of a stack the same piece


class PiecesWorkload:
    """The paper's music tasks; see `Workload`."""

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
        self.loss = LOSSES[task.loss]
        assert isinstance(dataset.train, Pieces)
        assert isinstance(dataset.test, Pieces)
        self.train = [piece.to(device, torch.float32) for piece in dataset.train]
        self.test = [piece.to(device, torch.float32) for piece in dataset.test]
        self.validation: list[Tensor] = []
        if recipe.validation is not None:
            kept, held = hold_out(len(self.train), recipe.validation)
            self.validation = [self.train[piece] for piece in held.tolist()]
            self.train = [self.train[piece] for piece in kept.tolist()]
        self.notes, self.hidden = task.widths(recipe)[:2]
        self.steps_per_epoch = len(self.train)
        self._hash = ""
        self._piece = self.train[0]
        self._counts: dict[int, Tensor] = {}

    def model(self) -> nn.Module:
        """Return the stack with every member's initial weights."""
        one = self._build(1)
        weights = {}
        for seed in dict.fromkeys(self.seeds):
            drawing = torch.Generator().manual_seed(seed) if self.authors else streams(seed).weights
            weights[seed] = draw_weights(one, drawing, authors=self.authors)
        model = self._build(len(self.seeds))
        fill_weights(model, weights, self.seeds)
        return model.to(self.device)

    def begin_epoch(self, *, ahead: bool = True) -> None:
        """Note another pass in file order."""
        del ahead  # nothing is drawn
        before = torch.tensor(list(self._hash.encode()))
        self._hash = tensor_hash(before, torch.arange(len(self.train)))

    def load_batch(self, step: int) -> None:
        """Make piece `step` of the epoch the present one."""
        self._piece = self.train[step]

    def draw_masks(self) -> None:
        """Do nothing: there is no dropout."""

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present piece, [members], with its graph."""
        x, y = self._piece[:-1], self._piece[1:]
        outputs = model(x.expand(len(self.seeds), 1, *x.shape)).squeeze(1)
        return self.loss.per_row(outputs, y) @ self._piece_weights(len(y))

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return the mean over pieces of each piece's loss."""
        assert isinstance(model, StackedRNN)
        return Evaluation(
            self._measure(model, self.train),
            self._measure(model, self.test),
            validation_loss=self._measure(model, self.validation) if self.validation else None,
        )

    def sampled_losses(self, model: nn.Module, rows: int) -> Tensor:
        """Return every member's mean loss over as many whole pieces as hold so many frames."""
        frames = sum(map(len, self.train))
        chosen = evenly(len(self.train), max(1, rows * len(self.train) // frames))
        losses = []
        for piece in (self.train[place] for place in chosen.tolist()):
            x, y = piece[:-1], piece[1:]
            outputs = model(x.expand(len(self.seeds), 1, *x.shape)).squeeze(1)
            weights = self._weights(torch.tensor([len(y)]), 0, len(y))[0]
            losses.append((self.loss.plain or self.loss.per_row)(outputs, y) @ weights)
        return torch.stack(losses).mean(0)

    @torch.no_grad()
    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""
        zero = self._build(1).to(self.device)
        for parameter in zero.parameters():
            parameter.zero_()
        return self._measure(zero, self.train).item()

    def order_hash(self, member: int) -> str:
        """Return the hash of every order of pieces seen so far."""
        del member  # one order for all
        return self._hash

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        self.seeds = [self.seeds[i] for i in kept.tolist()]

    def _build(self, members: int) -> StackedRNN:
        return StackedRNN(
            self.notes,
            self.hidden,
            self.recipe.activation,
            self.task.output,
            members,
            authors=self.authors,
        )

    def _piece_weights(self, steps: int) -> Tensor:
        """Return what the frames of a piece count, kept: made on the processor, used elsewhere."""
        if steps not in self._counts:
            self._counts[steps] = self._weights(torch.tensor([steps]), 0, steps)[0]
        return self._counts[steps]

    def _weights(self, steps: Tensor, start: int, stop: int) -> Tensor:
        """Return what frames start .. stop - 1 count in a piece's loss, [pieces, frames].

        Text: the mean over T. Authors: `loss = (loss + l_t) / T` inside their loop gives frame t
        the weight T^-(T-t+1), in effect the last frame's loss divided by T.

        Args:
            steps: The T of each piece, [pieces].
            start: The first frame, from 0.
            stop: The frame after the last; what lies behind a piece's end counts nothing.
        """
        steps = steps.double().unsqueeze(-1)
        t = torch.arange(start + 1, stop + 1)
        weights = steps ** -(steps - t + 1.0) if self.authors else (1.0 / steps).expand(-1, len(t))
        return torch.where(t <= steps, weights, 0.0).to(self.device, torch.float32)

    def _measure(self, model: StackedRNN, pieces: list[Tensor]) -> Tensor:
        """Return every member's mean loss over pieces.

        All pieces are read side by side, a few frames at a time, so that products of matrices do
        the work; from the longest to the shortest, so that those which have ended fall away.
        """
        members = next(model.parameters()).shape[0]
        pieces = sorted(pieces, key=len, reverse=True)
        steps = torch.tensor([len(piece) - 1 for piece in pieces])
        total, before, start = torch.zeros(members, device=self.device), None, 0
        while start < steps[0]:
            going = int((steps > start).sum())
            frames = max(1, EVALUATION_STATES // (members * going * (self.hidden + self.notes)))
            stop = min(start + frames, int(steps[0]))
            part = nn.utils.rnn.pad_sequence(
                [piece[start : stop + 1] for piece in pieces[:going]], batch_first=True
            )
            x, y = part[:, :-1], part[:, 1:]
            outputs, before = model.carry_on(
                x.expand(members, *x.shape), None if before is None else before[:, :going]
            )
            weights = self._weights(steps[:going], start, stop)
            counted = torch.where(weights > 0, self.loss.per_row(outputs, y) * weights, 0.0)
            total += counted.sum((-1, -2))
            start = stop
        return total / len(pieces)
