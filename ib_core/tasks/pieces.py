"""Feeding music: one piece a step, in file order, and every member of a stack the same piece.

The paper shuffles nothing here and its authors did not either. It is also what lets seeds share
a stack: pieces differ in length, and padding them to the longest would waste what stacking saves.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ib_core.datasets import Dataset, Pieces
from ib_core.tasks.losses import LOSSES
from ib_core.tasks.networks import StackedRNN, draw_weights, fill_weights
from ib_core.tasks.paper import PaperTask
from ib_core.tasks.randomness import evenly, hold_out, streams, tensor_hash
from ib_core.tasks.task import EVALUATION_STATES, Evaluation, Recipe


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
