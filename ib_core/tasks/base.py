"""What tasks are made of: defaults, recipes, and the workload that feeds a stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a catalogue of tasks needs no torch
    from torch import Tensor, nn


#: Filters of the two convolutions of the paper's classifier (App. D.3).
CONV_FILTERS = (10, 20)
#: Rows evaluated at once, all members together, and at most so many numbers of the widest layer:
#: of larger tensors the system gives and takes every page anew, which takes as long as the work.
EVALUATION_ROWS, EVALUATION_OUTPUTS = 20_000, 1_000_000
#: Notes and hidden states of music evaluated at once, all members together.
EVALUATION_STATES = 2_000_000


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a sweep of the task uses where the user says nothing.

    Attributes:
        epochs: Passes over the training set.
        batch_size: Rows (or pieces) a step.
        learning_rates: The paper's grid, or a sensible one.
        seeds: How many seeds.
    """

    epochs: int
    batch_size: int
    learning_rates: tuple[float, ...]
    seeds: int = 5


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a sweep may change about a task's network and its feeding."""

    profile: str
    activation: str
    batch_size: int
    width: int | None = None
    depth: int | None = None
    validation: float | None = None
    implicit_convolutions: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Whole-set numbers of every member, [members] each.

    Accuracies are None without classes, and both of validation where no rows are held out.
    """

    train_loss: Tensor
    test_loss: Tensor
    train_accuracy: Tensor | None = None
    test_accuracy: Tensor | None = None
    validation_loss: Tensor | None = None
    validation_accuracy: Tensor | None = None


class Workload(Protocol):
    """Everything the engine needs to train a stack on one task; it knows no method."""

    steps_per_epoch: int
    seeds: list[int]

    def model(self) -> nn.Module:
        """Return the stack with every member's initial weights."""

    def begin_epoch(self, *, ahead: bool = True) -> None:
        """Draw the next epoch's order for every seed.

        Where training waits for every copy, on a GPU, its chance is drawn as well, unless `ahead`
        is false: then more of it will be drawn in between (`draw_masks`).
        """

    def load_batch(self, step: int) -> None:
        """Make step `step` of the epoch the present batch (and draw its dropout masks)."""

    def draw_masks(self) -> None:
        """Draw the present batch's dropout masks again, where there is dropout."""

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present batch, [members], with its graph."""

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return whole-set losses in evaluation mode."""

    def sampled_losses(self, model: nn.Module, rows: int) -> Tensor:
        """Return every member's mean loss over so many training rows, or all, [members].

        The same rows for all, evenly chosen, in evaluation mode; the graph may be differentiated
        twice where the model's layers are (`ib_core.layers.twice_differentiable`).
        """

    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""

    def order_hash(self, member: int) -> str:
        """Return the hash of every batch order the member has seen so far."""

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
